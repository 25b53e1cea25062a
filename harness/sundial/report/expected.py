# SPDX-License-Identifier: Apache-2.0
"""What `sundial.expect` says about the curves of a run: packets over size, and the wire minimum.

Pure. A curve is evaluated at every size that was run and, between two of them, at every size where a packet count
changes, so that its steps stand where the protocol has them and not where the run happened to look.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sundial.expect import Leg
from sundial.report import wire_time
from sundial.report.figures import PacketLine, WireMinimum
from sundial.report.registry import legs
from sundial.report.wire_time import AnyHop
from sundial.report.workload import Setting

Key = tuple[int, ...]
"""What makes one stretch of sizes alike: packets of request and reply (fewest, most), padded ones among them, cells."""

SAW_BYTES = 16384
"""Over a wider range of sizes a cell's step is too narrow to be seen, and is not looked for."""
LINE_POINTS = 500
"""Of a line of cells over such a range."""


def key(setting: Setting, size: int, *, with_cells: bool = False) -> Key | None:
    """The stretch a size belongs to; None where nothing is known about it."""
    found = legs(setting, size)
    if found is None:
        return None
    padded = sum(packet.frame < packet.padded_frame for leg in found for packet in leg.packets)
    counted = [leg_cells(setting, leg) or 0 for leg in found] if with_cells else []
    return (*(count for leg in found for count in (leg.fewest, leg.most)), padded, *counted)


def leg_cells(setting: Setting, leg: Leg) -> int | None:
    """Cells of one direction of a call; None where no wire has cells, or TCP may cut the message otherwise."""
    if setting.packet_cells is None or not leg.exact:
        return None
    counted = [setting.packet_cells(packet.ip_length) for packet in leg.packets]
    return sum(count for count in counted if count is not None) if None not in counted else None


def breakpoints(sizes: Sequence[int], value: Callable[[int], Key | None]) -> list[tuple[int, Key | None]]:
    """The value at each size and on both sides of each change between two of them (found by halving)."""
    points: list[tuple[int, Key | None]] = []
    for size in sorted(set(sizes)):
        here = value(size)
        if points:
            points += _changes(points[-1], (size, here), value)
        points.append((size, here))
    return points


def _changes(
    low: tuple[int, Key | None], high: tuple[int, Key | None], value: Callable[[int], Key | None]
) -> list[tuple[int, Key | None]]:
    """Points strictly between `low` and `high` that lie beside a change."""
    if low[1] == high[1] or high[0] - low[0] < 2:
        return []
    middle = (low[0] + high[0]) // 2
    here = (middle, value(middle))
    left, right = _changes(low, here, value), _changes(here, high, value)
    beside = here[1] != low[1] if middle == low[0] + 1 else False
    beside = beside or (here[1] != high[1] if middle == high[0] - 1 else False)
    edge = beside or (bool(left) and left[-1][0] == middle - 1) or (bool(right) and right[0][0] == middle + 1)
    return [*left, here, *right] if edge else [*left, *right]


def packet_lines(setting: Setting, sizes: Sequence[int]) -> dict[str, PacketLine]:
    """Expected packets over size, by direction (request, reply)."""
    points = [(size, value) for size, value in breakpoints(sizes, lambda size: key(setting, size)) if value]
    if not points:
        return {}
    at = [size for size, _ in points]
    return {
        direction: PacketLine(at, [value[first] for _, value in points], [value[first + 1] for _, value in points])
        for direction, first in (("request", 0), ("reply", 2))
    }


def cell_lines(setting: Setting, sizes: Sequence[int]) -> dict[str, PacketLine]:
    """Expected cells over size, by direction, up to the first size at which they are not determined."""
    found: dict[str, list[tuple[int, int]]] = {"request": [], "reply": []}
    step = max(1, (max(sizes) - min(sizes)) // LINE_POINTS)
    between = range(min(sizes), max(sizes), step) if _is_wide(sizes) else ()
    for size in sorted({*(size for size, _ in _points(setting, sizes)), *between}):
        pair = legs(setting, size)
        if pair is None:
            continue
        counted = [leg_cells(setting, leg) for leg in pair]
        if None in counted:
            break
        for points, count in zip(found.values(), counted, strict=True):
            points.append((size, count or 0))
    lines = {}
    for direction, points in found.items():
        if points:
            values = [count for _, count in points]
            lines[direction] = PacketLine([size for size, _ in points], values, values)
    return lines


def _points(setting: Setting, sizes: Sequence[int]) -> list[tuple[int, Key | None]]:
    """The sizes that were run, and both sides of each step between them."""
    saw = setting.packet_cells is not None and not _is_wide(sizes)
    return breakpoints(sizes, lambda size: key(setting, size, with_cells=saw))


def _is_wide(sizes: Sequence[int]) -> bool:
    return max(sizes) - min(sizes) > SAW_BYTES


def wire_minimum(
    setting: Setting, sizes: Sequence[int], out: Sequence[AnyHop], back: Sequence[AnyHop]
) -> WireMinimum | None:
    """Least round trip over size: both directions' packets on empty wires, nothing for the machines."""
    at, us = [], []
    for size, _ in _points(setting, sizes):
        found = legs(setting, size)
        if found is not None:
            ns = sum(
                wire_time.transit_ns([packet.frame for packet in leg.packets], path)
                for leg, path in zip(found, (out, back), strict=True)
            )
            at.append(size)
            us.append(ns / 1000.0)
    return WireMinimum(at, us) if at else None
