# SPDX-License-Identifier: Apache-2.0
"""The machine model: how many instructions a second put Linux nearest to the paper's reference system. Pure.

Nearness is the sum of squared logarithms of measured by printed, so that twice as fast is as far as half as fast. The
candidates are the speeds that virtual time can have; nothing else is fitted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

Point = tuple[int, int]
"""(table, size)"""


@dataclass(frozen=True)
class Candidate:
    """One speed, with what was measured at it."""

    mips: Decimal
    measured: Mapping[Point, float]
    distance: float
    """Root of the mean of squared logarithms of measured by printed; 0 is equal everywhere."""


def distance(printed: Mapping[Point, float], measured: Mapping[Point, float]) -> float:
    """Over the points of both; at least one."""
    logs = [math.log(measured[point] / value) for point, value in printed.items() if point in measured]
    return math.sqrt(sum(each * each for each in logs) / len(logs))


def nearest(
    speeds: Sequence[Decimal],
    first: Decimal,
    printed: Mapping[Point, float],
    measure: Callable[[Decimal], Mapping[Point, float]],
) -> tuple[Candidate, list[Candidate]]:
    """The speed nearest to what was printed, and all that were tried, fastest first.

    A slower machine is slower at every point, so the distance falls to one minimum and rises again: from `first` on the
    walk goes downhill, and ends when both neighbours of the best have been tried.
    """
    order = sorted(speeds)
    tried: dict[int, Candidate] = {}

    def look(place: int) -> Candidate:
        if place not in tried:
            measured = measure(order[place])
            tried[place] = Candidate(order[place], measured, distance(printed, measured))
        return tried[place]

    best = order.index(first)
    while True:
        here = look(best)
        neighbours = [place for place in (best - 1, best + 1) if 0 <= place < len(order)]
        # Measured as a whole slower than printed: the better one can only be faster, and the other way round.
        neighbours.sort(key=lambda place: (place > best) != (_bias(printed, here.measured) > 0))
        better = next((place for place in neighbours if look(place).distance < here.distance), None)
        if better is None:
            return here, [tried[place] for place in sorted(tried, reverse=True)]
        best = better


def _bias(printed: Mapping[Point, float], measured: Mapping[Point, float]) -> float:
    return sum(math.log(measured[point] / value) for point, value in printed.items() if point in measured)
