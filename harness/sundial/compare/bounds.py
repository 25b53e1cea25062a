# SPDX-License-Identifier: Apache-2.0
"""`--fail-above "p50 5 %"`: by how much a figure may be above the first run's. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sundial.errors import BadInput
from sundial.seams.compare import Figures

OPTION = "--fail-above"
TIMES = {"p50": "p50_us", "p99": "p99_us"}
COUNTS = {"retransmissions": "retransmissions", "errors": "errors"}
_US = {"ns": 0.001, "us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6}
_TEXT = re.compile(r"\s*(?P<metric>[a-z0-9]+)\s+(?P<number>\d+(\.\d+)?)\s*(?P<unit>[%\w]*)\s*")
ALLOWED = (
    "p50 or p99 and a share or a time, such as 'p50 5 %' or 'p99 200 us'; retransmissions or errors and a share or a "
    "number, such as 'retransmissions 3'"
)


@dataclass(frozen=True)
class Bound:
    """The most that a figure may be above that of the first run: a share of it, or an amount (times in us)."""

    text: str
    metric: str
    amount: float
    relative: bool

    def exceeded(self, first: Figures, other: Figures) -> str | None:
        """How the figure exceeds the bound, in words. Under the real clock the whole interval must be above zero."""
        name = {**TIMES, **COUNTS}[self.metric]
        before, now = getattr(first, name), getattr(other, name)
        if before is None or now is None:
            return None
        most = before * (1 + self.amount / 100) if self.relative else before + self.amount
        if now <= most:
            return None
        if other.interval is not None and self.metric in TIMES and getattr(other.interval, name)[0] <= 0:
            return None
        unit = " µs" if self.metric in TIMES else ""
        digits = ".1f" if self.metric in TIMES else "d"
        return f"{self.metric} is {now:{digits}}{unit}, was {before:{digits}}{unit} ({self.text})"


def parse(text: str) -> Bound:
    """Raises BadInput."""
    found = _TEXT.fullmatch(text)
    if found is None:
        raise BadInput(f"{text!r} is not a figure and a bound", field=OPTION, allowed=ALLOWED)
    metric, number, unit = found["metric"], float(found["number"]), found["unit"]
    if metric not in TIMES and metric not in COUNTS:
        raise BadInput(f"{metric!r} is not a figure", field=OPTION, allowed=", ".join([*TIMES, *COUNTS]))
    if unit == "%":
        return Bound(text.strip(), metric, number, relative=True)
    if metric in TIMES:
        if unit not in _US:
            raise BadInput(f"{text!r} has no unit of {metric}", field=OPTION, allowed=f"%, {', '.join(_US)}")
        return Bound(text.strip(), metric, number * _US[unit], relative=False)
    if unit:
        raise BadInput(f"{text!r} has the wrong unit {unit!r}", field=OPTION, allowed="% or none")
    return Bound(text.strip(), metric, number, relative=False)
