# SPDX-License-Identifier: Apache-2.0
"""How much of bilas97 is run, by scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Extent:
    """Calls of one kind and size, and sizes in bytes."""

    calls: int
    sizes: Sequence[int]
    """Of calls."""
    stream_sizes: Sequence[int]
    transfers: int
    """Of a stream."""
    latencies: Sequence[str]
    """Of a word over the backplane: a design's, the default's, and the project's own figure."""


EXTENTS = {
    "smoke": Extent(5, (0, 64, 4096), (64, 4096), 8, ("4.25 us",)),
    "quick": Extent(20, (0, 4, 64, 1024, 4096), (8, 64, 1024, 65536), 16, ("3.7 us", "4.25 us", "4.8 us")),
    "full": Extent(
        100,
        (0, 4, 16, 64, 256, 1024, 4096, 16384),
        (8, 64, 256, 1024, 4096, 16384, 65536),
        64,
        ("3.7 us", "4.25 us", "4.8 us"),
    ),
}
"""By scale, the smallest first."""
