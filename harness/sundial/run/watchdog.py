# SPDX-License-Identifier: Apache-2.0
"""Notices that nothing moves any more. Pure: signs of life and the time in, who is hung out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sundial.run.supervisor import Hung

HUNG_S = 15.0
BOOT_S = 90.0
"""A guest that boots computes for long without a sign that is seen from here, and longer on a busy host."""


@dataclass(frozen=True)
class Signs:
    """Signs of life at one moment. Any change in `moving` means that the run is alive."""

    moving: tuple[int, ...]
    """Frames, gates, bytes of samples and consoles: whatever only grows."""
    suspects: tuple[str, ...] = ()
    """Whom the others wait for, where that can be seen: machines by name, or `fabric`."""
    booting: bool = False
    """Somebody has not come so far as to give signs."""
    virtual_ns: int | None = None
    """Where everybody has got to on the run's time axis, where that is known."""


SignsReader = Callable[[], Signs]
"""Looks at the run, without disturbing it."""


class Watchdog:
    """Told the signs now and then; says Hung when they have not changed for `hung_s` (`boot_s`) seconds."""

    def __init__(self, hung_s: float = HUNG_S, boot_s: float = BOOT_S) -> None:
        self._hung_s = hung_s
        self._boot_s = boot_s
        self._last: tuple[int, ...] | None = None
        self._since = 0.0
        self._looked: float | None = None

    def look(self, signs: Signs, now: float) -> Hung | None:
        # A harness that was itself stopped for a while has seen nothing, and must not draw conclusions.
        slept = self._looked is not None and now - self._looked > self._hung_s / 2
        self._looked = now
        if slept or signs.moving != self._last:
            self._last = signs.moving
            self._since = now
            return None
        still = now - self._since
        return Hung(still, signs.suspects) if still >= (self._boot_s if signs.booting else self._hung_s) else None
