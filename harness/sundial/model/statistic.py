# SPDX-License-Identifier: Apache-2.0
"""How the series of a run become one throughput for each size: the mean of all, or the rule of a paper.

A paper brings its rule as `statistic.py` in its folder (see `sundial.kinds`); `scenario.STATISTICS` has all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@runtime_checkable
class Statistic(Protocol):
    """Which series count, and the words that a report has for it."""

    @property
    def rule(self) -> str:
        """What it takes, for those who write a scenario."""

    @property
    def sentence(self) -> str:
        """The same for the reader of a report."""

    @property
    def throughput_note(self) -> str:
        """In the caption of throughputs."""

    @property
    def spread_note(self) -> str:
        """At the end of the caption of standard deviations; may be empty."""

    def dropped(self, series: int) -> int:
        """How many of so many series of one size are left out, those with the lowest throughput."""


@dataclass(frozen=True)
class Mean:
    """Every series counts."""

    rule: str = "mean of all"
    sentence: str = "mean over all series"
    throughput_note: str = "mean over the series;"
    spread_note: str = ""

    def dropped(self, series: int) -> int:
        return 0
