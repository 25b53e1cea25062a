# SPDX-License-Identifier: Apache-2.0
"""Images that machines can boot: every `images/NAME/image.toml`, read into a frozen `ImageKind`.

An image declares its capabilities. Workloads, checks and jobs ask for these, never for a name, so a new image is a new
folder.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from sundial.errors import BadInput
from sundial.model.catalog import ROOT, shown
from sundial.model.fields import NAME, NAMED, PROSE, Flag, In, Mips, Strict, Text, Whole
from sundial.model.segment import MTU_LEAST, MTU_MOST
from sundial.model.source import Origin, Source, validate
from sundial.units import MIPS_VALUES, SIZE, TIME, Quantity

DECLARATION = "image.toml"
FOLDER = ROOT / "images"
OWN = "own"
"""The recipe of an image that declares none."""
BESIDE_RECIPES = frozenset({"cache", "roots", "snapshots"})
"""Folders of images/out that do not belong to a recipe."""

Role = Literal["host", "bridge"]
MEMORY = replace(SIZE, whole="MiB").between("1 MiB", "64 GiB", example="96 MiB")
"""Memory of any machine; an image narrows it. libvirt rounds to MiB."""

_Capability = Annotated[bool, Flag()]
_Memory = Annotated[int, In(MEMORY)]
_Mtu = Annotated[int, Whole(MTU_LEAST, MTU_MOST)]
_Start = Annotated[int, In(TIME.between(most="1 min", example="300 ms"))]
_INPUT = Text(
    re.compile(r"!?[\w.*?\[\]-]+(?:/[\w.*?\[\]-]+)*"),
    "a path relative to the checkout, such as guest-apps/echo; * ? [] match names; with ! in front: not these",
)
_KEY = re.compile(r"\s*([A-Za-z0-9_-]+)\s*=")
_TABLE = re.compile(r"\s*\[([A-Za-z0-9_-]+)\]")


class ImageKind(Strict):
    """Declaration of a guest image in images/NAME/image.toml."""

    name: Annotated[str, NAMED]
    """The folder's name."""
    description: Annotated[str, PROSE] | None = None
    """Contents of the image in one line."""
    platform: Annotated[str, NAMED]
    """Family of guest software, by which workloads choose their programs: linux, sss-core, or your own."""
    roles: tuple[Role, ...] = Field(min_length=1)
    """Roles of a machine that boots it."""
    memory: _Memory
    """Main memory of a machine whose topology does not set it."""
    memory_least: _Memory
    """Least memory of a machine."""
    memory_most: _Memory
    """Most memory of a machine."""
    mtu_least: _Mtu = MTU_LEAST
    """Least MTU of its interfaces."""
    mtu_most: _Mtu = MTU_MOST
    """The most."""
    mips_least: Annotated[Decimal, Mips()] = MIPS_VALUES[-1]
    """Least rate of a machine. With fewer instructions between two ticks of its clock, its kernel does nothing else."""
    start_ns: _Start = Field(alias="start")
    """Time for services to start on a machine of 125 mips, before the first step."""
    translations_mib: Annotated[int, Whole(1, 1024)]
    """QEMU's cache of translated code in MiB. It is most of a small guest's memory, so make it small."""
    greeting: tuple[Annotated[str, PROSE], ...] = Field(min_length=1)
    """A command without effect; a machine that is up answers it."""
    binder: Annotated[str, NAMED]
    """The service that gives Sun RPC's clients the ports of programs: rpcbind, or portmapper."""
    node_is_process: _Capability = False
    """A node of memory-based communication is a process; otherwise the machine is one."""
    keeps_replies: _Capability = False
    """Its Sun RPC server can keep replies, for at-most-once calls over UDP, and can end at a given call."""
    fixed_sockets: _Capability = False
    """Its sockets have fixed buffers, and its TCP sends at once (TCP_NODELAY)."""
    restarts_services: _Capability = False
    """A service that has ended can be restarted."""
    one_client_thread: _Capability = False
    """Its Sun RPC client has one thread."""
    routes: _Capability = False
    """It supports static routes, and can forward packets between its interfaces."""
    offloads: _Capability = False
    """Its interfaces have segmentation and receive offloads."""
    streams_commands: _Capability = False
    """Commands of `sundial exec` get input, signals and a terminal, and return output while they run."""
    maps_adapters: _Capability = False
    """Its machines may have an adapter whose memory the guest maps."""
    files: _Capability = False
    """Files of a topology can be copied into its root."""
    flat_files: _Capability = False
    """Its root has files only, no folders."""
    compressed_initrd: _Capability = False
    """Its kernel unpacks an initrd that is compressed."""
    command_line: _Capability = False
    """Its kernel reads its command line."""
    kallsyms: _Capability = False
    """Its kernel lists its functions, and those of modules, in /proc/kallsyms."""
    fills_queues: _Capability = False
    """Its kernel keeps a page of memory for each place in the queue of a serial port, as Linux does."""
    fixed_kernel: _Capability = False
    """Its kernel's functions are at the addresses of its build's symbols.json."""

    python: dict[Annotated[str, NAMED], Annotated[str, PROSE]] | None = None
    """Versions of Python and of its packages, by name; the build compares them with the image's contents. Empty: no
    Python."""
    cpp: dict[Annotated[str, NAMED], Annotated[str, PROSE]] | None = None
    """Versions of the libraries in its C++ programs, by name; the build compares them with those that it compiled
    against. Empty: no such programs."""
    on_demand: _Capability = False
    """Build it when a command needs or names it, not in `make setup`."""

    inputs: tuple[Annotated[str, _INPUT], ...] = ()
    """Files and folders, beside its own folder, that its `build` reads; a change to one makes the image stale. Later
    lines override earlier ones."""
    recipes: Annotated[
        dict[Annotated[str, NAMED], tuple[Annotated[str, _INPUT], ...]],
        Field(min_length=1, default_factory=lambda: {OWN: ()}),
    ]
    """Its recipes, each with the inputs that only it reads; the first is the default."""

    def recipe(self, asked: str | None) -> str:
        """The recipe to use if `asked` is chosen: its first one if it lacks that."""
        return asked if asked is not None and asked in self.recipes else next(iter(self.recipes))

    @property
    def speeds(self) -> tuple[Decimal, ...]:
        """Rates that a machine which boots it can have, in million instructions a second; the fastest first."""
        return tuple(mips for mips in MIPS_VALUES if mips >= self.mips_least)

    @property
    def libraries(self) -> dict[str, dict[str, str]]:
        """Versions by name, for each language of which it has libraries."""
        tables = {"python": self.python, "cpp": self.cpp}
        return {language: table for language, table in tables.items() if table is not None}

    @property
    def memory_sizes(self) -> Quantity:
        """Memory that a topology may set."""
        return MEMORY.between(SIZE.show(self.memory_least), SIZE.show(self.memory_most), SIZE.show(self.memory))

    @model_validator(mode="after")
    def _check_recipes(self) -> Self:
        for name in BESIDE_RECIPES & self.recipes.keys():
            raise BadInput(
                f"{name!r} is not a valid recipe name",
                field=f"recipes.{name}",
                allowed=f"any other than {', '.join(sorted(BESIDE_RECIPES))}",
            )
        return self

    @model_validator(mode="after")
    def _check_memory(self) -> Self:
        if not self.memory_least <= self.memory <= self.memory_most:
            raise BadInput(
                f"{SIZE.show(self.memory)} is out of range", field="memory", allowed="memory_least to memory_most"
            )
        return self


