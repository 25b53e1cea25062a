# SPDX-License-Identifier: Apache-2.0
"""One run, resolved: a scenario whose clients and sizes are explicit, on a topology, with its seed and clock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sundial.model.check import Finding
from sundial.model.fit import is_mbcf, misfits, shared_endpoints
from sundial.model.images import IMAGES
from sundial.model.limits import RAW_TCP_LEAST, TCP_MTU_LEAST, auth_sys_bytes, size_limit
from sundial.model.network import Network
from sundial.model.scenario import EVERYONE, Calling, Iperf3, Mbcf, Raw, Scenario, Sized, SunRpc
from sundial.model.sizes import EDGES, expand
from sundial.model.topology import Clock, Topology

AnyWorkload = SunRpc | Raw | Iperf3 | Mbcf

SMALLEST, LARGEST = 0, 8192
"""Between which `edges` alone looks for edges, in bytes."""


@dataclass(frozen=True)
class Experiment:
    """Everything that a run depends on, but for images and versions."""

    scenario: Scenario
    """Its workloads have explicit `clients` and ascending integer `sizes`."""
    topology: Topology
    network: Network
    seed: int
    clock: Clock
    scale: str | None
    variant: str
    """What `vary` changed for this run; empty when nothing."""

    @property
    def workloads(self) -> list[AnyWorkload]:
        return list(self.scenario.workloads)

    def scenario_json(self) -> dict[str, Any]:
        """The resolved scenario as it goes into run.json, quantities with their units."""
        resolved = self.scenario.model_dump(mode="json", exclude_none=True, exclude={"scale", "vary", "default_scale"})
        return {**resolved, "seed": self.seed, "scale": self.scale, "variant": self.variant}

    def topology_json(self) -> dict[str, Any]:
        """The resolved topology as it goes into run.json, quantities with their units."""
        return {**self.topology.model_dump(mode="json", exclude_none=True), "clock": self.clock}


def resolve_workloads(scenario: Scenario, network: Network) -> tuple[list[AnyWorkload], list[Finding]]:
    """The scenario's workloads with clients and sizes made explicit, and what does not fit the topology."""
    workloads: list[AnyWorkload] = []
    findings: list[Finding] = []
    for number, workload in enumerate(scenario.workloads):
        clients = _clients(workload, network)
        wrong = list(_ends(workload, clients, network, ("workloads", number)))
        wrong = wrong or list(_tcp_room(workload, clients, network, ("workloads", number, "transports")))
        wrong = wrong or list(misfits(workload, clients, network, ("workloads", number)))
        if not wrong and isinstance(workload, SunRpc | Raw | Mbcf):
            workload, wrong = _with_sizes(workload, clients, network, number)
        findings.extend(wrong)
        workloads.append(workload.model_copy(update={"clients": clients}))
    return workloads, findings or list(shared_endpoints(workloads, network))


def _clients(workload: AnyWorkload, network: Network) -> tuple[str, ...]:
    if workload.clients == (EVERYONE,):
        return tuple(node.name for node in network.nodes if node.role == "host" and node.name != workload.server)
    return workload.clients


def _ends(
    workload: AnyWorkload, clients: tuple[str, ...], network: Network, path: tuple[str | int, ...]
) -> Iterator[Finding]:
    hosts = {node.name: node for node in network.nodes if node.role == "host"}
    named = [("server", workload.server), *(("clients", client) for client in clients)]
    for field, name in named:
        if name not in hosts:
            yield Finding((*path, field), f"topology {network.name!r} has no host {name!r}", ", ".join(hosts))
        elif workload.app not in IMAGES[hosts[name].image].apps:
            yield Finding((*path, field), f"image {hosts[name].image!r} of {name!r} does not run {workload.app}")
    if not clients:
        yield Finding((*path, "clients"), f"topology {network.name!r} has no host but the server")
    if workload.server in clients:
        yield Finding((*path, "clients"), f"{workload.server!r} is the server", "other machines")
    for client in clients:
        if client in hosts and workload.server in hosts and network.route(client, workload.server) is None:
            yield Finding((*path, "clients"), f"{client!r} and {workload.server!r} share no segment")


