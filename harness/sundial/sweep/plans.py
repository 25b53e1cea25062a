# SPDX-License-Identifier: Apache-2.0
"""Which runs are made next, from what those before came to. Pure: a plan is asked again after each run, and answers all
runs that it wants so far. So a sweep that was interrupted goes on where it was, from what the store has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from sundial.model.sweep import Sweep, Threshold, Until
from sundial.sweep.design import Axis, Cell, Point, plain

STEP = 2
"""Seeds that are added at a time."""

Metrics = Mapping[str, float | None]
"""Values of one run by the names of metrics; empty if it did not pass."""
Seen = Mapping[Point, Metrics]
Interval = Callable[[Sequence[float], Cell], tuple[float, float]]
"""The 95 % interval of the median of values, which are at least two, of a cell."""


class Plan(Protocol):
    """The runs of a sweep."""

    def wanted(self, seen: Seen) -> Sequence[Point]:
        """All runs that are wanted so far; in the same order each time."""

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest number of runs."""


@dataclass(frozen=True)
class Fixed:
    """All runs are known."""

    points: Sequence[Point]

    def wanted(self, seen: Seen) -> Sequence[Point]:
        return self.points

    @property
    def bounds(self) -> tuple[int, int]:
        return len(self.points), len(self.points)


@dataclass(frozen=True)
class Narrow:
    """Seeds of each cell until the interval of the metric is narrow."""

    cells: Sequence[Cell]
    first_seed: int
    until: Until
    interval: Interval

    def wanted(self, seen: Seen) -> Sequence[Point]:
        return [point for cell in self.cells for point in self._of(cell, seen)]

    def _of(self, cell: Cell, seen: Seen) -> list[Point]:
        count = self.until.least
        while True:
            points = [Point(cell, self.first_seed + number) for number in range(count)]
            if count >= self.until.most or any(point not in seen for point in points):
                return points
            if self.is_narrow(cell, [seen[point] for point in points]):
                return points
            count = min(count + STEP, self.until.most)

    def is_narrow(self, cell: Cell, runs: Sequence[Metrics]) -> bool:
        """True if the interval is as narrow as asked for; runs without a value give none."""
        values = values_of(runs, self.until.metric)
        if len(values) < 2:
            return False
        low, high = self.interval(values, cell)
        return (high - low) / 2 <= float(self.until.halfwidth) * abs((high + low) / 2)

    @property
    def bounds(self) -> tuple[int, int]:
        return len(self.cells) * self.until.least, len(self.cells) * self.until.most


@dataclass(frozen=True)
class Crossing:
    """What is known of the place at which a metric reaches a level."""

    cell: Cell
    """Without a value on the axis."""
    low: str
    high: str
    """It is between these values, as far as known."""
    words: str
    is_certain: bool


@dataclass(frozen=True)
class Bisect:
    """Values of one axis, ever closer to the place where a metric reaches a level."""

    cells: Sequence[Cell]
    axes: Sequence[Axis]
    seeds: range
    threshold: Threshold
    interval: Interval

    def wanted(self, seen: Seen) -> Sequence[Point]:
        return list(dict.fromkeys(point for cell in self.cells for point in self._search(cell, seen)[0]))

    def crossings(self, seen: Seen) -> list[Crossing | None]:
        """What came of each cell; None while it is not over."""
        return [self._search(cell, seen)[1] for cell in self.cells]

    def _search(self, cell: Cell, seen: Seen) -> tuple[list[Point], Crossing | None]:
        points: list[Point] = []
        ends = (0.0, 1.0)
        signs: dict[float, int | None] = {}
        for share in ends:
            more, signs[share] = self._sign(self._with(cell, share), seen)
            points += more
        if None in signs.values():
            return points, None
        low, high = ends
        if 0 in signs.values() or signs[low] == signs[high]:
            at = next((share for share in ends if signs[share] == 0), None)
            side = "above" if signs[low] == 1 else "below"
            words = f"{side} the level at both ends" if at is None else f"undecided at {self._value(at)}"
            return points, self._crossing(cell, low, high, words, certain=at is None)
        while high - low > float(self.threshold.within):
            middle = (low + high) / 2
            more, sign = self._sign(self._with(cell, middle), seen)
            points += more
            if sign is None:
                return points, None
            if sign == 0:
                words = f"undecided at {self._value(middle)}: more seeds, not more steps"
                return points, self._crossing(cell, low, high, words, certain=False)
            low, high = (middle, high) if sign == signs[0.0] else (low, middle)
        words = f"between {self._value(low)} and {self._value(high)}"
        return points, self._crossing(cell, low, high, words, certain=True)

    def _sign(self, cell: Cell, seen: Seen) -> tuple[list[Point], int | None]:
        """The runs that it takes, and on which side of the level the metric is; 0: undecided, None: not known yet."""
        count = min(self.threshold.least, len(self.seeds))
        while True:
            points = [Point(cell, seed) for seed in self.seeds[:count]]
            if any(point not in seen for point in points):
                return points, None
            values = self._values([seen[point] for point in points])
            if len(values) >= 2:
                low, high = self.interval(values, cell)
                if low > 0 or high < 0:
                    return points, 1 if low > 0 else -1
            if count == len(self.seeds):
                return points, 0
            count = min(count + STEP, len(self.seeds))

    def _values(self, runs: Sequence[Metrics]) -> list[float]:
        of, minus = self.threshold.metric, self.threshold.minus
        both = [run for run in runs if run.get(of) is not None and (minus is None or run.get(minus) is not None)]
        other = [0.0 if minus is None else run[minus] or 0.0 for run in both]
        return [(run[of] or 0.0) - less - float(self.threshold.level) for run, less in zip(both, other, strict=True)]

    def _crossing(self, cell: Cell, low: float, high: float, words: str, *, certain: bool) -> Crossing:
        return Crossing(cell, self._value(low), self._value(high), words, certain)

    @property
    def _place(self) -> int:
        return next(number for number, axis in enumerate(self.axes) if axis.name == self.threshold.axis)

    def _value(self, share: float) -> str:
        return plain(self.axes[self._place].at(share))

    def _with(self, cell: Cell, share: float) -> Cell:
        place = self._place
        return (*cell[:place], self.axes[place].at(share), *cell[place + 1 :])

    @property
    def bounds(self) -> tuple[int, int]:
        steps, width = 2, 1.0
        while width > float(self.threshold.within):
            steps, width = steps + 1, width / 2
        return 2 * len(self.cells) * min(self.threshold.least, len(self.seeds)), steps * len(self.cells) * len(
            self.seeds
        )


def values_of(runs: Sequence[Metrics], name: str) -> list[float]:
    """The values of one metric, of the runs that have it."""
    return [value for run in runs if (value := run.get(name)) is not None]


def plan_of(sweep: Sweep, axes: Sequence[Axis], cells: Sequence[Cell], interval: Interval) -> Plan:
    """The plan that a file asks for."""
    if sweep.threshold is not None:
        return Bisect(cells, axes, sweep.seeds, sweep.threshold, interval)
    if sweep.until is not None:
        return Narrow(cells, sweep.seeds.start, sweep.until, interval)
    return Fixed([Point(cell, seed) for cell in cells for seed in sweep.seeds])
