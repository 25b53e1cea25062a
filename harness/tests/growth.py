# SPDX-License-Identifier: Apache-2.0
"""How work grows with its input, measured beside itself: a test may say that, but not how fast the host is."""

from __future__ import annotations

import os
from collections.abc import Callable

from tests.warm_tshark.client import each_by_itself

FACTOR = 8
REPEATS = 2
NEAR_LINEAR = 2.5
"""Of `growth`: work in the square of its input has FACTOR, and caches, garbage and a busy host make linear work seem
more than 1."""


def growth(work: Callable[[int], Callable[[], object]], small: int) -> float:
    """Processor time for each item of FACTOR times `small` items, as a multiple of that of each of `small`.

    `work` prepares so many items and answers what is to be measured; child processes count. Fixed costs make the
    result smaller.
    """
    return _least_s(work(FACTOR * small)) / _least_s(work(small)) / FACTOR


def _least_s(measured: Callable[[], object]) -> float:
    """Of REPEATS runs the one that was disturbed least."""
    spent = []
    for _ in range(REPEATS):
        before = _processor_s()
        with each_by_itself():
            measured()
        spent.append(_processor_s() - before)
    return min(spent)


def _processor_s() -> float:
    return sum(os.times()[:4])
