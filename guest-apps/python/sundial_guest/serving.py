# SPDX-License-Identifier: Apache-2.0
"""What servers share: they say ready, count calls, report when they are idle, and end when they are asked to."""

import os
import signal
import sys
from threading import Lock

from sundial_guest import options, samples
from sundial_guest.usage import context_switches

IDLE_S = 0.2
_SIGNALS = {signal.SIGTERM, signal.SIGALRM}
DIE_CALL = options.Integer(1, 1_000_000, absent=None)
"""The option `die_call` of servers: the call in which one is killed."""


def hold_signals() -> None:
    """Called first, while there is one thread: from here SIGTERM waits for `serve`, in every thread to come."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)


def outlive(die_call: int | None) -> None:
    """Where the server is to be killed, it goes on in a child, and this process waits for SIGTERM: a service that ends
    is a machine's fault. Called behind `hold_signals`."""
    if die_call is None or (child := os.fork()) == 0:
        return
    signal.sigwait({signal.SIGTERM})
    os.kill(child, signal.SIGTERM)  # of one that has been killed there is still the number
    os.waitpid(child, 0)
    os._exit(0)


class Counters:
    """Calls by the name of their function; any thread that serves one reports it."""

    def __init__(self, die_call: int | None = None, **fields: object) -> None:
        """`fields`: what else the counters line of this server says, such as its port."""
        self._die_call = die_call
        self._fields = fields
        self._lock = Lock()
        self._by_function: dict[str, int] = {}
        self._failed = 0
        self._switches: dict[str, int] = {}
        self._function: str | None = None
        """The last that was called."""
        self._since = 0
        """Context switches of this process up to when what it has had was last added to its function's."""

    def count(self, function: str) -> None:
        """A call has come."""
        with self._lock:
            # Put off with each call, so that nothing but work happens while calls are measured.
            signal.setitimer(signal.ITIMER_REAL, IDLE_S)
            if function != self._function:
                self._add_switches()
                self._function = function
            self._by_function[function] = self._by_function.get(function, 0) + 1
            if self._die_call is not None and sum(self._by_function.values()) == self._die_call:
                self.report()
                os.kill(os.getpid(), signal.SIGKILL)

    def count_failed(self) -> None:
        """A call has raised."""
        self._failed += 1

    def _add_switches(self) -> None:
        now = context_switches()
        if self._function is not None:
            self._switches[self._function] = self._switches.get(self._function, 0) + now - self._since
        self._since = now

    def report(self) -> None:
        """Write the counters line."""
        self._add_switches()
        samples.put(
            {
                "type": "counters",
                **self._fields,
                "calls": sum(self._by_function.values()),
                "by_function": dict(self._by_function),
                "failed": self._failed,
                "context_switches": dict(self._switches),
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
