# SPDX-License-Identifier: Apache-2.0
"""The systems of other decades that call the same twelve functions, on the same machines and the same wire."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sundial.papers.santos18.paper import Place
from sundial.workloads.dce import plan as dce
from sundial.workloads.grpc.expect_languages import CPP
from sundial.workloads.raw import plan as raw
from sundial.workloads.sunrpc import plan as sunrpc

BOTH: tuple[Place, ...] = ("local", "remote")


@dataclass(frozen=True)
class OtherSystem:
    """A system beside the paper's two."""

    name: str
    program: str
    """Of clients."""
    transport: str
    workload: Mapping[str, Any]
    """As scenarios write it, without what all have."""
    places: tuple[Place, ...] = BOTH


def _over(transport: str, app: str, name: str, program: str, places: tuple[Place, ...] = BOTH) -> OtherSystem:
    return OtherSystem(name, program, transport, {"app": app, "transports": [transport]}, places)


SYSTEMS: Mapping[str, OtherSystem] = {
    "raw-tcp": _over("tcp", "raw", "plain TCP", raw.CLIENT),
    "sunrpc-udp": _over("udp", "sunrpc", "Sun RPC, UDP", sunrpc.CLIENT),
    "sunrpc-tcp": _over("tcp", "sunrpc", "Sun RPC, TCP", sunrpc.CLIENT),
    # Between the processes of one machine there is no segment that its packets could take.
    "sunrpc-mbcf": _over("mbcf3a", "sunrpc", "Sun RPC, MBCF", sunrpc.NODE_CLIENT, ("remote",)),
    "dce": _over("udp", "dce", "DCE RPC", dce.CLIENT),
    "grpc-cpp": OtherSystem("gRPC, C++", CPP.client, "grpc", {"app": "grpc", "languages": [CPP.name]}),
}
"""By the word in `Case.system`, as they are listed: each before what does more for its caller."""
NAMES: Mapping[str, str] = {word: system.name for word, system in SYSTEMS.items()}
_BY_CLIENT = {(system.program, system.transport): word for word, system in SYSTEMS.items()}


def system_of(program: str, transport: str) -> str | None:
    """The word of a client's calls; None: they are none of these systems'."""
    return _BY_CLIENT.get((program, transport))


def workloads(calls: int, place: Place) -> Iterator[dict[str, Any]]:
    """All that run in one place, one after another."""
    for system in SYSTEMS.values():
        if place in system.places:
            yield {**system.workload, "functions": "all", "calls": calls, "warmup": 1}
