# SPDX-License-Identifier: Apache-2.0
"""One figure: what was measured, how often, and what it is checked against."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from benchmarks.quiet import Minutes


@dataclass(frozen=True)
class Target:
    """A promise: `below`, `at most` or `at least` a value, or `exactly` it."""

    sense: Literal["below", "at most", "at least", "exactly"]
    value: float

    def holds(self, measured: float) -> bool:
        if self.sense == "below":
            return measured < self.value
        if self.sense == "at most":
            return measured <= self.value
        if self.sense == "at least":
            return measured >= self.value
        return measured == self.value

    def __str__(self) -> str:
        return f"{'' if self.sense == 'exactly' else self.sense + ' '}{number(self.value)}"


@dataclass(frozen=True)
class Peer:
    """Another figure of the same kind, measured in the same minutes."""

    name: str
    value: float

    def __str__(self) -> str:
        return f"{self.name}: {number(self.value)}"


@dataclass(frozen=True)
class Figure:
    """Values of one kind, one for each repeat. The median is what counts."""

    subject: str
    name: str
    unit: str
    values: tuple[float, ...]
    against: Target | Peer | None = None
    note: str = ""
    anywhere: bool = False
    """The same on every host: a count, a size, virtual time. Load beside it does not matter."""
    minutes: Minutes | None = None
    """In which it was taken."""

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def spread(self) -> tuple[float, float]:
        """Lowest and highest."""
        return min(self.values), max(self.values)

    @property
    def ratio(self) -> float | None:
        """Measured by target; None where there is nothing to divide by."""
        if self.against is None or self.against.value == 0:
            return None
        return self.median / self.against.value

    @property
    def verdict(self) -> Literal["pass", "fail"] | None:
        """Against a target only: a peer is not a promise."""
        if not isinstance(self.against, Target):
            return None
        return "pass" if self.against.holds(self.median) else "fail"

    def host(self, best: float | None) -> str:
        """Whether it was quiet enough for the figure to be quoted: what guests that ran free in these minutes reached,
        and the best that they reached on this host."""
        if self.anywhere:
            return "any"
        if best is None or self.minutes is None or self.minutes.median is None:
            return "unknown"
        word = "quiet" if self.minutes.quiet(best) else "loaded"
        return f"{word}, {number(self.minutes.median)} ({number(best)})"

    def to_json(self, best: float | None) -> dict[str, Any]:
        kind = None if self.against is None else type(self.against).__name__.lower()
        return {
            "subject": self.subject,
            "figure": self.name,
            "unit": self.unit,
            "median": self.median,
            "values": list(self.values),
            "against": None if self.against is None else str(self.against),
            "against_kind": kind,
            "ratio": self.ratio,
            "verdict": self.verdict,
            "note": self.note,
            "host": self.host(best),
            "free_running": [] if self.minutes is None else self.minutes.readings,
        }


@dataclass(frozen=True)
class Unmeasured:
    """A figure that could not be measured here, and why."""

    subject: str
    name: str
    why: str

    def to_json(self, best: float | None) -> dict[str, Any]:
        return {"subject": self.subject, "figure": self.name, "unmeasured": self.why}


Outcome = Figure | Unmeasured


def below(value: float) -> Target:
    return Target("below", value)


def at_most(value: float) -> Target:
    return Target("at most", value)


def at_least(value: float) -> Target:
    return Target("at least", value)


def percentile(values: Sequence[float], percent: float) -> float:
    """The value that `percent` of them do not exceed (nearest rank)."""
    ordered = sorted(values)
    rank = max(1, -(-len(ordered) * percent // 100))
    return ordered[int(rank) - 1]


def number(value: float) -> str:
    """Three significant digits, thousands apart, no exponent."""
    if abs(value) >= 1000 or value == 0:
        return f"{value:,.0f}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
