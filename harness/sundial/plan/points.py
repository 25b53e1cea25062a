# SPDX-License-Identifier: Apache-2.0
"""Addresses of a trace's functions, from tables of functions; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NamedTuple, NoReturn

from sundial.errors import BadInput
from sundial.plan.trace import Function
from sundial.seams.trace import Point, Points

NEAREST = 5
CUTOFF = 0.6


class Place(NamedTuple):
    """Address of a function. `crc`: CRC-32 of its code; None if loading changes the code, as a kernel's."""

    address: int
    size: int
    crc: int | None = None


@dataclass(frozen=True)
class Table:
    """The functions of a program or a kernel."""

    name: str
    """Name in messages."""
    functions: Mapping[str, tuple[Place, ...]]
    """Functions by name; static functions may share a name."""


@dataclass(frozen=True)
class Tables:
    """Symbol tables of one machine's programs and kernel."""

    applications: Mapping[str, str]
    """Program of each application."""
    programs: Mapping[str, Table]
    kernel: Table


@dataclass(frozen=True)
class Chosen:
    """The points of one machine, with the address of each."""

    points: Points
    places: tuple[Place, ...]

    def text(self) -> str:
        """The file that the plugin reads."""
        return "".join(
            f"{place.address:x} {place.size:x} {point.stamps}{'' if place.crc is None else f' {place.crc:x}'}\n"
            for point, place in zip(self.points.points, self.places, strict=True)
        )


def points_of(machine: str, functions: Sequence[Function], tables: Tables) -> Chosen:
    """The points of a machine, each once. Programs may have different functions at one address, if their code differs.
    Raises BadInput for an unknown name, with similar ones."""
    found: dict[Place, Point] = {}
    for function in functions:
        placed = _point(machine, function, tables)
        if placed is None:
            continue
        place, point = placed
        if place not in found:
            found[place] = point
        elif found[place].stamps != point.stamps:
            found[place] = found[place].model_copy(update={"stamps": "both"})
    _check_apart(machine, found)
    return Chosen(Points(version=1, points=tuple(found.values())), tuple(found))


def _check_apart(machine: str, found: Mapping[Place, Point]) -> None:
    """Raises BadInput for functions with equal addresses and equal code."""
    reach = fixed = 0
    for place, point in sorted(found.items(), key=lambda item: item[0].address):
        if place.address < (reach if place.crc is None else fixed):
            what = f"{point.name} of machine {machine!r} has the addresses of another function"
            raise BadInput(what, field="trace", allowed="functions with separate addresses")
        reach = max(reach, place.address + place.size)
        if place.crc is None:
            fixed = place.address + place.size


def _point(machine: str, function: Function, tables: Tables) -> tuple[Place, Point] | None:
    program = None if function.application is None else tables.applications.get(function.application)
    if function.application is not None and program is None:
        what = f"the image of machine {machine!r} has no symbol table of {function.application}"
        raise BadInput(what, field="trace", allowed="machines whose image has one")
    table = tables.kernel if program is None else tables.programs[program]
    name = _first(function, table)
    if name is None and function.anywhere:
        name, program, table = _first(function, tables.kernel), None, tables.kernel
    if name is None:
        if not function.needed:
            return None
        _refuse(machine, function, tables)
    places = table.functions[name]
    if len(places) > 1:
        what = f"{name} is the name of {len(places)} functions of {table.name} on machine {machine!r}"
        raise BadInput(what, field="trace", allowed="functions with a unique name")
    (place,) = places
    return place, Point(
        name=name,
        program=program,
        address=f"{place.address:x}",
        size=place.size,
        stamps=function.stamps,
        role=function.role,
    )


def _first(function: Function, table: Table) -> str | None:
    return next((name for name in function.names if name in table.functions), None)


def _refuse(machine: str, function: Function, tables: Tables) -> NoReturn:
    name = function.names[0]
    looked = [tables.kernel]
    if function.application is not None:
        looked.insert(0, tables.programs[tables.applications[function.application]])
    if not function.anywhere:
        looked = looked[:1]
    near = [each for table in looked for each in get_close_matches(name, table.functions, NEAREST, CUTOFF)]
    where = " and ".join(table.name for table in looked)
    what = f"{where} of machine {machine!r} has no function {name}"
    raise BadInput(what, field="trace", allowed=", ".join(dict.fromkeys(near[:NEAREST])) or "functions in its table")
