# SPDX-License-Identifier: Apache-2.0
"""How much of santos18 is run, by scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Extent:
    """Calls of a function."""

    calls: int
    """In what the paper measured: both systems, its twelve functions, RPyC with lists."""
    beside_calls: int
    """In what it did not: other systems, the distance with tuples or without numpy, TCP_NODELAY."""
    slope_calls: int
    """For each round trip time."""
    delays: Sequence[str]
    """Of the link, one way, whose round trips the slopes go by."""


EXTENTS = {
    "smoke": Extent(4, 4, 2, ("1 ms", "4 ms")),
    "quick": Extent(48, 48, 6, ("1 ms", "2 ms", "4 ms")),
    "full": Extent(256, 64, 12, ("1 ms", "2 ms", "4 ms", "8 ms")),
    "paper": Extent(512, 64, 12, ("1 ms", "2 ms", "4 ms", "8 ms")),
}
"""By scale, the smallest first. Paper: as many calls as the paper made."""