class ImageKinds(Mapping[str, ImageKind]):
    """The images declared below a folder, by name, sorted. They are read at their first use, so that an error in one
    affects only commands that need it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def _kinds(self) -> dict[str, ImageKind]:
        return {path.parent.name: read_image(path) for path in sorted(self._folder.glob(f"*/{DECLARATION}"))}

    def __getitem__(self, name: str) -> ImageKind:
        return self._kinds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)


def read_image(path: Path) -> ImageKind:
    """The image declared in `path`. Raises BadInput."""
    file, name = shown(path), path.parent.name
    if not NAME.fullmatch(name):
        raise BadInput(f"{name!r} is not a valid image name", allowed=NAMED.allowed, file=file)
    try:
        text = path.read_text(encoding="utf-8")
        data = tomllib.loads(text, parse_float=Decimal)
    except UnicodeDecodeError as error:
        raise BadInput("is not text in UTF-8", file=file) from error
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", file=file) from error
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"is not TOML: {error}", file=file) from error
    if data.setdefault("name", name) != name:
        raise BadInput(f"{data['name']!r} differs from the folder's name", allowed=name, file=file, field="name")
    source = Source(name, file, data)
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _TABLE.match(line):
            table = (header[1],)
            source.origins.setdefault(table, Origin(file, number))
        elif key := _KEY.match(line):
            source.origins.setdefault((*table, key[1]), Origin(file, number))
    return validate(source, ImageKind)


IMAGES: Mapping[str, ImageKind] = ImageKinds(FOLDER)
"""The images of this checkout."""
