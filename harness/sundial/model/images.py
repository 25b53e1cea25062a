# SPDX-License-Identifier: Apache-2.0
"""What a machine may boot: every `images/NAME/image.toml`, read into a frozen `ImageKind`.

An image says what it can do; what runs on it (workloads, checks, jobs) asks for these capabilities, never for a name.
So adding an image is adding a folder.
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
from sundial.model.fields import NAME, NAMED, PROSE, Flag, In, Strict, Text, Whole
from sundial.model.segment import MTU_LEAST, MTU_MOST
from sundial.model.source import Origin, Source, validate
from sundial.units import SIZE, TIME, Quantity

DECLARATION = "image.toml"
FOLDER = ROOT / "images"
OWN = "own"
"""The recipe of an image that declares none."""
BESIDE_RECIPES = frozenset({"cache", "snapshots"})
"""Folders of images/out that are no recipe's."""

Role = Literal["host", "bridge"]
MEMORY = replace(SIZE, whole="MiB").between("1 MiB", "64 GiB", example="96 MiB")
"""What any machine may have; an image narrows it. libvirt rounds to MiB."""

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
    """What a guest image declares of itself, in images/NAME/image.toml."""

    name: Annotated[str, NAMED]
    """The folder's name."""
    description: Annotated[str, PROSE]
    """One line: what is inside."""
    platform: Annotated[str, NAMED]
    """Family of guest software, which decides what workloads find in it: linux, sss-core, or one of your own."""
    roles: tuple[Role, ...] = Field(min_length=1)
    """What a machine that boots it can be."""
    memory: _Memory
    """Main memory of a machine whose topology does not set it."""
    memory_least: _Memory
    """The least a machine may have."""
    memory_most: _Memory
    """The most a machine may have."""
    mtu_least: _Mtu = MTU_LEAST
    """The least MTU that its interfaces take."""
    mtu_most: _Mtu = MTU_MOST
    """The most."""
    start_ns: _Start = Field(alias="start")
    """Time for services to come up on a machine of 125 mips, before the first step."""
    translations_mib: Annotated[int, Whole(1, 1024)]
    """QEMU's cache of translated code in MiB: what the guest's code needs, for it is most of a small guest's memory."""
    greeting: tuple[Annotated[str, PROSE], ...] = Field(min_length=1)
    """A command that does nothing; a machine that is up answers it."""
    binder: Annotated[str, NAMED]
    """The service that tells Sun RPC's clients where programs are: rpcbind, or portmapper."""
    node_is_process: _Capability = False
    """A node of memory-based communication is a process; otherwise the machine is one."""
    keeps_replies: _Capability = False
    """Its Sun RPC server can keep replies, which gives at most once over UDP, and can end at a given call."""
    fixed_sockets: _Capability = False
    """The buffers of its sockets are fixed, and its TCP sends at once (TCP_NODELAY)."""
    restarts_services: _Capability = False
    """A service that has ended can be restarted."""
    one_client_thread: _Capability = False
    """Its Sun RPC client has one thread."""
    routes: _Capability = False
    """It takes static routes, and can forward packets between its interfaces."""
    streams_commands: _Capability = False
    """A command of `sundial exec` gets input, signals and a terminal, and its output comes while it runs."""
    maps_adapters: _Capability = False
    """Its machines may have an adapter whose memory the guest maps."""
    files: _Capability = False
    """Files of a topology can be laid into its root."""
    flat_files: _Capability = False
    """Its files are in no folders: the root has nothing else."""
    compressed_initrd: _Capability = False
    """Its kernel unpacks an initrd that is compressed."""
    command_line: _Capability = False
    """Its kernel reads its command line."""
    kallsyms: _Capability = False
    """Its kernel says in /proc/kallsyms where its functions are, modules' too."""
    fixed_kernel: _Capability = False
    """Its kernel's functions are where its build's symbols.json says."""

    python: dict[Annotated[str, NAMED], Annotated[str, PROSE]] | None = None
    """It has Python: the versions of the interpreter and of its packages by their names, which its build holds against
    what is inside."""
    cpp: dict[Annotated[str, NAMED], Annotated[str, PROSE]] | None = None
    """It has programs in C++: the versions of the libraries in them, which its build holds against what it compiled
    them with."""
    on_demand: _Capability = False
    """It is built when a command needs it or names it, and not by `make setup`."""

    inputs: tuple[Annotated[str, _INPUT], ...] = ()
    """Files and folders that its `build` reads beside its own folder; the image is stale when one changes. Later lines
    win over earlier ones."""
    recipes: Annotated[
        dict[Annotated[str, NAMED], tuple[Annotated[str, _INPUT], ...]],
        Field(min_length=1, default_factory=lambda: {OWN: ()}),
    ]
    """The ways to make it, each with the inputs that only it reads; the first is used unless another is chosen."""

    def recipe(self, asked: str | None) -> str:
        """The one to make it by where `asked` is chosen: an image that does not have it is made by its first."""
        return asked if asked is not None and asked in self.recipes else next(iter(self.recipes))

    @property
    def libraries(self) -> dict[str, dict[str, str]]:
        """Versions by name, for each language that it has libraries of."""
        tables = {"python": self.python, "cpp": self.cpp}
        return {language: table for language, table in tables.items() if table is not None}

    @property
    def memory_sizes(self) -> Quantity:
        """What a topology may set."""
        return MEMORY.between(SIZE.show(self.memory_least), SIZE.show(self.memory_most), SIZE.show(self.memory))

    @model_validator(mode="after")
    def _check_recipes(self) -> Self:
        for name in BESIDE_RECIPES & self.recipes.keys():
            raise BadInput(
                f"{name} cannot be a recipe's name",
                field=f"recipes.{name}",
                allowed=f"not {' or '.join(sorted(BESIDE_RECIPES))}",
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
    """The images declared below a folder, by name, sorted; read when they are first asked for, so that an error in one
    is an error of the command that needs it.
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
    """The image that `path` declares. Raises BadInput."""
    file, name = shown(path), path.parent.name
    if not NAME.fullmatch(name):
        raise BadInput(f"{name!r} cannot be an image's name", allowed=NAMED.allowed, file=file)
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
        raise BadInput(f"{data['name']!r} is not the folder's name", allowed=name, file=file, field="name")
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
