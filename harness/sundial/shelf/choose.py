# SPDX-License-Identifier: Apache-2.0
"""Which entries a filter means, and which may be removed. Pure: time comes in as an argument."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sundial.errors import BadInput
from sundial.shelf.entries import Entry

_SECONDS = {"min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_AGE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(min|h|d|w)\s*")
AGE_ALLOWED = "a number of min, h, d or w, such as 30d"
SINCE_ALLOWED = f"a date such as 2026-11-27, or {AGE_ALLOWED}"


@dataclass(frozen=True)
class Filter:
    """What `ls` shows; None or empty: everything."""

    since_s: float | None = None
    verdict: str | None = None
    scenario: str | None = None
    tags: tuple[str, ...] = ()

    def takes(self, entry: Entry) -> bool:
        return (
            (self.since_s is None or entry.changed_s >= self.since_s)
            and (self.verdict is None or entry.verdict == self.verdict)
            and (self.scenario is None or entry.scenario == self.scenario)
            and set(self.tags) <= set(entry.notes.tags)
        )


def parse_age(text: str, field: str) -> float:
    """Seconds. Raises BadInput."""
    found = _AGE.fullmatch(text)
    if found is None:
        raise BadInput(f"{text!r} is not an age", field=field, allowed=AGE_ALLOWED)
    return float(found[1]) * _SECONDS[found[2]]


def parse_since(text: str, now_s: float, field: str) -> float:
    """Seconds since 1970: of a date in local time, or of an age before now. Raises BadInput."""
    if _AGE.fullmatch(text):
        return now_s - parse_age(text, field)
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        raise BadInput(f"{text!r} is neither a date nor an age", field=field, allowed=SINCE_ALLOWED) from None


def older(entries: Sequence[Entry], now_s: float, age_s: float) -> list[Entry]:
    """Those whose record is older; neither tagged ones nor the latest."""
    return [entry for entry in _free(entries) if now_s - entry.changed_s > age_s]


def surplus(entries: Sequence[Entry], keep: int) -> list[Entry]:
    """What is left to remove if tagged ones and the `keep` latest others stay. `entries`: the oldest first."""
    free = [entry for entry in entries if _may_go(entry)]
    return free[: max(0, len(free) - max(1, keep))]


def _free(entries: Sequence[Entry]) -> list[Entry]:
    """Neither tagged nor damaged, nor the latest of all. `entries`: the oldest first."""
    latest = next((entry for entry in reversed(entries) if entry.kind != "damaged"), None)
    return [entry for entry in entries if _may_go(entry) and entry is not latest]


def _may_go(entry: Entry) -> bool:
    return not entry.notes.tags and entry.kind != "damaged"
