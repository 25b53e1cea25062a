# SPDX-License-Identifier: Apache-2.0
"""The twelve functions over RPyC: its threaded server, one thread a connection."""

import math
import socket
import threading
from collections.abc import Callable, Iterable
from typing import Any

import rpyc
from rpyc.utils.server import ThreadedServer
from sundial_guest import options, serving

SPEC = {
    "port": options.Integer(1, 65535, absent=18861),
    "tcp_nodelay": options.Boolean(absent=False),
    "die_call": serving.DIE_CALL,
}


class Functions(rpyc.Service):  # type: ignore[misc]
    """What clients call. Echoes return what came, which of a list is a reference to it."""

    # Its name on the wire, however this file is loaded.
    __module__ = "sundial"

    def __init__(self, counters: serving.Counters) -> None:
        self._counters = counters

    def exposed_void(self) -> None:
        self._counters.count("void")

    def exposed_boolean(self, value: bool) -> bool:
        return self._echo("boolean", value)

    def exposed_int(self, value: int) -> int:
        return self._echo("int", value)

    def exposed_long(self, value: int) -> int:
        return self._echo("long", value)

    def exposed_string_32(self, value: str) -> str:
        return self._echo("string_32", value)

    def exposed_string_512(self, value: str) -> str:
        return self._echo("string_512", value)

    def exposed_string_1024(self, value: str) -> str:
        return self._echo("string_1024", value)

    def exposed_int_array(self, value: Iterable[int]) -> Iterable[int]:
        return self._echo("int_array", value)

    def exposed_float_array(self, value: Iterable[float]) -> Iterable[float]:
        return self._echo("float_array", value)

    def exposed_string_array(self, value: Iterable[str]) -> Iterable[str]:
        return self._echo("string_array", value)

    def exposed_person(self, value: Any) -> Any:
        return self._echo("person", value)

    def exposed_distance_zip(self, one: Iterable[float], other: Iterable[float]) -> float:
        return self._distance(_by_zip, one, other)

    def exposed_distance_numpy(self, one: Iterable[float], other: Iterable[float]) -> float:
        return self._distance(_by_numpy, one, other)

    def _echo(self, name: str, value: Any) -> Any:
        self._counters.count(name)
        return value

    def _distance(self, compute: Callable[[Any, Any], float], one: Any, other: Any) -> float:
        self._counters.count("distance")
        try:
            return compute(one, other)
        except Exception:
            self._counters.count_failed()
            raise


def _by_zip(one: Iterable[float], other: Iterable[float]) -> float:
    """Of lists that are at the other end, each element is a call back."""
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(one, other)))  # noqa: B905 (one call back more would tell)


def _by_numpy(one: Iterable[float], other: Iterable[float]) -> float:
    """numpy asks a list at the other end what it is before it takes its elements."""
    import numpy  # not every image has it

    return float(numpy.linalg.norm(numpy.array(one) - numpy.array(other)))


class Server(ThreadedServer):  # type: ignore[misc]
    """The library's, which can have TCP_NODELAY."""

    def __init__(self, service: Functions, port: int, *, tcp_nodelay: bool) -> None:
        # No timeout: a listener that wakes up now and then would fall into a call.
        super().__init__(service, hostname="0.0.0.0", port=port, listener_timeout=None, auto_register=False)
        self._tcp_nodelay = tcp_nodelay

    def _authenticate_and_serve_client(self, sock: socket.socket) -> None:
        if self._tcp_nodelay:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            super()._authenticate_and_serve_client(sock)
        except (EOFError, OSError):
            pass  # the client has gone


def main(given: dict[str, Any]) -> int:
    """Serves until SIGTERM."""
    chosen = options.read(given, SPEC)
    serving.hold_signals()
    serving.outlive(chosen.die_call)
    counters = serving.Counters(chosen.die_call, port=chosen.port)
    server = Server(Functions(counters), chosen.port, tcp_nodelay=chosen.tcp_nodelay)
    server._listen()
    threading.Thread(target=server.start, daemon=True).start()
    serving.serve(counters)
    return 0
