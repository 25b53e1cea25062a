# SPDX-License-Identifier: Apache-2.0
"""Seeds derived from the run's seed: a separate one for each purpose, so that a new one does not shift the others."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence


def derive(seed: int, *names: str | int) -> int:
    """63 bits for the purpose `names` in the run with `seed`: the first of SHA-256 over all of them."""
    text = "\0".join(["sundial", str(seed), *(str(name) for name in names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def machine_seed(seed: int, machine: str) -> int:
    """Seed of a guest's entropy."""
    return derive(seed, "machine", machine)


def epoch(seed: int, machine: str, *process: str | int) -> int:
    """Epoch of a node of MBCF, or of a process that is a node; 32 bits, never 0."""
    return derive(seed, "epoch", machine, *process) % (2**32 - 1) + 1


def series_seed(seed: int, series: int) -> int:
    """Seed of a series."""
    return derive(seed, "series", series)


def shuffled(sizes: Sequence[int], seed: int) -> list[int]:
    """`sizes` in an order that depends only on `seed` (Fisher-Yates with values of `random.Random.random`)."""
    order = list(sizes)
    draw = random.Random(seed)  # random() is the same in every Python version
    for last in range(len(order) - 1, 0, -1):
        other = int(draw.random() * (last + 1))
        order[last], order[other] = order[other], order[last]
    return order
