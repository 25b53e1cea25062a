# SPDX-License-Identifier: Apache-2.0
"""One run, resolved: a scenario whose clients and sizes are explicit, on a topology, with its seed and clock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from sundial.model.images import IMAGES, ImageKind
from sundial.model.invalid import Invalid, Path
from sundial.model.lists import EVERYONE
from sundial.model.network import Network, Node
from sundial.model.scenario import KINDS, Scenario
from sundial.model.topology import Clock, Topology
from sundial.model.workload import NO_TRACE, Ends, Traced, WorkloadBase

PORT = "port"
"""The field of workloads whose server's port can be set."""


@dataclass(frozen=True)
class Experiment:
    """Everything that a run depends on, except images and versions."""

    scenario: Scenario
    """Its workloads have explicit `clients` and ascending integer `sizes`."""
    topology: Topology
    network: Network
    seed: int
    clock: Clock
    scale: str | None
    variant: str
    """The values that `vary` set for this run; may be empty."""

    @property
    def workloads(self) -> list[WorkloadBase]:
        return list(self.scenario.workloads)

    def with_seed(self, seed: int) -> Experiment:
        """The same run with another seed, on which nothing of the model depends."""
        return replace(self, seed=seed)

    def scenario_json(self) -> dict[str, Any]:
        """The resolved scenario for run.json, quantities with their units."""
        resolved = self.scenario.model_dump(mode="json", exclude_none=True, exclude={"scale", "vary", "default_scale"})
        return {**resolved, "seed": self.seed, "scale": self.scale, "variant": self.variant}

    def topology_json(self) -> dict[str, Any]:
        """The resolved topology for run.json, quantities with their units."""
        return {**self.topology.model_dump(mode="json", exclude_none=True), "clock": self.clock}


def resolve_workloads(scenario: Scenario, network: Network) -> tuple[list[WorkloadBase], list[Invalid]]:
    """The scenario's workloads with explicit clients and sizes, and findings where they do not fit the topology."""
    workloads: list[WorkloadBase] = []
    findings: list[Invalid] = []
    for number, written in enumerate(scenario.workloads):
        path = ("workloads", number)
        workload = written.model_copy(update={"clients": _clients(written, network)})
        wrong = list((_machines if workload.machines else _ends)(workload, network, path))
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


def _check_ports(workloads: list[WorkloadBase]) -> Iterator[Invalid]:
    """Invalid fields where two servers have one port: at the later workload, or where the port is a field."""
    taken: dict[tuple[str, int], tuple[int, object]] = {}
    for number, workload in enumerate(workloads):
        for port, server in workload.tcp_ports.items():
            first, known = taken.setdefault((workload.server, port), (number, server))
            if known != server:
                at, other = (number, first) if PORT in type(workload).model_fields else (first, number)
                what = f"port {port} of {workload.server!r} is already used by the server of workloads.{other}"
                yield Invalid(("workloads", at, PORT), what, "another port, or the same server")


def check_traces(workloads: list[WorkloadBase], network: Network, clock: Clock) -> Iterator[Invalid]:
    """Invalid traces: they need virtual time, so no machines on other hosts, and kernels with symbol tables."""
    for number, workload in enumerate(workloads):
        if not isinstance(workload, Traced) or workload.trace == NO_TRACE:
            continue
        path = ("workloads", number, "trace")
        images = {name: IMAGES[network.node(name).image] for name in (workload.server, *workload.clients)}
        silent = [f"{name!r} boots {image.name}" for name, image in images.items() if not _says_functions(image)]
        if workload.server in workload.clients:
            what = f"tracing is not supported when client and server share machine {workload.server!r}"
            yield Invalid(path, what, "none, or other clients")
        elif clock != "virtual":
            yield Invalid(path, "tracing requires clock: virtual", "none, or clock: virtual")
        elif silent:
            fitting = " or ".join(name for name, image in IMAGES.items() if _says_functions(image))
            what = f"{silent[0]}, which has no kernel symbol table, so it cannot be traced"
            yield Invalid(path, what, f"none, or machines that boot {fitting}")


