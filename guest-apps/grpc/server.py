# SPDX-License-Identifier: Apache-2.0
"""grpc-server: the service sundial.Functions."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc

from sundial_grpc import functions_pb2 as pb
from sundial_grpc import functions_pb2_grpc as services
from sundial_grpc.vocabulary import METHODS, PORT, prepare
from sundial_guest import options, serving
from sundial_guest.functions import distance
from sundial_guest.samples import fail

__all__ = ["main", "prepare"]

SPEC = {
    "port": options.Integer(1, 65535, absent=PORT),
    "max_workers": options.Integer(1, 64, absent=1),
    "bdp_probe": options.Boolean(absent=False),
    "die_call": serving.DIE_CALL,
}


def _same(request: Any) -> Any:
    return request


def _distance(request: Any) -> Any:
    return pb.FloatValue(value=distance(request.first, request.second))


def _servicer(counters: serving.Counters) -> Any:
    """What answers, and counts."""

    def method(name: str, function: Callable[[Any], Any]) -> Callable[[Any, Any, Any], Any]:
        def answer(self: Any, request: Any, context: Any) -> Any:
            counters.count(name)
            return function(request)

        return answer

    methods = {METHODS[name]: method(name, _distance if name == "distance" else _same) for name in METHODS}
    return type("Functions", (services.FunctionsServicer,), methods)()


def main(given: dict[str, Any]) -> int:
    """Until SIGTERM."""
    chosen = options.read(given, SPEC)
    serving.hold_signals()
    serving.outlive(chosen.die_call)
    counters = serving.Counters(chosen.die_call, port=chosen.port)
    server = grpc.server(
        ThreadPoolExecutor(chosen.max_workers), options=[("grpc.http2.bdp_probe", int(chosen.bdp_probe))]
    )
    services.add_FunctionsServicer_to_server(_servicer(counters), server)
    try:
        bound = server.add_insecure_port(f"0.0.0.0:{chosen.port}")
    except RuntimeError:
        bound = 0
    if bound == 0:
        fail(f"port {chosen.port}: cannot be bound")
    server.start()
    serving.serve(counters)
    server.stop(None).wait()
    return 0
