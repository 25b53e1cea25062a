# SPDX-License-Identifier: Apache-2.0
"""The twelve functions over RPyC: one connection, one function after another, each a batch."""

import gc
import math
import socket
import time
from typing import Any

import rpyc
from rpyc.core.stream import SocketStream
from rpyc.version import version
from sundial_guest import clock, connections, functions, options, samples
from sundial_guest.usage import context_switches

CALLS_MOST = 1_000_000
SPEC = {
    "server": options.Text(),
    "port": options.Integer(1, 65535, absent=18861),
    "functions": options.Words(*functions.NAMES),
    "container": options.Word("list", "tuple"),
    "distance": options.Word("numpy", "zip"),
    "tcp_nodelay": options.Boolean(absent=False),
    "calls": options.Integer(0, CALLS_MOST, absent=1),
    "warmup": options.Integer(0, CALLS_MOST, absent=0),
    "series": options.Integer(0, 0x7FFFFFFF, absent=0),
    "total_timeout_ms": options.Integer(1, 3_600_000, absent=25_000),
}


class Person:
    """The argument of function 11, of which only a reference crosses."""

    # Its name on the wire, however this file is loaded.
    __module__ = "sundial"

    def __init__(self, name: str, age: int, weight: float) -> None:
        self.name, self.age, self.weight = name, age, weight


class Numbers:
    """What a connection numbers its requests by, in place of itertools.count, which does not say where it is."""

    def __init__(self) -> None:
        self.following = 0

    def __next__(self) -> int:
        self.following += 1
        return self.following - 1


class Caller:
    """One connection and its root object."""

    def __init__(self, server: str, port: int, *, tcp_nodelay: bool, total_timeout_ms: int) -> None:
        timeout_s = total_timeout_ms / 1000
        # RPyC's own way to connect tries again by chance, up to six times, from version 6 on.
        connected = connections.await_server(lambda: socket.create_connection((server, port), timeout_s), timeout_s)
        if tcp_nodelay:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream = SocketStream(connected)
        self._descriptor: int = stream.fileno()
        self.port = connections.local_port(self._descriptor)
        self._connection = rpyc.connect_stream(stream, config={"sync_request_timeout": timeout_s})
        self._connection._seqcounter = self.numbers = Numbers()
        self.root = self._connection.root
        self._timed_out = False

    def call(self, method: str, arguments: tuple[Any, ...], right: Any, batch: samples.Batch) -> None:
        """One call, and a row of what came of it."""
        first, error = self.numbers.following, None
        start = clock.now_ns()
        try:
            result = getattr(self.root, method)(*arguments)
            end = clock.now_ns()
            if result != right:
                error = "wrong result"
        except Exception as raised:
            end = clock.now_ns()
            error = type(raised).__name__
            self._timed_out |= isinstance(raised, TimeoutError)
        batch.record((start, end, first, error))

    def settle(self) -> None:
        """Give back all references but the root's, and wait until the server has confirmed it: no longer than a call,
        once one has had its time, since the server may be gone.

        An exception at this end holds the frames beneath it, and they the method that was called; both are garbage
        that only the collector finds.
        """
        connection = self._connection
        connection._last_traceback = None
        gc.collect()
        end = time.monotonic() + connection._config["sync_request_timeout"] if self._timed_out else math.inf
        try:
            while connection._request_callbacks and not connection.closed and time.monotonic() < end:
                connection.serve(end - time.monotonic() if self._timed_out else None)
        except EOFError:
            pass  # the rows say so

    def retransmits(self) -> int:
        """Segments that TCP has sent again so far."""
        return 0 if self._connection.closed else connections.retransmits(self._descriptor)

    def close(self) -> None:
        self._connection.close()


class Unreached:
    """In place of a caller that could not connect, or has not got the server's root object: each call fails."""

    def __init__(self, port: int | None, error: BaseException) -> None:
        self.port, self.numbers = port, Numbers()
        self._error = f"cannot connect: {type(error).__name__}"

    def call(self, method: str, arguments: tuple[Any, ...], right: Any, batch: samples.Batch) -> None:
        """A row of a call that has failed, of which nothing is sent."""
        now = clock.now_ns()
        batch.record((now, now, None, self._error))

    def settle(self) -> None:
        """Nothing is held."""

    def retransmits(self) -> int:
        """None."""
        return 0


def _argument(value: Any) -> Any:
    return Person(value.name, value.age, value.weight) if isinstance(value, functions.Person) else value


def _run(caller: Caller | Unreached, function: functions.Function, chosen: Any) -> None:
    container = {"list": list, "tuple": tuple}[chosen.container]
    arguments = tuple(map(_argument, function.in_container(container)))
    header: dict[str, object] = {
        "series": chosen.series,
        "transport": "rpyc",
        "procedure": function.name,
        "size": function.size,
        "thread": 0,
        "server": chosen.server,
        "server_port": chosen.port,
        "client_port": caller.port,
        "warmup": chosen.warmup,
        "function": function.number,
        "library": ".".join(map(str, version)),
        "tcp_nodelay": chosen.tcp_nodelay,
    }
    method, right = function.name, arguments[0] if arguments else None
    if function.has_container:
        header["container"] = chosen.container
    if function.name == "distance":
        method, right = f"distance_{chosen.distance}", function.result
        header["variant"] = chosen.distance
    batch = samples.Batch()
    first, retransmits = caller.numbers.following, caller.retransmits()
    for _ in range(chosen.warmup):
        caller.call(method, arguments, right, batch)
    switches = context_switches()
    for _ in range(chosen.calls):
        caller.call(method, arguments, right, batch)
    header["context_switches"] = context_switches() - switches
    caller.settle()
    again = max(0, caller.retransmits() - retransmits)
    batch.put({**header, "tcp_retransmits": again, "exchanges": caller.numbers.following - first})


def main(given: dict[str, Any]) -> int:
    """Calls each function as often as its options say."""
    chosen = options.read(given, SPEC)
    caller = Caller(
        chosen.server, chosen.port, tcp_nodelay=chosen.tcp_nodelay, total_timeout_ms=chosen.total_timeout_ms
    )
    for name in chosen.functions:
        _run(caller, functions.BY_NAME[name], chosen)
    caller.close()
    return 0


def unreached(given: dict[str, Any], error: BaseException) -> bool:
    """Write the failed calls of a client that `error` has ended while it opened its connection; false: it was later."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code is not Caller.__init__.__code__:
        trace = trace.tb_next
    if trace is None or not isinstance(error, (OSError, EOFError)):
        return False
    port = getattr(trace.tb_frame.f_locals["self"], "port", None)
    chosen = options.read(given, SPEC)
    for name in chosen.functions:
        _run(Unreached(port, error), functions.BY_NAME[name], chosen)
    return True
