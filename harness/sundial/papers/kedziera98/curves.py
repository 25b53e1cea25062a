# SPDX-License-Identifier: Apache-2.0
"""A run as a curve: for each size the paper's statistic and ours, the parts of a call, and what the wires allow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median_low
from typing import Any

import polars as pl

from sundial.papers.kedziera98.wire import Expected, Wires, read_wires
from sundial.report import stats
from sundial.reproduce.measure import Measured
from sundial.reproduce.shares import Flight, Flights, Share

PAPER = "kedziera98"
"""The paper's statistic."""
BY = [*stats.CURVE, "size"]
LONGEST_ACK = 14 + 20 + 32
"""A TCP segment without data, with timestamps, as captured."""
WATCHED = 10
"""Calls of each size and series whose frames are looked at."""


@dataclass(frozen=True)
class OnWire:
    """Frames of the calls of one size, medians over calls."""

    carried_us: float
    """Of the frames that carry data: from the first bit that leaves to the last that arrives, summed up."""
    packets: int
    cells: int | None
    """None where there are none on the way."""
    parts: Share
    """Of the call in the middle."""


@dataclass(frozen=True)
class Point:
    """One size of a curve; throughput is 2N/T, in 1000 bytes a second."""

    size: int
    calls: int
    series: int
    paper_kBps: float
    """Mean of the series without the lowest."""
    mean_kBps: float
    """Mean of all series."""
    sd_pct: float | None
    """Of the series that the paper's statistic keeps; None where there is only one."""
    median_us: float
    least_us: float
    wire: OnWire | None = None

    @property
    def time_us(self) -> float:
        """Of a call, by the paper's statistic."""
        return 2000 * self.size / self.paper_kBps

    @property
    def error_pct(self) -> float | None:
        """Standard error of the throughput, where the series are enough to say it."""
        kept = self.series - 1
        return None if self.sd_pct is None or kept < 2 else self.sd_pct / float(kept**0.5)


@dataclass(frozen=True)
class Curve:
    """One run."""

    key: str
    name: str
    transport: str
    points: Mapping[int, Point]
    captures: tuple[str, ...] = ()
    cell_us: float | None = None
    """Of the line with the longest; None where no cells are on the way."""
    bound_us: Mapping[int, float] = field(default_factory=dict)
    """Least round trip that the wires allow, at the sizes measured and where the number of packets changes."""
    expected: Mapping[int, Expected] = field(default_factory=dict)
    """By size, from the protocols' arithmetic."""

    def of_grid(self, value: Callable[[Point], float | None], step: int = 16) -> dict[int, float]:
        """A value by size, of the sizes of the paper's grid that have it."""
        found = ((size, value(point)) for size, point in sorted(self.points.items()) if size % step == 0)
        return {size: each for size, each in found if each is not None}

    @property
    def times_us(self) -> dict[int, float]:
        return self.of_grid(lambda point: point.time_us)

    @property
    def rates_kBps(self) -> dict[int, float]:
        return self.of_grid(lambda point: point.paper_kBps)


def curve_of(key: str, name: str, run: Measured, transport: str) -> Curve:
    """The curve of a run of one transport."""
    wires = read_wires(run)
    points = {point.size: point for point in _points(run, wires)}
    return Curve(
        key=key,
        name=name,
        transport=transport,
        points=points,
        captures=run.captures,
        cell_us=wires.cell_us,
        bound_us=wires.bound_us,
        expected=wires.expected,
    )


def _points(run: Measured, wires: Wires) -> Iterator[Point]:
    samples = run.samples
    batches = stats.batches(samples)
    series = stats.series_throughput(batches, BY)
    paper, ours = (stats.over_series(series, statistic, BY) for statistic in (PAPER, None))
    table = (
        stats.round_trips(samples, BY)
        .join(stats.counts(batches, BY), on=BY)
        .join(paper, on=BY)
        .join(ours.select(*BY, mean_kBps="throughput_kBps"), on=BY)
        .sort("size")
    )
    on_wire = dict(_on_wire(run, wires))
    for row in table.iter_rows(named=True):
        yield Point(
            size=row["size"],
            calls=row["calls"],
            series=row["series"],
            paper_kBps=row["throughput_kBps"],
            mean_kBps=row["mean_kBps"],
            sd_pct=row["throughput_stddev_pct"],
            median_us=row["rtt_median_us"],
            least_us=row["rtt_min_us"],
            wire=on_wire.get(row["size"]),
        )


def _on_wire(run: Measured, wires: Wires) -> Iterator[tuple[int, OnWire]]:
    watched = run.calls(ok=True).filter(pl.col("call").rank("ordinal").over("batch") <= WATCHED)
    flights = run.flights_during(watched)
    for (size,), calls in watched.group_by("size", maintain_order=True):
        seen = [_seen(run, flights, call, wires.cells) for call in calls.iter_rows(named=True)]
        middle = sorted(seen, key=lambda each: each.parts.total_ns)[(len(seen) - 1) // 2]
        cells = [each.cells for each in seen if each.cells is not None]
        yield (
            int(size),
            OnWire(
                median_low(each.carried_us for each in seen),
                median_low(each.packets for each in seen),
                median_low(cells) if cells else None,
                middle.parts,
            ),
        )


def _seen(
    run: Measured, flights: Flights, call: Mapping[str, Any], cells: Callable[[int], int | None] | None
) -> OnWire:
    least = LONGEST_ACK if call["transport"] == "tcp" else 0
    begin, end = call["start_ns"], call["end_ns"]
    data = [flight for flight in flights.between(begin, end) if _inside(flight, begin, end, least)]
    counted = [cells(flight.length) for flight in data] if cells else [None]
    return OnWire(
        sum(flight.end_ns - flight.begin_ns for flight in data) / 1e3,
        len(data),
        None if None in counted else sum(each for each in counted if each is not None),
        run.share_of(call, flights),
    )


def _inside(flight: Flight, begin_ns: int, end_ns: int, longer_than: int) -> bool:
    return flight.begin_ns >= begin_ns and flight.end_ns <= end_ns and flight.length > longer_than
