# SPDX-License-Identifier: Apache-2.0
"""Detects a run without progress. Pure: signs of life and the time in, hung machines out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest

from sundial.run.supervisor import Hung

HUNG_S = 15.0
SILENT_PROCESSOR_S = 25.0
"""A boot takes 5 s of a processor or so, however long it has to wait for them on a busy host; later there is a sign
every 5 s under the real clock."""
UNSEEN_S = 90.0
"""Seconds for guests on other hosts, whose processor time is not readable."""
ALIVE_S = 0.2
"""Processor time that proves a guest to be at work; the timers of a halted machine take less."""


@dataclass(frozen=True)
class Signs:
    """Signs of life at one moment. Any change in `moving` means that the run is alive."""

    moving: tuple[int, ...]
    """Counts of frames, gates, and bytes of samples and consoles; they only grow."""
    suspects: tuple[str, ...] = ()
    """Machines by name, or `fabric`, that the others wait for, if known."""
    by_processor: bool = False
    """True if suspects are judged by their processor time without a sign, not by wall time."""
    processor_s: tuple[float, ...] | None = None
    """Processor time of each suspect, if readable."""
    virtual_ns: int | None = None
    """Time that all machines have reached on the run's axis, if known."""


SignsReader = Callable[[], Signs]
"""Reads signs of life of the run without disturbing it."""


class Watchdog:
    """Takes signs of life; returns Hung if they have not changed for `hung_s` seconds.

    A guest that is watched separately may compute for long without a sign. It is hung if it has used no processor time
    for `hung_s`, or `silent_processor_s` of it without a sign: wall time proves nothing on a busy host.
    """

    def __init__(self, hung_s: float = HUNG_S, silent_processor_s: float = SILENT_PROCESSOR_S) -> None:
        self._hung_s = hung_s
        self._silent_processor_s = silent_processor_s
        self._last: tuple[object, ...] | None = None
        self._since = 0.0
        self._looked: float | None = None
        self._processor_from: tuple[float, ...] = ()
        self._worked_s = 0.0
        self._worked_at = 0.0

    def look(self, signs: Signs, now: float) -> Hung | None:
        # A harness that was itself stopped has no observations of that time.
        slept = self._looked is not None and now - self._looked > self._hung_s / 2
        self._looked = now
        seen = (signs.by_processor and signs.suspects, signs.moving)
        if slept or seen != self._last:
            self._last = seen
            self._since = self._worked_at = now
            self._processor_from = signs.processor_s or ()
            self._worked_s = sum(self._processor_from)
            return None
        return Hung(now - self._since, signs.suspects) if self._is_hung(signs, now) else None

    def _is_hung(self, signs: Signs, now: float) -> bool:
        if not signs.by_processor:
            return now - self._since >= self._hung_s
        if signs.processor_s is None:
            return now - self._since >= UNSEEN_S
        worked_s = sum(signs.processor_s)
        if worked_s - self._worked_s >= ALIVE_S:
            self._worked_s, self._worked_at = worked_s, now
        # Each by itself: six machines that boot at once use six times what one does.
        used = zip_longest(signs.processor_s, self._processor_from, fillvalue=0.0)
        spun = any(seconds - before >= self._silent_processor_s for seconds, before in used)
        return spun or now - self._worked_at >= self._hung_s
