# SPDX-License-Identifier: Apache-2.0
"""Order, straight lines, runs of slow sizes, and how much of a time goes by cells. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import polars as pl

LEAST_RUN = 3
"""So many sizes one after another are a run; fewer are single ones."""
NORMAL = 1.4826
"""Standard deviation by median deviation, of normal noise."""
MEDIAN_BY_MEAN = 1.2533
"""Standard error of a median by that of a mean, of normal noise."""


def spearman(values: Mapping[int, float]) -> float:
    """Rank correlation of values with their sizes; nan where there are fewer than two, or all are equal."""
    return correlation(values, {size: float(size) for size in values})


def correlation(one: Mapping[int, float], other: Mapping[int, float]) -> float:
    """Rank correlation of two values over the sizes that both have; nan where that says nothing."""
    common = [size for size in one if size in other]
    columns = {"x": [one[size] for size in common], "y": [other[size] for size in common]}
    table = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Float64))
    value = table.select(pl.corr("x", "y", method="spearman")).item()
    return float("nan") if value is None else float(value)


def even(values: Mapping[int, float], step: int) -> dict[int, float]:
    """Those at equal distances, `step` or as often doubled as sizes are missing: where some sizes are measured more
    closely they must not count for more."""
    last = max(values, default=0)
    while step <= last and any(size not in values for size in range(step, last + 1, step)):
        step *= 2
    return {size: value for size, value in values.items() if size % step == 0}


def line(values: Mapping[int, float]) -> tuple[float, float]:
    """Value at 0 and slope of the line of Theil and Sen, which up to 29 % of outliers cannot move.

    There must be two sizes at least.
    """
    x, y = np.array(list(values), float), np.array(list(values.values()), float)
    first, second = np.triu_indices(len(x), 1)
    slope = float(np.median((y[second] - y[first]) / (x[second] - x[first])))
    return float(np.median(y - slope * x)), slope


@dataclass(frozen=True)
class Run:
    """Sizes one after another, the first and last included."""

    first: int
    last: int
    sizes: int
    factor: float
    """Median of the times by those of the surroundings."""


def slow_runs(times: Mapping[int, float], factor: float) -> tuple[list[Run], list[int]]:
    """Runs of sizes whose time is at least `factor` times that of the line through all, and single sizes like them."""
    if len(times) < 2:
        return [], []
    at_zero, slope = line(times)
    least = min(times.values())
    ratios = {size: times[size] / max(at_zero + slope * size, least) for size in sorted(times)}
    runs, single = [], []
    for slow, group in groupby(ratios, key=lambda size: ratios[size] >= factor):
        sizes = list(group)
        if slow and len(sizes) >= LEAST_RUN:
            middle = float(np.median([ratios[size] for size in sizes]))
            runs.append(Run(sizes[0], sizes[-1], len(sizes), middle))
        elif slow:
            single += sizes
    return runs, single


@dataclass(frozen=True)
class ByCells:
    """How much of the time of a cell a value grows with each cell, beside what it grows with each byte."""

    cell_times: float
    error: float
    """Standard error."""

    @property
    def shows(self) -> bool:
        """Growth by cells is there, beyond doubt."""
        return self.cell_times > 2 * self.error

    @property
    def text(self) -> str:
        return f"{self.cell_times:.3f} \u00b1 {self.error:.3f}"


def by_cells(
    values_us: Mapping[int, float], cells: Mapping[int, int], packets: Mapping[int, int], cell_us: float
) -> ByCells | None:
    """Least squares over all sizes: a straight line with a slope in bytes, one in cells, and a level for each number of
    packets. None where too few sizes differ to tell them apart."""
    sizes = [size for size in sorted(values_us) if size in cells and size in packets]
    levels = sorted({packets[size] for size in sizes})
    columns = [[float(packets[size] == level) for size in sizes] for level in levels]
    columns += [[float(size) for size in sizes], [float(cells[size]) for size in sizes]]
    design, y = np.array(columns).T, np.array([values_us[size] for size in sizes])
    free = len(sizes) - len(columns)
    if free < 1 or np.linalg.matrix_rank(design) < len(columns):
        return None
    found, *_ = np.linalg.lstsq(design, y, rcond=None)
    left = y - design @ found
    covariance = np.linalg.inv(design.T @ design) * float(left @ left) / free
    return ByCells(float(found[-1]) / cell_us, float(np.sqrt(covariance[-1, -1])) / cell_us)


def by_steps(values_us: Mapping[int, float], gained: Mapping[tuple[int, int], int], cell_us: float) -> ByCells | None:
    """How much more a value grows at steps from one size to the next that gain a cell than at those that gain none.

    Medians, so that steps of software at single sizes move nothing; their standard error is that of normal noise, by
    the median deviation. None where there are fewer than three steps of either kind.
    """
    groups = [
        np.array([values_us[high] - values_us[low] for (low, high), cells in gained.items() if cells == count])
        for count in (0, 1)
    ]
    if min(len(group) for group in groups) < LEAST_RUN:
        return None
    middles = [float(np.median(group)) for group in groups]
    left = np.concatenate([group - middle for group, middle in zip(groups, middles, strict=True)])
    spread = NORMAL * float(np.median(np.abs(left)))
    error = MEDIAN_BY_MEAN * spread * float(np.sqrt(sum(1 / len(group) for group in groups)))
    return ByCells((middles[1] - middles[0]) / cell_us, error / cell_us)


def beside_line(values: Mapping[int, float]) -> dict[int, float]:
    """What is above or below the straight line of least squares; two sizes at least."""
    sizes = sorted(values)
    x, y = np.array(sizes, float), np.array([values[size] for size in sizes], float)
    slope, at_zero = np.polyfit(x, y, 1)
    return dict(zip(sizes, (y - (slope * x + at_zero)).tolist(), strict=True))


def fold(values: Mapping[int, float], period: int) -> dict[int, tuple[float, float]]:
    """Mean and standard deviation of what is beside the straight line through the values, by size modulo `period`."""
    phases: dict[int, list[float]] = {}
    for size, left in beside_line(values).items():
        phases.setdefault(size % period, []).append(left)
    return {phase: (float(np.mean(phases[phase])), float(np.std(phases[phase]))) for phase in sorted(phases)}


def neighbours(sizes: Sequence[int], step: int) -> list[tuple[int, int]]:
    """Pairs of sizes that are so far apart."""
    there = set(sizes)
    return [(size, size + step) for size in sorted(there) if size + step in there]
