# SPDX-License-Identifier: Apache-2.0
"""Where the functions of a trace are, from tables of functions; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NoReturn

from sundial.errors import BadInput
from sundial.plan.trace import Function
from sundial.seams.trace import Point, Points

NEAREST = 5
CUTOFF = 0.6


@dataclass(frozen=True)
class Table:
    """The functions of a program or a kernel."""

    name: str
    """What it is called in messages."""
    functions: Mapping[str, tuple[tuple[int, int], ...]]
    """Address and size by name; static functions may share one."""


@dataclass(frozen=True)
class Tables:
    """What one machine runs."""

    applications: Mapping[str, str]
    """The program that each application is in."""
    programs: Mapping[str, Table]
    kernel: Table


def points_of(machine: str, functions: Sequence[Function], tables: Tables) -> Points:
    """The points of a machine, each address once. Raises BadInput for a name that is not there, with the nearest."""
    found: dict[int, Point] = {}
    for function in functions:
        point = _point(machine, function, tables)
        if point is None:
            continue
        address = int(point.address, 16)
        if address not in found:
            found[address] = point
        elif found[address].stamps != point.stamps:
            found[address] = found[address].model_copy(update={"stamps": "both"})
    programs = list(dict.fromkeys(point.program for point in found.values() if point.program is not None))
    if len(programs) > 1:
        what = f"machine {machine!r} runs {' and '.join(programs)}, whose functions have the same addresses"
        raise BadInput(what, field="trace", allowed="transports whose programs are one, or functions of the kernel")
    return Points(version=1, points=tuple(found.values()))


def _point(machine: str, function: Function, tables: Tables) -> Point | None:
    program = None if function.application is None else tables.applications.get(function.application)
    if function.application is not None and program is None:
        what = f"the image of machine {machine!r} does not say where functions of {function.application} are"
        raise BadInput(what, field="trace", allowed="machines whose image has a table of its programs' functions")
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
        raise BadInput(what, field="trace", allowed="functions that have a name of their own")
    address, size = places[0]
    return Point(
        name=name, program=program, address=f"{address:x}", size=size, stamps=function.stamps, role=function.role
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
    raise BadInput(what, field="trace", allowed=", ".join(dict.fromkeys(near[:NEAREST])) or "functions that it has")
