# SPDX-License-Identifier: Apache-2.0
"""The paper's statistic: of each size the series with the lowest throughput is dropped, the others are averaged."""

from __future__ import annotations

from dataclasses import dataclass

from sundial.model.statistic import Statistic


@dataclass(frozen=True)
class WithoutSlowest:
    """One series is dropped where there are at least two."""

    rule: str = "the lowest throughput of each size dropped, mean of the rest"
    sentence: str = (
        "as in kedziera98: of each size the series with the lowest throughput is dropped, mean of the others"
    )
    throughput_note: str = "of each size's series the slowest is dropped;"
    spread_note: str = ", without the slowest series"

    def dropped(self, series: int) -> int:
        return 1 if series > 1 else 0


KIND: Statistic = WithoutSlowest()
