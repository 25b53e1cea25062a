# SPDX-License-Identifier: Apache-2.0
"""A machine's trace: stamps of its functions (`trace.bin`), with the names of what they are of (`points.json`)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sundial.errors import BadInput
from sundial.observe.rundir import ALLOWED

TRACE, POINTS = "trace.bin", "points.json"
ENTRY, EXIT, HALT = 0, 1, 2
NO_POINT = 0xFFFFFFFF
PAGE_FAULT = "asm_exc_page_fault"
"""What Linux enters when a page is not there; of functions that fault this is stamped in between."""

_MAGIC, _VERSION = b"SUNTRACE", 1
_HEADER = np.dtype([("magic", "S8"), ("version", "<u4"), ("length", "<u4")])
STAMP = np.dtype(
    [
        ("ns", "<u8"),
        ("page_table", "<u8"),
        ("thread", "<u8"),
        ("argument", "<u8"),
        ("point", "<u4"),
        ("kind", "<u4"),
    ]
)


@dataclass(frozen=True)
class Point:
    """A function that was stamped; `program` is None in the kernel."""

    name: str
    program: str | None
    role: str | None


@dataclass(frozen=True)
class Trace:
    """Of one machine: `stamps` has the fields of STAMP, in order of time."""

    points: tuple[Point, ...]
    stamps: np.ndarray[Any, Any]
    repeated: int = 0
    """Stamps that were left out, since their instruction was executed again."""


def read_trace(folder: Path) -> Trace:
    """Of the machine whose folder this is. Raises BadInput with the file for what is not a trace."""
    points = _points(folder / POINTS)
    path = folder / TRACE
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadInput(str(error.strerror), file=str(path), allowed=ALLOWED) from None
    if len(data) < _HEADER.itemsize:
        raise BadInput("is shorter than the header of a trace", file=str(path), allowed=ALLOWED)
    (header,) = np.frombuffer(data, _HEADER, count=1)
    if header["magic"] != _MAGIC or header["version"] != _VERSION or header["length"] != STAMP.itemsize:
        raise BadInput("is not a trace of version 1", file=str(path), allowed=ALLOWED)
    if (len(data) - _HEADER.itemsize) % STAMP.itemsize:
        raise BadInput("ends within a stamp", file=str(path), allowed=ALLOWED)
    stamps = np.frombuffer(data, STAMP, offset=_HEADER.itemsize)
    if (np.diff(stamps["ns"].astype(np.int64)) < 0).any():
        raise BadInput("its stamps are not in order of time", file=str(path), allowed=ALLOWED)
    halts = stamps["kind"] == HALT
    if (stamps["kind"] > HALT).any() or (stamps["point"][~halts] >= len(points)).any():
        raise BadInput(f"has a stamp of none of the {len(points)} functions", file=str(path), allowed=ALLOWED)
    return without_repeated(Trace(points, stamps))


def _points(path: Path) -> tuple[Point, ...]:
    try:
        written = json.loads(path.read_bytes())
        return tuple(Point(str(each["name"]), each["program"], each["role"]) for each in written["points"])
    except OSError as error:
        raise BadInput(str(error.strerror), file=str(path), allowed=ALLOWED) from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadInput(f"is not a list of functions: {error!r}", file=str(path), allowed=ALLOWED) from None


def without_repeated(trace: Trace) -> Trace:
    """Without stamps of instructions that faulted and were executed again: of equal ones the last is right.

    A program's page may not be there yet. Then its thread stamps the same once more, with the same argument, and in
    between it has stamped page faults alone: at least one, where these are stamped.
    """
    faults = {place for place, point in enumerate(trace.points) if point.name == PAGE_FAULT}
    of_program = [point.program is not None for point in trace.points]
    waiting: dict[tuple[int, int], tuple[int, tuple[int, int, int], bool]] = {}
    dropped: list[int] = []
    columns: Sequence[list[int]] = [trace.stamps[name].tolist() for name in STAMP.names or () if name != "ns"]
    for place, (page_table, thread, argument, point, kind) in enumerate(zip(*columns, strict=True)):
        if kind == HALT:
            continue
        context = (page_table, thread)
        before = waiting.get(context)
        if point in faults:
            if before is not None:
                waiting[context] = (before[0], before[1], True)
            continue
        same = (point, kind, argument)
        if before is not None and before[1] == same and (before[2] or not faults) and of_program[point]:
            dropped.append(before[0])
        waiting[context] = (place, same, False)
    if not dropped:
        return trace
    return Trace(trace.points, np.delete(trace.stamps, dropped), len(dropped))
