# SPDX-License-Identifier: Apache-2.0
"""Whether the host was quiet while a figure was taken: by two guests that run free, in the same minutes.

What they reach is checked against the best that this host has ever given them, which is kept between benchmarks. A host
that was never quiet cannot be recognised by that: its best is then no better than what it gives now.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

NEAR = 1.15
"""A host is quiet while free-running guests take at most so much of their best time."""
ENOUGH = 5
"""Readings of a host before its best is worth anything."""


@dataclass
class Minutes:
    """Those in which the figures of one benchmark were taken: wall seconds for a virtual second, running free."""

    readings: list[float] = field(default_factory=list)

    @property
    def median(self) -> float | None:
        return statistics.median(self.readings) if self.readings else None

    def quiet(self, best: float) -> bool:
        """Whether the host gave them nearly its best."""
        return self.median is not None and self.median <= NEAR * best


@dataclass(frozen=True)
class Best:
    """What a host has given guests that run free."""

    wall_per_virtual: float
    on: str
    """The day."""
    readings: int


class Meter:
    """Takes readings, and keeps the best of this host in a file."""

    def __init__(self, read: Callable[[], float | None], host: str, file: Path) -> None:
        self.minutes = Minutes()
        self._read = read
        self._host = host
        self._file = file

    def begin(self) -> Minutes:
        """Other figures from here on, with readings of their own."""
        self.minutes = Minutes()
        return self.minutes

    def look(self) -> float | None:
        """One reading more; None where guests cannot run free here."""
        reading = self._read()
        if reading is not None:
            self.minutes.readings.append(reading)
            self._keep(reading)
        return reading

    @property
    def best(self) -> float | None:
        """None until there are enough readings of this host."""
        best = self._known().get(self._host)
        return None if best is None or best.readings < ENOUGH else best.wall_per_virtual

    @property
    def said(self) -> str:
        """What guests running free did in the minutes of the figures that are being taken."""
        median, best = self.minutes.median, self.best
        if median is None:
            return "no guests running free"
        beside = "too few readings for a best" if best is None else f"best of this host {best:.2f}"
        return f"guests running free {median:.2f} wall s / virtual s, {beside}"

    def line(self) -> str:
        """The best of this host, and when it was."""
        best = self._known().get(self._host)
        if best is None:
            return "guests running free: never measured on this host"
        few = "" if best.readings >= ENOUGH else f", fewer than the {ENOUGH} that it takes to say quiet"
        return (
            f"guests running free: best of this host {best.wall_per_virtual:.3f} wall s / virtual s on {best.on}, "
            f"of {best.readings} readings{few}; quiet is within {NEAR - 1:.0%} of it"
        )

    def _keep(self, reading: float) -> None:
        known = self._known()
        today = Best(reading, time.strftime("%Y-%m-%d"), 0)
        best = known.get(self._host, today)
        better = today if reading < best.wall_per_virtual else best
        known[self._host] = Best(better.wall_per_virtual, better.on, best.readings + 1)
        self._file.parent.mkdir(parents=True, exist_ok=True)
        partial = self._file.with_suffix(".partial")
        partial.write_text(json.dumps({host: asdict(each) for host, each in known.items()}, indent=1) + "\n")
        partial.rename(self._file)

    def _known(self) -> dict[str, Best]:
        try:
            return {host: Best(**kept) for host, kept in json.loads(self._file.read_text()).items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}
