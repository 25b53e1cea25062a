# SPDX-License-Identifier: Apache-2.0
"""How much of kedziera98 is run, by scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

GRID = 16
"""Bytes between the paper's sizes."""
LAST = 8192
SPLIT = 2048
"""Below it the scale `paper` has more calls."""

WINDOW = (1024, 1536)
"""Of figure 2, which is an enlargement of figure 1; the paper does not say of where."""
BORDERS = (3936, 3952, 3968, 3984, 5376, 5392, 5408, 5424)
"""Sizes beside which a write of 4000 bytes begins or ceases to stall, at either end."""
SELECTED = (16, 32, 64, 128, 256, 512, 1024, 2048, 3072, 4096, 6144, LAST)
"""Of figure 3 and of raw sockets; the paper does not say which it took."""

Size = int | str
Band = tuple[Sequence[Size], int]
"""Sizes as a scenario has them, and the calls for each of them."""


@dataclass(frozen=True)
class Extent:
    """Sizes, calls and series of the curves."""

    bands: Sequence[Band]
    """Of figures 1, 2 and 4."""
    selected: Sequence[Band]
    """Of figure 3."""
    series: int
    fit_calls: int
    seconds: int
    """Of a stream."""
    cells: bool = True
    """Cells are captured, too."""
    search: bool = True
    """Speeds of machines are searched for; else they are taken as they were found."""
    deadline: str = "1 h"


def _selected(calls: int, sizes: Sequence[int] = SELECTED) -> list[Band]:
    return [(list(sizes), calls)]


_EDGES: list[Size] = [f"64:{LAST}:64", "edges", *BORDERS, f"{WINDOW[0]}:{WINDOW[1]}:{GRID}"]
_SMOKE: list[Size] = [f"512:{LAST}:512", *BORDERS, *range(WINDOW[0], WINDOW[0] + 9 * GRID, GRID)]

EXTENTS = {
    "smoke": Extent([(_SMOKE, 1)], _selected(1), 2, 2, 1, search=False),
    "quick": Extent([(_EDGES, 3)], _selected(3), 3, 10, 2),
    "full": Extent([([f"{GRID}:{LAST}:{GRID}"], 10)], _selected(10), 10, 50, 10, deadline="8 h"),
    "paper": Extent(
        [([f"{GRID}:{SPLIT - GRID}:{GRID}"], 3000), ([f"{SPLIT}:{LAST}:{GRID}"], 100)],
        [*_selected(3000, [size for size in SELECTED if size < SPLIT]),
         *_selected(100, [size for size in SELECTED if size >= SPLIT])],
        10, 100, 10, cells=False, deadline="24 h",
    ),
}  # fmt: skip
"""By scale, the smallest first. Full: as many series as the paper. Paper: as many calls, too."""