def _says_functions(image: ImageKind) -> bool:
    return image.kallsyms or image.fixed_kernel


def _clients(workload: WorkloadBase, network: Network) -> tuple[str, ...]:
    if workload.machines:
        return workload.machines
    if workload.clients != (EVERYONE,):
        return workload.clients
    others = tuple(node.name for node in network.nodes if node.role == "host" and node.name != workload.server)
    # A single host calls itself, if it can.
    return others or tuple(node.name for node in network.nodes if node.name == workload.server and node.inner)


def _machines(workload: WorkloadBase, network: Network, path: Path) -> Iterator[Invalid]:
    """Invalid machines of a workload without one server: each must boot a fitting image."""
    hosts = {node.name: node for node in network.nodes if node.role == "host"}
    for name in workload.machines:
        if name not in hosts:
            yield Invalid(path, f"topology {network.name!r} has no host {name!r}", ", ".join(hosts))
        else:
            yield from _unfit(workload, hosts[name], path)


def _unfit(workload: WorkloadBase, node: Node, path: Path) -> Iterator[Invalid]:
    runs_on = KINDS[workload.app].runs_on
    if not runs_on(IMAGES[node.image]):
        fitting = " or ".join(name for name, image in IMAGES.items() if runs_on(image))
        what = f"image {node.image!r} of {node.name!r} does not run {workload.app}"
        yield Invalid(path, what, f"machines that boot {fitting}")


def _ends(workload: WorkloadBase, network: Network, path: Path) -> Iterator[Invalid]:
    hosts = {node.name: node for node in network.nodes if node.role == "host"}
    named = [("server", workload.server), *(("clients", client) for client in workload.clients)]
    for field, name in named:
        if name not in hosts:
            yield Invalid((*path, field), f"topology {network.name!r} has no host {name!r}", ", ".join(hosts))
        else:
            yield from _unfit(workload, hosts[name], (*path, field))
    if not workload.clients:
        yield Invalid((*path, "clients"), f"topology {network.name!r} has no host except the server")
    for client in workload.clients:
        if client == workload.server:
            yield from _own_client(workload, hosts.get(client), path)
        elif client in hosts and workload.server in hosts and network.route(client, workload.server) is None:
            what = f"{client!r} and {workload.server!r} have no common segment and no routes to each other"
            yield Invalid((*path, "clients"), what)
        elif client in hosts and workload.server in hosts:
            yield from _mtus_on_the_way(network, client, workload.server, path)


def _own_client(workload: WorkloadBase, node: Node | None, path: Path) -> Iterator[Invalid]:
    """Invalid fields about a server that is its own client: its loopback must be captured."""
    if node is None:
        return  # said already
    between = [each.name for each in KINDS[workload.app].transports if each.between_nodes]
    over_nodes = [name for name in workload.transports if name in between]
    if not node.inner:
        what = f"{node.name!r} is the server, and its loopback interface is not captured"
        yield Invalid(
            (*path, "clients"), what, f"other machines, or with clock: virtual also loopback: captured of {node.name}"
        )
    elif over_nodes:
        what = f"{node.name!r} is the server, and {over_nodes[0]} connects different nodes only"
        yield Invalid((*path, "clients"), what, "other machines, or transports over IP")


def _mtus_on_the_way(network: Network, client: str, server: str, path: Path) -> Iterator[Invalid]:
    """Invalid fields where a router would fragment packets: expectations know only the MTUs of the ends."""
    hops = network.passed(client, server)
    if len(hops) < 2:
        return
    ends = max(hops[0][0].mtu, hops[-1][1].mtu)
    for nic in (nic for hop in hops for nic in hop):
        if nic.mtu < ends:
            what = f"packets of {ends} bytes from {client!r} to {server!r} exceed MTU {nic.mtu} of {nic.end}"
            yield Invalid((*path, "clients"), what, "an MTU at both ends that every wire between them carries")
            return
