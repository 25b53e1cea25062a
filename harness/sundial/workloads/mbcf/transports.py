# SPDX-License-Identifier: Apache-2.0
"""Memory-based communication as workloads offer it, and what it needs of machines and wires."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sundial.model.images import IMAGES
from sundial.model.invalid import Invalid, Path
from sundial.model.network import Network
from sundial.model.workload import Ends, Semantics, Transport, WorkloadBase
from sundial.workloads.mbcf import wire

SEMANTICS: tuple[Semantics, ...] = ("exactly_once", "at_most_once", "at_least_once")
"""It gives exactly once by itself; its library gives the others too, for comparison (kamesawa98 section 3.2)."""
OPERATIONS = Transport("mbcf", SEMANTICS[:1], between_nodes=True)
"""Of operations without RPC."""
NAMES = wire.TRANSPORTS
TRANSPORTS = tuple(Transport(name, SEMANTICS, between_nodes=True) for name in NAMES)
"""Of Sun RPC, by the type of server (kamesawa98 section 4.1)."""
TASKS_ONLY = frozenset({"mbcf3b"})
"""Of these: whose server's tasks have address spaces of their own, which a process that is a node does not have."""
MTU_LEAST = wire.HEADER + wire.PAYLOAD
"""There is no fragmentation below MBCF."""
SSS_CORE = "sss-core"
"""The platform on which it is the kernel's."""
PLATFORMS = ("linux", SSS_CORE)
"""Where there are programs that speak it."""

_BETWEEN_NODES = frozenset({OPERATIONS.name, *NAMES})


def is_mbcf(transport: str) -> bool:
    """True if `transport` uses memory-based communication."""
    return transport in _BETWEEN_NODES


def check_wires(ends: Ends, path: Path) -> Iterator[Invalid]:
    """Its packets are not fragmented, and do not leave a segment."""
    network = ends.network
    domain = network.domains[network.node(ends.server).nics[0].segment]
    for name in (ends.server, *ends.clients):
        first = network.node(name).nics[0]
        field = "server" if name == ends.server else "clients"
        if first.mtu < MTU_LEAST:
            what = f"MBCF on {first.end} does not fit an MTU of {first.mtu} bytes: its packets are not fragmented"
            yield Invalid((*path, field), what, f"an MTU of at least {MTU_LEAST}")
        if network.segments[first.segment].ip_only:
            what = (
                f"MBCF is not supported on {first.segment!r}, which carries only IP: it has an Ethernet type of its own"
            )
            yield Invalid((*path, field), what, "a segment that carries Ethernet frames")
        if network.domains[first.segment] != domain:
            yield Invalid(
                (*path, field), f"MBCF needs one segment, and {first.end} and {ends.server}:eth0 are on different ones"
            )
    for name in _corrupting(network, domain):
        what = f"MBCF is not supported over {name!r}, which corrupts frames: its packets have no checksum"
        yield Invalid((*path, "server"), what, "corrupt: 0 %, or loss in its place")


def _corrupting(network: Network, domain: int) -> Iterator[str]:
    """Segments of a broadcast domain, and interfaces of its bridges, where bits are flipped."""
    for name, segment in network.segments.items():
        if network.domains[name] == domain and segment.corrupts:
            yield name
    for nic in network.nics():
        if network.domains[nic.segment] == domain and "corrupt" in nic.netem:
            yield nic.end


def check_one_node_a_machine(workloads: Sequence[WorkloadBase], network: Network) -> Iterator[Invalid]:
    """Where a process is a node of the cluster, two of them at the same time would be one node twice."""

    def busy(machine: str) -> str:
        image = network.node(machine).image
        return f"{machine!r} boots {image}, where only one process can be a node of MBCF, and has one already"

    serving: dict[str, str] = {}
    over_mbcf = [each for each in enumerate(workloads) if any(map(is_mbcf, each[1].transports))]
    for number, workload in over_mbcf:
        process = IMAGES[network.node(workload.server).image].node_is_process
        if process and serving.setdefault(workload.server, workload.app) != workload.app:
            yield Invalid(("workloads", number, "server"), busy(workload.server), "another server")
    for number, workload in over_mbcf:
        for client in workload.clients:
            if client in serving:
                yield Invalid(("workloads", number, "clients"), busy(client), "another client")
