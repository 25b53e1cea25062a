# SPDX-License-Identifier: Apache-2.0
"""Sizes at which the number of packets, or of their cells, changes, and their neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

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
    for size in _changes(count, max(low - reach - 1, least), min(high + reach, most)):
        sizes.update(size + step for step in steps)
    return sorted(size for size in sizes if low <= size <= high)


def _changes(count: Count, low: int, high: int) -> Iterator[int]:
    """Sizes above `low` at which there is another count than at one byte less. More bytes are never fewer packets or
    cells, so where both ends of a stretch have the same count nothing changes between them."""
    stretches = [(low, count(low), high, count(high))] if low < high else []
    while stretches:
        low, below, high, above = stretches.pop()
        if below == above:
            continue
        if high - low == 1:
            yield high
            continue
        middle = (low + high) // 2
        half = count(middle)
        stretches += [(low, below, middle, half), (middle, half, high, above)]
