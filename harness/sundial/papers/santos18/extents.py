# SPDX-License-Identifier: Apache-2.0
"""How much of santos18 is run, by scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Extent:
    """Calls of a function."""

    calls: int
    slope_calls: int
    """For each round trip time."""
    delays: Sequence[str]
    """Of the link, one way, whose round trips the slopes go by."""


EXTENTS = {
    "smoke": Extent(4, 2, ("1 ms", "4 ms")),
    "quick": Extent(48, 6, ("1 ms", "2 ms", "4 ms")),
    "full": Extent(256, 12, ("1 ms", "2 ms", "4 ms", "8 ms")),
    "paper": Extent(512, 12, ("1 ms", "2 ms", "4 ms", "8 ms")),
}
"""By scale, the smallest first. Paper: as many calls as the paper made."""