def _tcp_room(
    workload: AnyWorkload, clients: tuple[str, ...], network: Network, path: tuple[str | int, ...]
) -> Iterator[Finding]:
    """iperf3 over UDP has a connection over TCP, too."""
    least = min((mtu for client in clients for mtu in _mtus(network, client, workload.server)), default=TCP_MTU_LEAST)
    if least < TCP_MTU_LEAST and ("tcp" in workload.transports or isinstance(workload, Iperf3)):
        what = f"TCP over an MTU of {least} bytes: Linux sends longer segments, which IP would have to fragment"
        yield Finding(
            path,
            what,
            f"an MTU of {TCP_MTU_LEAST} or more" + ("" if isinstance(workload, Iperf3) else ", or udp alone"),
        )


def _with_sizes(
    workload: SunRpc | Raw | Mbcf, clients: tuple[str, ...], network: Network, number: int
) -> tuple[SunRpc | Raw | Mbcf, list[Finding]]:
    if EDGES in workload.sizes and any(map(is_mbcf, workload.transports)):
        what = "edges over MBCF: only those of udp and tcp are known"
        return workload, [Finding(("workloads", number, "sizes"), what, "sizes and ranges FIRST:LAST:STEP")]
    procedures = procedures_of(workload)
    sizes = sorted(
        {
            size
            for transport in workload.transports
            for client in clients
            for mtu in sorted(_mtus(network, client, workload.server))
            for size in _expanded(workload, transport, client, mtu)
        }
    )
    for transport in workload.transports:
        for procedure in procedures:
            if procedure == "null":
                continue
            limits = [size_limit(workload, transport, procedure, client) for client in clients]
            limit = min(limits, key=lambda candidate: candidate.most)
            outside = [size for size in (sizes[0], sizes[-1]) if not limit.least <= size <= limit.most]
            if outside:
                what = f"{outside[-1]} bytes do not fit {workload.app} {procedure} over {transport}"
                return workload, [Finding(("workloads", number, "sizes"), what, limit.allowed)]
    if isinstance(workload, Calling) and workload.retry_timeout > workload.total_timeout:
        what = "retry_timeout is longer than total_timeout: nothing would be sent again"
        return workload, [Finding(("workloads", number, "retry_timeout"), what, "up to total_timeout")]
    return workload.model_copy(update={"sizes": tuple(sizes)}), []


def _mtus(network: Network, client: str, server: str) -> set[int]:
    route = network.route(client, server)
    return {nic.mtu for nic in route} if route else set()


def procedures_of(workload: Sized) -> tuple[str, ...]:
    """What is called, or done, at each size."""
    if isinstance(workload, Mbcf):
        return workload.operations
    return workload.procedures if isinstance(workload, SunRpc) else ("echo",)


def _expanded(workload: SunRpc | Raw | Mbcf, transport: str, client: str, mtu: int) -> list[int]:
    def edges(smallest: int, largest: int) -> list[int]:
        from sundial.expect.edges import edge_sizes

        if isinstance(workload, Raw):
            return edge_sizes(f"raw-{transport}", mtu, smallest, largest)
        assert isinstance(workload, SunRpc), "edges over MBCF are refused"
        credential = auth_sys_bytes(client) if workload.auth == "sys" else 0
        return edge_sizes(
            f"sunrpc-{transport}", mtu, smallest, largest, credential=credential, buffer=workload.send_buffer or 0
        )

    least = RAW_TCP_LEAST if isinstance(workload, Raw) and "tcp" in workload.transports else SMALLEST
    return expand(workload.sizes, edges if EDGES in workload.sizes else _none, (least, LARGEST))


def _none(smallest: int, largest: int) -> list[int]:
    return []
