# SPDX-License-Identifier: Apache-2.0
"""The stamps of one machine against its own clock, its functions and its frames; pure.

A machine has one CPU, whose instructions take the same time each. So between two stamps is a whole number of them,
unless the CPU has slept in between; no two are at one instant, but the entry and exit of a function that is one
instruction; and what a thread leaves it has entered before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from sundial.observe.steps import Lane
from sundial.observe.trace import ENTRY, EXIT, HALT, NO_POINT, Trace
from sundial.plan.trace import Function
from sundial.seams.trace import Point

SCHEDULERS = ("__schedule", "schedule_next")
"""Of Linux and of SSS-CORE: a thread enters it, and another one leaves it."""
Difference = tuple[str, str]
"""Expected and seen."""
_MOST = 20
"""Of one trace: more say no more."""


def check_points(points: Sequence[Point], planned: Sequence[Function]) -> Iterator[Difference]:
    """The functions that were stamped are those of the plan, in its order; some may not be in a kernel or program."""
    waiting = list(planned)
    for point in points:
        while waiting and not _is_of(point, waiting[0]):
            function = waiting.pop(0)
            if function.needed and not any(each.name in function.names for each in points):
                yield f"a point for {function.names[0]}", "none"
        if not waiting:
            yield "a function of the plan, as it has it", f"{point.name}, {point.stamps}, {point.role or 'no role'}"
            return
        waiting.pop(0)
    for function in waiting:
        if function.needed and not any(each.name in function.names for each in points):
            yield f"a point for {function.names[0]}", "none"


def _is_of(point: Point, function: Function) -> bool:
    in_kernel = function.application is None
    return (
        point.name in function.names
        and point.role == function.role
        and point.stamps in (function.stamps, "both")
        and (function.anywhere or (point.program is None) == in_kernel)
    )


def check_stamps(trace: Trace, points: Sequence[Point], instruction_ns: int, end_ns: int | None) -> list[Difference]:
    """`instruction_ns`: of this machine; `end_ns`: of the run."""
    found: list[Difference] = []
    for check in (_fields(trace, points), _times(trace, instruction_ns, end_ns), _nesting(trace)):
        found += check
        if len(found) > _MOST:
            break
    return found[:_MOST]


def _fields(trace: Trace, points: Sequence[Point]) -> Iterator[Difference]:
    """What a stamp of its kind has in its fields."""
    stamps = trace.stamps
    halts = stamps["kind"] == HALT
    bare = (stamps["page_table"] == 0) & (stamps["thread"] == 0) & (stamps["point"] == NO_POINT)
    for place in np.flatnonzero((halts & ~bare) | ((stamps["kind"] != ENTRY) & (stamps["argument"] != 0))):
        yield "no thread and no argument where there is none", f"some in the stamp at {stamps['ns'][place]} ns"
    left_out = [{"entry": EXIT, "exit": ENTRY}.get(point.stamps) for point in points]
    for place in np.flatnonzero(~halts):
        point = int(stamps["point"][place])
        if int(stamps["kind"][place]) == left_out[point]:
            name = points[point].name
            yield f"stamps of {name}: {points[point].stamps}", f"another at {stamps['ns'][place]} ns"


def _times(trace: Trace, instruction_ns: int, end_ns: int | None) -> Iterator[Difference]:
    stamps = trace.stamps
    times = stamps["ns"].astype(np.int64)
    if len(times) and end_ns is not None and not 0 <= times[0] <= times[-1] <= end_ns:
        yield f"stamps from 0 to {end_ns} ns, the end of the run", f"{times[0]} to {times[-1]} ns"
    gaps = np.diff(times)
    kind, point = stamps["kind"], stamps["point"]
    one = (kind[:-1] == ENTRY) & (kind[1:] == EXIT) & (point[:-1] == point[1:])
    awake = kind[:-1] != HALT
    for place in np.flatnonzero(((gaps <= 0) & ~one) | (awake & (gaps % instruction_ns != 0))):
        expected = f"instructions of {instruction_ns} ns between stamps"
        yield expected, f"{gaps[place]} ns from {times[place]} ns to the next"


def _nesting(trace: Trace) -> Iterator[Difference]:
    """Exits without an entry. What a thread was in when the trace began it leaves once. A function that ends in a jump
    has entries without an exit."""
    stamps = trace.stamps
    depth: dict[tuple[int, int, int], int] = {}
    switched = True
    names = [point.name if point.program is None else "" for point in trace.points]
    columns = [stamps[name].tolist() for name in ("ns", "page_table", "thread", "point", "kind")]
    both = _both(trace)
    for ns, page_table, thread, point, kind in zip(*columns, strict=True):
        if kind == HALT or point not in both:
            continue
        if names[point] in SCHEDULERS:
            # Who leaves it is another thread, or, where that is new, none.
            if kind == EXIT and not switched:
                yield f"{names[point]} entered before it is left", f"left twice, the second time at {ns} ns"
            switched = kind == ENTRY
            continue
        key = (page_table, thread, point)
        if kind == ENTRY:
            depth[key] = depth.get(key, 0) + 1
        elif depth.get(key) == 0:
            yield f"{trace.points[point].name} entered before it is left", f"left at {ns} ns"
        else:
            depth[key] = depth.get(key, 1) - 1


def _both(trace: Trace) -> frozenset[int]:
    """Functions of which entries and exits are stamped, as far as there are any."""
    kinds: dict[int, set[int]] = defaultdict(set)
    pairs = np.unique(np.stack([trace.stamps["point"], trace.stamps["kind"]], axis=1), axis=0)
    for point, kind in pairs.tolist():
        kinds[point].add(kind)
    return frozenset(point for point, seen in kinds.items() if {ENTRY, EXIT} <= seen)


def check_transmits(lane: Lane, sent: Sequence[int]) -> Iterator[Difference]:
    """Each frame was handed to the adapter by a stamped call of its driver (`sent`: when the first bits left)."""
    if not lane.transmits or not lane.times:
        return
    first = bisect_left(sent, lane.times[0])
    for sent_ns in sent[first:]:
        if sent_ns not in lane.handed:
            yield "a driver's call for each frame", f"none for the one that left at {sent_ns} ns"


def check_stores(lane: Lane, stored: Sequence[int], instruction_ns: int) -> Iterator[Difference]:
    """A store is an instruction of a CPU that is awake (`stored`: when stores were made whose packets left at once)."""
    for ns in stored:
        place = bisect_left(lane.times, ns) - 1
        if place < 0:
            continue
        since = ns - lane.times[place]
        if lane.halts[place]:
            yield "no store by a CPU that sleeps", f"one at {ns} ns, asleep since {lane.times[place]} ns"
        elif since % instruction_ns:
            yield f"instructions of {instruction_ns} ns until a store", f"{since} ns from {lane.times[place]} ns"
