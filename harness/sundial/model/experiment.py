# SPDX-License-Identifier: Apache-2.0
"""One run, resolved: a scenario whose clients and sizes are explicit, on a topology, with its seed and clock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sundial.model.finding import Finding, Path
from sundial.model.images import IMAGES, ImageKind
from sundial.model.lists import EVERYONE
from sundial.model.network import Network, Node
from sundial.model.scenario import KINDS, Scenario
from sundial.model.topology import Clock, Topology
from sundial.model.workload import NO_TRACE, Ends, Traced, WorkloadBase

PORT = "port"
"""The field of workloads whose server may be on another."""


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
    def workloads(self) -> list[WorkloadBase]:
        return list(self.scenario.workloads)

    def scenario_json(self) -> dict[str, Any]:
        """The resolved scenario as it goes into run.json, quantities with their units."""
        resolved = self.scenario.model_dump(mode="json", exclude_none=True, exclude={"scale", "vary", "default_scale"})
        return {**resolved, "seed": self.seed, "scale": self.scale, "variant": self.variant}

    def topology_json(self) -> dict[str, Any]:
        """The resolved topology as it goes into run.json, quantities with their units."""
        return {**self.topology.model_dump(mode="json", exclude_none=True), "clock": self.clock}


def resolve_workloads(scenario: Scenario, network: Network) -> tuple[list[WorkloadBase], list[Finding]]:
    """The scenario's workloads with clients and sizes made explicit, and what does not fit the topology."""
    workloads: list[WorkloadBase] = []
    findings: list[Finding] = []
    for number, written in enumerate(scenario.workloads):
        path = ("workloads", number)
        workload = written.model_copy(update={"clients": _clients(written, network)})
        wrong = list(_ends(workload, network, path))
        if not wrong:
            kind, ends = KINDS[workload.app], Ends(network, workload.server, workload.clients)
            wrong = list(kind.check(workload, ends, path))
            if not wrong:
                workload, wrong = kind.resolve(workload, ends, path)
        findings.extend(wrong)
        workloads.append(workload)
    if not findings:
        findings = [each for kind in KINDS.values() for each in kind.check_all(workloads, network)]
        findings.extend(_check_ports(workloads))
    return workloads, findings


def _check_ports(workloads: list[WorkloadBase]) -> Iterator[Finding]:
    """One server a port. The finding is at the later workload, but where only the earlier one has a field for it."""
    taken: dict[tuple[str, int], tuple[int, object]] = {}
    for number, workload in enumerate(workloads):
        for port, server in workload.tcp_ports.items():
            first, known = taken.setdefault((workload.server, port), (number, server))
            if known != server:
                at, other = (number, first) if PORT in type(workload).model_fields else (first, number)
                what = f"port {port} of {workload.server!r} is that of another server, of workloads.{other}"
                yield Finding(("workloads", at, PORT), what, "a port of its own, or the same server")


def check_traces(workloads: list[WorkloadBase], network: Network, clock: Clock) -> Iterator[Finding]:
    """A trace is of virtual time, which no machine on another host has, and of kernels that say where functions are."""
    for number, workload in enumerate(workloads):
        if not isinstance(workload, Traced) or workload.trace == NO_TRACE:
            continue
        path = ("workloads", number, "trace")
        images = {name: IMAGES[network.node(name).image] for name in (workload.server, *workload.clients)}
        silent = [f"{name!r} boots {image.name}" for name, image in images.items() if not _says_functions(image)]
        if workload.server in workload.clients:
            what = f"{workload.server!r} is client and server: whose a stamp is, it does not say"
            yield Finding(path, what, "none, or other clients")
        elif clock != "virtual":
            yield Finding(path, "functions are stamped in virtual time alone", "none, or the clock virtual")
        elif silent:
            fitting = " or ".join(name for name, image in IMAGES.items() if _says_functions(image))
            what = f"{silent[0]}, whose kernel does not say where its functions are"
            yield Finding(path, what, f"none, or machines that boot {fitting}")


def _says_functions(image: ImageKind) -> bool:
    return image.kallsyms or image.fixed_kernel


def _clients(workload: WorkloadBase, network: Network) -> tuple[str, ...]:
    if workload.clients != (EVERYONE,):
        return workload.clients
    others = tuple(node.name for node in network.nodes if node.role == "host" and node.name != workload.server)
    # A host that is alone calls itself, where it can.
    return others or tuple(node.name for node in network.nodes if node.name == workload.server and node.inner)


def _ends(workload: WorkloadBase, network: Network, path: Path) -> Iterator[Finding]:
    hosts = {node.name: node for node in network.nodes if node.role == "host"}
    named = [("server", workload.server), *(("clients", client) for client in workload.clients)]
    for field, name in named:
        if name not in hosts:
            yield Finding((*path, field), f"topology {network.name!r} has no host {name!r}", ", ".join(hosts))
        elif not KINDS[workload.app].runs_on(IMAGES[hosts[name].image]):
            yield Finding((*path, field), f"image {hosts[name].image!r} of {name!r} does not run {workload.app}")
    if not workload.clients:
        yield Finding((*path, "clients"), f"topology {network.name!r} has no host but the server")
    for client in workload.clients:
        if client == workload.server:
            yield from _own_client(workload, hosts.get(client), path)
        elif client in hosts and workload.server in hosts and network.route(client, workload.server) is None:
            what = f"{client!r} and {workload.server!r} share no segment, and no routes lead from one to the other"
            yield Finding((*path, "clients"), what)
        elif client in hosts and workload.server in hosts:
            yield from _mtus_on_the_way(network, client, workload.server, path)


def _own_client(workload: WorkloadBase, node: Node | None, path: Path) -> Iterator[Finding]:
    """A server that is its own client calls itself where that can be captured."""
    if node is None:
        return  # said already
    between = [each.name for each in KINDS[workload.app].transports if each.between_nodes]
    over_nodes = [name for name in workload.transports if name in between]
    if not node.inner:
        what = f"{node.name!r} is the server, and what passes its loopback interface is not captured"
        yield Finding((*path, "clients"), what, f"other machines, or in virtual time loopback: captured of {node.name}")
    elif over_nodes:
        what = f"{node.name!r} is the server, and {over_nodes[0]} is between nodes"
        yield Finding((*path, "clients"), what, "other machines, or transports between addresses")


def _mtus_on_the_way(network: Network, client: str, server: str, path: Path) -> Iterator[Finding]:
    """A router would cut packets that are too long for the next wire, and expectations know the ends alone."""
    hops = network.passed(client, server)
    if len(hops) < 2:
        return
    ends = max(hops[0][0].mtu, hops[-1][1].mtu)
    for nic in (nic for hop in hops for nic in hop):
        if nic.mtu < ends:
            what = f"packets of {ends} bytes from {client!r} to {server!r} do not fit {nic.end}, MTU {nic.mtu}"
            yield Finding((*path, "clients"), what, "ends whose MTU is the least on the way")
            return
