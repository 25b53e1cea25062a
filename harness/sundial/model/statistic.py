# SPDX-License-Identifier: Apache-2.0
"""Rules that turn the series of a run into one throughput for each size: the mean of all, or the rule of a paper.

A paper's rule is `statistic.py` in its folder (see `sundial.kinds`); `scenario.STATISTICS` has all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@runtime_checkable
class Statistic(Protocol):
    """The series that count, and the rule's texts in reports."""

    @property
    def rule(self) -> str:
        """The rule, for authors of scenarios."""

    @property
    def sentence(self) -> str:
        """The rule, for readers of a report."""

    @property
    def throughput_note(self) -> str:
        """Text in the caption of throughputs."""

    @property
    def spread_note(self) -> str:
        """Text at the end of the caption of standard deviations; may be empty."""

    def dropped(self, series: int) -> int:
        """Number of series of one size to leave out, those with the lowest throughput, by the number of all."""


@dataclass(frozen=True)
class Mean:
    """Every series counts."""

    rule: str = "mean of all"
    sentence: str = "mean over all series"
    throughput_note: str = "mean over the series;"
    spread_note: str = ""

    def dropped(self, series: int) -> int:
        return 0
