# SPDX-License-Identifier: Apache-2.0
"""Curves of kedziera98 that were never measured: times and cells that are known beforehand."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from functools import cache

from sundial.papers.kedziera98.curves import Curve, OnWire, Point
from sundial.papers.kedziera98.names import ATM, ETHERNET, LINUX, PCS, RAW_TCP, RAW_UDP, SWAPPED, TCP, UDP
from sundial.papers.kedziera98.reproduce import KIND
from sundial.papers.kedziera98.results import Results
from sundial.papers.kedziera98.wire import Expected
from sundial.reproduce.shares import Share

GRID = range(16, 8193, 16)
CELL_US = 331.25 / 117
CHOSEN = (16, 64, 256, 1024, 2048, 3072, 6144, 8192)
FACTORS = {
    ATM: 1.0,
    LINUX: 11.0,
    SWAPPED: 11.1,
    TCP: 11.0,
    UDP: 9.0,
    ETHERNET: 9.0,
    PCS: 12.0,
    RAW_TCP: 2.0,
    RAW_UDP: 3.0,
}
"""How much slower than ATM."""
Times = Callable[[int], float]


def cells_one_way(size: int, first: int) -> int:
    """Of one packet over LAN emulation (PROTOCOLS.md 3): one more where N is `first` modulo 48."""
    return 3 + (size - first) // 48 + 1


def expected(size: int) -> Expected:
    """TCP with timestamps: more cells at 21 (call) and 37 (reply) modulo 48; packets are not counted here."""
    return Expected((1, 1), (cells_one_way(size, 21), cells_one_way(size, 37)))


def linear(factor: float) -> Times:
    return lambda size: factor * (550 + 0.2 * size)


def with_drop(times: Times, first: int, last: int, factor: float = 4.0) -> Times:
    return lambda size: times(size) * (factor if first <= size <= last else 1)


def curve(
    key: str,
    times_us: Times,
    sizes: Iterable[int] = GRID,
    *,
    series: int = 10,
    sd_pct: float | None = 1.0,
    noise_us: float = 0.0,
    carried_us: Times | None = None,
    cell_us: float | None = CELL_US,
    bound_us: Mapping[int, float] | None = None,
) -> Curve:
    """Round trips of `times_us`, with cells on the way that take their part of it."""
    drawn = random.Random(key)
    points = {}
    for size in sizes:
        cells = expected(size).all_cells
        assert cells is not None
        base = times_us(size)
        time = base + drawn.gauss(0, noise_us)
        carried = cells * CELL_US + 30 if carried_us is None else carried_us(size)
        total = round(base * 1000)
        parts = Share(total, total // 4, total // 2, total - total // 4 - total // 2, 2, 2 * size)
        points[size] = Point(
            size=size,
            calls=10 * series,
            series=series,
            paper_kBps=2000 * size / time,
            mean_kBps=2000 * size / time * 0.99,
            sd_pct=sd_pct,
            median_us=time,
            least_us=base + drawn.gauss(0, noise_us / 2),
            wire=OnWire(carried, 2, cells, parts),
        )
    bounds = {size: times_us(size) / 3 for size in points} if bound_us is None else bound_us
    return Curve(
        key,
        key.upper(),
        "udp" if key in (UDP, RAW_UDP) else "tcp",
        points,
        (f"runs/{key}.pcapng",),
        cell_us,
        bounds,
        {size: expected(size) for size in points},
    )


def by_cells(factor: float, share: float = 1.0) -> Times:
    """A line, and on it the cells (two for 48 bytes) as steps instead of as a slope."""

    def times(size: int) -> float:
        cells = expected(size).all_cells
        assert cells is not None
        return linear(factor)(size) + share * CELL_US * (cells - 2 * size / 48)

    return times


@cache
def good() -> Mapping[str, Curve]:
    """Every statement is met."""
    found = {}
    for key, factor in FACTORS.items():
        sizes = CHOSEN if key in (TCP, UDP, RAW_TCP, RAW_UDP) else GRID
        times = by_cells(factor) if key in (ATM, ETHERNET) else linear(factor)
        if key in (LINUX, PCS):
            times = with_drop(times, 3968, 5392)
        if key == SWAPPED:
            times = with_drop(times, 3984, 5408)
        if key in (RAW_TCP, RAW_UDP):
            times = falling_ratio(times)
        noise = {ATM: 0.5, ETHERNET: 40.0}.get(key, 0.0)
        found[key] = curve(key, times, sizes, noise_us=noise)
    return found


def falling_ratio(times: Times) -> Times:
    """Long blocks gain less than short ones."""
    return lambda size: times(size) * (1 + size / 16384)


def results(curves: Mapping[str, Curve] | None = None, **changed: Curve | None) -> Results:
    """The good curves with some of them changed, by names with underscores; None: it was not measured."""
    made = dict(good() if curves is None else curves)
    for name, one in changed.items():
        key = name.replace("_", "-")
        assert key in FACTORS
        made.pop(key)
        if one is not None:
            made[key] = one
    return Results(paper=KIND.paper(), scale="full", curves=made)
