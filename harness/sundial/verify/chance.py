# SPDX-License-Identifier: Apache-2.0
"""What is drawn by chance: how often something may happen that has a probability."""

from __future__ import annotations

from math import log

UNLIKELY = 1e-12
"""A share that is met less often is a mismatch: with 1,000 runs a day, once in three million years."""


def hardly(seen: int, tried: int, share: float, *, fewer: bool) -> bool:
    """Whether so few (or so many) of `tried` would happen less often than UNLIKELY, by Chernoff's bound."""
    if not tried or seen > tried or (seen >= tried * share) == fewer:
        return seen > tried
    part = seen / tried
    if share >= 1:
        return seen < tried
    terms = ((part, share), (1 - part, 1 - share))
    return tried * sum(one * log(one / other) for one, other in terms if one) > -log(UNLIKELY)
