# SPDX-License-Identifier: Apache-2.0
"""What is said of a statement."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Self

MET: Literal["met"] = "met"
NOT_MET: Literal["not met"] = "not met"
UNDECIDABLE: Literal["undecidable"] = "undecidable"
MOST_LISTED = 8


@dataclass(frozen=True)
class Judged:
    """The outcome, what was measured in short, and the reason."""

    outcome: Literal["met", "not met", "undecidable"]
    measured: str
    reason: str

    @classmethod
    def of(cls, good: bool, measured: str, reason: str) -> Self:
        return cls(MET if good else NOT_MET, measured, reason)


def listed(words: Iterable[str]) -> str:
    """The first few, and how many more there are."""
    found = list(words)
    more = f" and {len(found) - MOST_LISTED} more" if len(found) > MOST_LISTED else ""
    return ", ".join(found[:MOST_LISTED]) + more
