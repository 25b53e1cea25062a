# SPDX-License-Identifier: Apache-2.0
"""How much of khandker is run, by scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SIZES = (
    0, 1024, 1392, 1393, 4016, 4017, 6000, 8032, 8033, 12048, 12049, 16064, 16065, 20080, 20081, 24096, 24097, 28112,
    28113, 32128, 32129, 48192, 48193, 60240, 60241, 64256, 64257,
)  # fmt: skip
"""27 procedures, as the paper's server has: both sides of its jumps, and of those two that its list lacks."""
SUMMED = (0, 1392, 4016, 4017, 8032, 16064, 24096, 32128, 48192, 64256)
"""Of the other policy: those of table 2, those that are predicted, and the one with the least fack."""
PREDICTED = (8032, 16064, 24096, 32128, 48192, 64256)
LARGE = 4016
"""Of table 1."""


@dataclass(frozen=True)
class Extent:
    """Calls, threads and wires."""

    series: int
    """Times that the sizes are gone through, so that calls come at other phases of the machines' clocks."""
    calls: int
    """For each size and series."""
    unit_calls: int
    """The same, for sizes that unit costs are of."""
    threads: Sequence[int]
    thread_calls: int
    """Of all threads together."""
    wires: Sequence[str]
    """Topologies of table 1."""


HUB, LINK = "two-hosts-10base-t", "two-hosts-10mbit-link"
EXTENTS = {
    "smoke": Extent(1, 4, 8, (1, 2), 8, (HUB,)),
    "quick": Extent(2, 12, 50, (1, 2, 3, 4, 6, 10), 120, (HUB,)),
    "full": Extent(3, 20, 100, range(1, 11), 400, (HUB, LINK)),
    "paper": Extent(5, 40, 200, range(1, 11), 1000, (HUB, LINK)),
}
"""By scale, the smallest first. Paper: as many calls by threads as table 1."""
