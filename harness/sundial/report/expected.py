# SPDX-License-Identifier: Apache-2.0
"""What `sundial.expect` says about the curves of a run: packets over size, and the wire minimum.

Pure. A curve is evaluated at every size that was run and, between two of them, at every size where a packet count
changes, so that its steps stand where the protocol has them and not where the run happened to look.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sundial.report import wire_time
from sundial.report.figures import PacketLine, WireMinimum
from sundial.report.registry import legs
from sundial.report.wire_time import AnyHop
from sundial.report.workload import Setting

Key = tuple[int, ...]
"""What makes one stretch of sizes alike: packets of request and reply (fewest, most), and padded ones among them."""


def key(setting: Setting, size: int) -> Key | None:
    """The stretch a size belongs to; None where nothing is known about it."""
    found = legs(setting, size)
    if found is None:
        return None
    padded = sum(packet.frame < packet.padded_frame for leg in found for packet in leg.packets)
    return (*(count for leg in found for count in (leg.fewest, leg.most)), padded)


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


def wire_minimum(
    setting: Setting, sizes: Sequence[int], out: Sequence[AnyHop], back: Sequence[AnyHop]
) -> WireMinimum | None:
    """Least round trip over size: both directions' packets on empty wires, nothing for the machines."""
    at, us = [], []
    for size, _ in breakpoints(sizes, lambda size: key(setting, size)):
        found = legs(setting, size)
        if found is not None:
            ns = sum(
                wire_time.transit_ns([packet.frame for packet in leg.packets], path)
                for leg, path in zip(found, (out, back), strict=True)
            )
            at.append(size)
            us.append(ns / 1000.0)
    return WireMinimum(at, us) if at else None
