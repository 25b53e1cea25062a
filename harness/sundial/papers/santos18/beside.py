# SPDX-License-Identifier: Apache-2.0
"""The systems of other decades that call the same twelve functions, on the same machines and the same wire."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sundial.papers.santos18.paper import Place
from sundial.workloads.dce import plan as dce
from sundial.workloads.raw import plan as raw
from sundial.workloads.sunrpc import plan as sunrpc

BOTH: tuple[Place, ...] = ("local", "remote")


@dataclass(frozen=True)
class Beside:
    """A system beside the paper's two."""

    name: str
    program: str
    """Of clients."""
    transport: str
    app: str
    places: tuple[Place, ...] = BOTH
    more: Mapping[str, Any] = field(default_factory=dict)
    """Fields of its workload."""

    def workload(self, calls: int) -> dict[str, Any]:
        """All functions, as scenarios write them."""
        named = {"transports": [self.transport], "functions": "all"}
        return {"app": self.app, **named, "calls": calls, "warmup": 1, **self.more}


SYSTEMS: Mapping[str, Beside] = {
    "raw-tcp": Beside("plain TCP", raw.CLIENT, "tcp", "raw"),
    "sunrpc-udp": Beside("Sun RPC, UDP", sunrpc.CLIENT, "udp", "sunrpc"),
    "sunrpc-tcp": Beside("Sun RPC, TCP", sunrpc.CLIENT, "tcp", "sunrpc"),
    # Between the processes of one machine there is no segment that its packets could take.
    "sunrpc-mbcf": Beside("Sun RPC, MBCF", sunrpc.NODE_CLIENT, "mbcf3a", "sunrpc", ("remote",)),
    "dce": Beside("DCE RPC", dce.CLIENT, "udp", "dce"),
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
            yield system.workload(calls)
