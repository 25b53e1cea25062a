# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, once and twice. The first raises Interrupted in the main thread, at once or after an uninterruptible part;
the second sets `hurry`."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from sundial.errors import Interrupted

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """While `taken`, signals end the run cleanly."""

    def __init__(self) -> None:
        self.hurry = False
        self.late: Interrupted | None = None
        """The first signal, if it did not raise."""
        self._cleaning = False
        self._seen = 0

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Handle the signals; has no effect outside the main thread."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before: dict[signal.Signals, Any] = {number: signal.signal(number, self._on_signal) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def cleaning_begins(self) -> None:
        """Stop raising: the first signal is kept in `late`, the second sets `hurry`."""
        self._cleaning = True

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._seen += 1
        if self._seen > 1:
            self.hurry = True
            return
        interrupted = Interrupted(f"interrupted by {signal.Signals(number).name}")
        if self._cleaning:
            self.late = interrupted
            return
        self._cleaning = True
        raise interrupted
