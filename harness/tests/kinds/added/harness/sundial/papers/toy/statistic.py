# SPDX-License-Identifier: Apache-2.0
"""The toys' paper's statistic: the slower half does not count."""

from __future__ import annotations

from dataclasses import dataclass

from sundial.model.statistic import Statistic


@dataclass(frozen=True)
class FasterHalf:
    """The faster half of all series."""

    rule: str = "the slower half of the series dropped"
    sentence: str = "mean over the faster half of the series"
    throughput_note: str = "mean over the faster half of the series;"
    spread_note: str = ""

    def dropped(self, series: int) -> int:
        return series // 2


KIND: Statistic = FasterHalf()
