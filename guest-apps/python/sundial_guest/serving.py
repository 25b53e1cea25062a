# SPDX-License-Identifier: Apache-2.0
"""What servers share: they say ready, count calls, report when they are idle, and end when they are asked to."""

import signal
import sys

from sundial_guest import samples

IDLE_S = 0.2
_SIGNALS = {signal.SIGTERM, signal.SIGALRM}


def hold_signals() -> None:
    """Called first, while there is one thread: from here SIGTERM waits for `serve`, in every thread to come."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)


class Counters:
    """Calls by the name of their function; whoever serves one says so."""

    def __init__(self, **fields: object) -> None:
        """`fields`: what else the counters line of this server says, such as its port."""
        self._fields = fields
        self._by_function: dict[str, int] = {}
        self._failed = 0

    def count(self, function: str) -> None:
        """A call has come."""
        # Put off with each call, so that nothing but work happens while calls are measured.
        signal.setitimer(signal.ITIMER_REAL, IDLE_S)
        self._by_function[function] = self._by_function.get(function, 0) + 1

    def count_failed(self) -> None:
        """A call has raised."""
        self._failed += 1

    def report(self) -> None:
        """Write the counters line."""
        samples.put(
            {
                "type": "counters",
                **self._fields,
                "calls": sum(self._by_function.values()),
                "by_function": dict(self._by_function),
                "failed": self._failed,
            }
        )


def ready() -> None:
    """Tell the runner that this serves."""
    sys.stdout.write("ready\n")
    sys.stdout.flush()


def serve(counters: Counters) -> None:
    """Says ready and waits until SIGTERM, while other threads serve. Reports 200 ms after the last call, and then."""
    ready()
    while signal.sigwait(_SIGNALS) != signal.SIGTERM:
        counters.report()
    counters.report()
