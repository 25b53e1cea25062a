# SPDX-License-Identifier: Apache-2.0
"""grpc-client: calls functions one after another over one channel, each a batch."""

import gc
import signal
from collections.abc import Callable
from typing import Any

import grpc

from sundial_grpc import functions_pb2_grpc as services
from sundial_grpc.vocabulary import METHODS, PORT, messages, prepare
from sundial_guest import connections, options
from sundial_guest.clock import is_real, now_ns
from sundial_guest.functions import BY_NAME, NAMES
from sundial_guest.samples import Batch
from sundial_guest.usage import context_switches

__all__ = ["main", "prepare"]

SPEC = {
    "server": options.Text(),
    "port": options.Integer(1, 65535, absent=PORT),
    "functions": options.Words(*NAMES, absent=list(NAMES)),
    "calls": options.Integer(1, 1_000_000, absent=1),
    "warmup": options.Integer(0, 10_000, absent=0),
    "series": options.Integer(0, 999, absent=0),
    "bdp_probe": options.Boolean(absent=False),
    "total_timeout_ms": options.Integer(1, 3_600_000, absent=25_000),
}
LATE = "DEADLINE_EXCEEDED"
_TO_START_S = 0.001
"""More than passes from when the timer is set to the start of a call, from which its time counts."""
WRONG = "DATA_LOSS"
"""A reply came, with another value."""


class Late(Exception):
    """A call has had its time."""


class Caller:
    """Calls over one channel, of which the stream numbers follow: 1, 3, 5 and so on."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._stream = -1
        self._within = self._late = False
        """Whether a call is under way, and whether it has had its time."""
        self.failed = 0
        self._wait = is_real()
        """The first call waits for a server that is still starting; nothing of that is on the wire."""
        # A deadline of gRPC's own would be a header of every request. Its wait for an answer looks for signals.
        signal.signal(signal.SIGALRM, self._interrupt)

    def _interrupt(self, number: int, frame: object) -> None:
        """Once a call, and never behind it: Python may run this some instructions after the timer was stopped."""
        if self._within:
            self._within, self._late = False, True
            raise Late

    def call(self, method: Callable[..., Any], request: Any, reply: Any) -> tuple[int, int, int | None, str | None]:
        """One row of a batch. The stream of a call that failed is not known, for it may have had none, nor is that of
        any call behind it."""
        self._stream += 2
        wait, self._wait = self._wait, False
        error: str | None = None
        answer, start = None, 0
        self._within, self._late = True, False
        try:
            signal.setitimer(signal.ITIMER_REAL, self._timeout_s + _TO_START_S)
            start = now_ns()
            try:
                answer = method(request, wait_for_ready=wait)
                end = now_ns()
            except grpc.RpcError as failure:
                end = now_ns()
                error = failure.code().name
            self._within = False
        except Late:
            end = now_ns()
            start = start or end
        signal.setitimer(signal.ITIMER_REAL, 0)
        if self._late:
            error = LATE  # within the library's own code it is a failure of another name
        if error is not None:
            self.failed += 1
            # What an interrupted call has left over keeps its stream, and so a part of the connection's window.
            gc.collect()
        elif answer != reply:
            error = WRONG
        return start, end, None if self.failed else self._stream, error


def main(given: dict[str, Any]) -> int:
    """Status 0 when it could measure, whatever came of the calls."""
    chosen = options.read(given, SPEC)
    channel = grpc.insecure_channel(
        f"{chosen.server}:{chosen.port}",
        options=[
            ("grpc.http2.bdp_probe", int(chosen.bdp_probe)),
            ("grpc.enable_http_proxy", 0),
            ("grpc.service_config_disable_resolution", 1),
        ],
    )
    stub = services.FunctionsStub(channel)
    caller = Caller(chosen.total_timeout_ms / 1000)
    resent, failed = 0, 0
    connection: int | None = None
    for name in chosen.functions:
        method = getattr(stub, METHODS[name])
        request, reply = messages(name)
        batch = Batch()
        for _ in range(chosen.warmup):
            batch.record(caller.call(method, request, reply))
        switches = context_switches()
        for _ in range(chosen.calls):
            batch.record(caller.call(method, request, reply))
        switches = context_switches() - switches
        if connection is None or caller.failed > failed:
            # After a failure the channel may have another.
            connection, failed = connections.find(chosen.server, chosen.port), caller.failed
        before, resent = resent, 0 if connection is None else connections.retransmits(connection)
        batch.put(
            {
                "series": chosen.series,
                "transport": "grpc",
                "procedure": name,
                "size": BY_NAME[name].size,
                "thread": 0,
                "server": chosen.server,
                "server_port": chosen.port,
                "client_port": None if connection is None else connections.local_port(connection),
                "warmup": chosen.warmup,
                "tcp_retransmits": max(0, resent - before),
                "function": BY_NAME[name].number,
                "context_switches": switches,
                "language": "python",
            }
        )
    channel.close()
    return 0
