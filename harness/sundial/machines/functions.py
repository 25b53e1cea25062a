# SPDX-License-Identifier: Apache-2.0
"""Tables of functions: of an image's programs, as its build keeps them, and of a kernel, as it says itself or as a
program of the image."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from sundial.errors import BadInput, RunFailed
from sundial.machines.images import Image
from sundial.machines.seals import read_summed, write_summed
from sundial.plan.points import Place, Table

SYMBOLS = "symbols.json"
KALLSYMS = "kallsyms.json"
"""Beside the snapshot of the kernel that said it: modules are where that snapshot has them."""
_VERSION = 1
_SYMBOLS_VERSION = 2
_TEXT = frozenset("tTwW")
_FUNCTION_MOST = 1 << 16
"""Bytes; kernels do not say how long a function is, but where the next one begins."""


@dataclass(frozen=True)
class ImageTables:
    """What an image's build keeps."""

    applications: dict[str, str]
    """The program that each is in."""
    programs: dict[str, Table]
    kernel: Table | None
    """None where the kernel says itself."""


def image_tables(image: Image) -> ImageTables:
    """Raises BadInput for an image without such tables, RunFailed for tables of other programs than the image's."""
    path = image.kernel.parent / SYMBOLS
    programs = image.manifest.get("programs")
    if not isinstance(programs, dict) or not path.is_file():
        what = f"image {image.name} (recipe {image.recipe}) has no table of its programs' functions"
        raise BadInput(what, field="trace", allowed="images whose build keeps one: images/README.md")
    try:
        written = json.loads(path.read_text())
        if written["version"] != _SYMBOLS_VERSION:
            raise ValueError
        tables = {name: _program(image, name, table, programs) for name, table in written["programs"].items()}
        applications = {str(name): str(program) for name, program in written["applications"].items()}
        kernel = tables.pop(written["kernel"]) if written["kernel"] is not None else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RunFailed(f"{SYMBOLS} of image {image.name} cannot be read", hint=_hint(image)) from error
    applications = {name: program for name, program in applications.items() if program in tables}
    # A kernel is at addresses of its own.
    return ImageTables(applications, tables, kernel and Table("the kernel", kernel.functions))


def _program(image: Image, name: str, table: dict[str, Any], programs: dict[str, Any]) -> Table:
    if table["text_sha256"] != programs.get(name):
        what = f"{SYMBOLS} of image {image.name} does not belong to it: its {name} is of other code"
        raise RunFailed(what, hint=_hint(image))
    places: dict[str, tuple[Place, ...]] = {}
    for address, size, crc, function in table["functions"]:
        places[function] = (*places.get(function, ()), Place(int(address, 16), int(size, 16), int(crc, 16)))
    return Table(f"program {name}", places)


def _hint(image: Image) -> str:
    return f"./sundial images build {image.name}"


def parse_kallsyms(lines: Iterable[str]) -> list[tuple[int, str]]:
    """Address and name of each function in /proc/kallsyms, by address. Lines of another form are left out."""
    found = []
    for line in lines:
        words = line.split()
        if (
            len(words) in (3, 4)
            and words[1] in _TEXT
            and len(words[0]) == 16
            and not words[0].strip("0123456789abcdef")
        ):
            found.append((int(words[0], 16), words[2]))
    return sorted(set(found))


def kernel_table(functions: list[tuple[int, str]]) -> Table:
    """With the size of each: up to the next."""
    places: dict[str, tuple[Place, ...]] = {}
    addresses = sorted({address for address, _ in functions})
    sizes = {address: min(after - address, _FUNCTION_MOST) for address, after in pairwise(addresses)}
    for address, name in functions:
        places[name] = (*places.get(name, ()), Place(address, sizes.get(address, 1)))
    return Table("the kernel", places)


def keep_kernel(folder: Path, functions: list[tuple[int, str]]) -> None:
    """Into the folder of a snapshot."""
    kept = [f"{address:x} {name}" for address, name in functions]
    write_summed(folder / KALLSYMS, {"version": _VERSION, "functions": kept})


def kept_kernel(folder: Path) -> list[tuple[int, str]] | None:
    """What `keep_kernel` wrote; None where there is nothing whole."""
    try:
        written = read_summed(folder / KALLSYMS)
        if written["version"] != _VERSION:
            return None
        words = (each.split() for each in written["functions"])
        return [(int(address, 16), name) for address, name in words]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
