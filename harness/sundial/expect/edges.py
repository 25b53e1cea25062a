# SPDX-License-Identifier: Apache-2.0
"""Sizes at which the number of packets, or of their cells, changes, and their neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Count = Callable[[int], tuple[int, int]]
"""Packets or cells of request and reply at a size."""

CELL_STEPS = (-1, 0, 1)
"""Neighbours of a size that adds a cell."""


def edges(count: Count, smallest: int, largest: int, least: int, most: int, steps: Sequence[int]) -> list[int]:
    """Sizes at and next to each edge, sorted, within smallest..largest.

    An edge is a size at which `count` is another one than at one byte less; `steps` are the neighbours to give of each.
    `least` and `most`: what the protocol can carry.
    """
    low, high = max(smallest, least), min(largest, most)
    reach = max(steps)
    sizes: set[int] = set()
    before = count(max(low - reach - 1, least))
    for size in range(max(low - reach, least + 1), min(high + reach, most) + 1):
        now = count(size)
        if now != before:
            sizes.update(size + step for step in steps)
        before = now
    return sorted(size for size in sizes if low <= size <= high)
