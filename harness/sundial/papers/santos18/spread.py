# SPDX-License-Identifier: Apache-2.0
"""The times of one function: the paper's statistic, and better ones. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000
CONFIDENCE_PCT = 95.0
WHISKER = 1.5
"""Times the distance of the quartiles (Tukey)."""

Times = NDArray[np.float64]


@dataclass(frozen=True)
class Spread:
    """Milliseconds. The first four are the paper's: of what is within its percentiles."""

    kept: int
    mean: float
    standard_error: float
    trimmed: Times
    calls: int
    whole_mean: float
    least: float
    quartiles: tuple[float, float, float]
    """Of all calls; the second is the median."""
    most: float
    median_between: tuple[float, float]
    """Bootstrap interval of the median, CONFIDENCE_PCT."""

    @property
    def median(self) -> float:
        return self.quartiles[1]

    @property
    def box(self) -> float:
        """The distance of the quartiles."""
        return self.quartiles[2] - self.quartiles[0]

    @property
    def trimmed_box(self) -> float:
        """The same of what is within the paper's percentiles."""
        first, third = np.percentile(self.trimmed, (25, 75))
        return float(third - first)


def spread(times_ns: Sequence[int], percentiles: tuple[float, float], seed: int = 0) -> Spread:
    """Statistics of round trips in ns. Raises ValueError for none.

    What equals a bound is kept. The bounds are interpolated linearly, so that of 512 different times 490 stay.
    """
    if not len(times_ns):
        raise ValueError("no times")
    times = np.sort(np.asarray(times_ns, dtype=np.float64) / 1e6)
    low, high = np.percentile(times, percentiles)
    kept = times[(times >= low) & (times <= high)]
    error = float(kept.std(ddof=1)) / math.sqrt(len(kept)) if len(kept) > 1 else 0.0
    first, median, third = (float(each) for each in np.percentile(times, (25, 50, 75)))
    return Spread(
        kept=len(kept),
        mean=float(kept.mean()),
        standard_error=error,
        trimmed=kept,
        calls=len(times),
        whole_mean=float(times.mean()),
        least=float(times[0]),
        quartiles=(first, median, third),
        most=float(times[-1]),
        median_between=_median_between(times, seed),
    )


def _median_between(times: Times, seed: int) -> tuple[float, float]:
    """The percentile bootstrap; seeded, so that a reproduction says the same twice."""
    generator = np.random.default_rng(seed)
    medians = np.median(times[generator.integers(0, len(times), (RESAMPLES, len(times)))], axis=1)
    tail = (100 - CONFIDENCE_PCT) / 2
    low, high = np.percentile(medians, (tail, 100 - tail))
    return float(low), float(high)
