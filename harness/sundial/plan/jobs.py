# SPDX-License-Identifier: Apache-2.0
"""The job of each guest: interfaces, services, steps. The format is in harness/schemas/README.md ("job.json").

Services and steps come from the kinds of the workloads (`workload.WorkloadPlan`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sundial import kinds
from sundial.errors import BadInput
from sundial.model.experiment import Experiment
from sundial.model.images import IMAGES
from sundial.model.network import Network, Nic, Node
from sundial.model.scenario import KINDS
from sundial.model.topology import Clock
from sundial.plan import segment
from sundial.plan.cluster import endpoint, machine_node
from sundial.plan.seeds import machine_seed
from sundial.plan.workload import Host, Way, WorkloadPlan
from sundial.plan.workload import Service as ServicePlan
from sundial.seams.job import JOB_BYTES, Bridge, Interface, Job, Neighbour, Route, Service, Task

REFERENCE_MIPS = 125

PLANS: Mapping[str, WorkloadPlan[Any]] = kinds.load("workloads", "plan", WorkloadPlan)
"""Kinds by the word in `app`."""

WAITING = Job(version=1, wait=True)
"""The job of a guest that is only booted for a snapshot."""


def encode_job(job: Job, *, zero_ns: int | None = None) -> bytes:
    """The bytes that fw_cfg serves, padded; `zero_ns` is the guest clock's reading at the start of the run.

    Raises BadInput if a job is too long, because its scenario has too many steps or sizes.
    """
    complete = job if zero_ns is None else job.model_copy(update={"zero_ns": zero_ns})
    text = complete.text()
    if len(text) > JOB_BYTES:
        what = f"the job of machine {job.machine!r} has {len(text)} bytes"
        raise BadInput(what, allowed=f"up to {JOB_BYTES}, with fewer sizes, series or steps")
    return text + b"\n" * (JOB_BYTES - len(text))


def build_jobs(experiment: Experiment) -> dict[str, Job]:
    """A job for every machine of a run, in machine order.

    Raises BadInput if two workloads configure one server differently.
    """
    network = experiment.network
    steps = {node.name: list(_steps(experiment, node)) for node in network.nodes}
    services = {node.name: _services(experiment, node) for node in network.nodes}
    start_ns = experiment.scenario.start or default_start(network)
    clients = [name for name, tasks in steps.items() if tasks]
    named = {name for workload in experiment.workloads for name in workload.machines}
    later = {name: number * experiment.scenario.stagger for number, name in enumerate(clients)}
    return {
        node.name: _job(
            network,
            node,
            experiment.seed,
            experiment.clock,
            services=services[node.name],
            steps=steps[node.name],
            start_ns=start_ns + later.get(node.name, 0),
            named=node.name in named,
        )
        for node in network.nodes
    }


def build_idle_jobs(network: Network, *, clock: Clock, seed: int) -> dict[str, Job]:
    """A job for every machine of a topology that stays up: all services on every host, and no calls."""
    return {
        node.name: _job(
            network,
            node,
            seed,
            clock,
            services=_idle_services(network, node, seed) if node.role == "host" else [],
            steps=[],
            start_ns=0,
            named=True,
        ).model_copy(update={"interactive": True})
        for node in network.nodes
    }


def default_start(network: Network) -> int:
    """Start of the steps in ns: the boot time of the slowest image, or of the slowest part of a machine in a segment;
    proportionally longer if a machine is slower than REFERENCE_MIPS.
    """
    slowest = min(node.mips for node in network.nodes)
    ready_ns = max(max(IMAGES[node.image].start_ns, segment.start_ns(node)) for node in network.nodes)
    return max(ready_ns, int(ready_ns * REFERENCE_MIPS / slowest))


def _job(
    network: Network,
    node: Node,
    seed: int,
    clock: Clock,
    *,
    services: list[Service],
    steps: list[Task],
    start_ns: int,
    named: bool,
) -> Job:
    """`named`: a user's programs run there, which may use the names of machines."""
    image = IMAGES[node.image]
    return Job(
        version=1,
        machine=node.name,
        seed=machine_seed(seed, node.name),
        clock="tsc" if clock == "virtual" else "monotonic",
        interfaces=tuple(_interface(network, nic) for nic in node.network_adapters),
        bridge=_bridge(node),
        **_routing(node),
        **_cluster(network, node, seed),
        files={"/etc/hosts": _hosts(network, node)} if named and image.files and not image.flat_files else {},
        services=tuple(services),
        start_ns=start_ns if clock == "virtual" else 0,
        zero_ns=0,
        steps=tuple(steps),
    )


def _hosts(network: Network, node: Node) -> str:
    """hosts(5): each machine with the address that `node` reaches, or else its first one."""
    lines = ["127.0.0.1 localhost"]
    for other in network.nodes:
        route = network.route(node.name, other.name)
        addresses = [nic.address for nic in ([route[1]] if route else other.network_adapters) if nic.address]
        lines += [f"{address.ip} {other.name}" for address in addresses[:1]]
    return "".join(f"{line}\n" for line in lines)


def _routing(node: Node) -> dict[str, Any]:
    """The fields, without those that have no value."""
    routes = tuple(Route(to=str(route.to), via=str(route.via)) for route in node.routes)
    return {**({"routes": routes} if routes else {}), **({"forward": True} if node.forwards else {})}


def _bridge(node: Node) -> Bridge | None:
    part = segment.bridge(node)
    return None if part is None else Bridge.model_validate(part)


def _cluster(network: Network, node: Node, seed: int) -> dict[str, Any]:
    """Fields that make the machine a node of MBCF; if processes are nodes, their options have them."""
    return {} if IMAGES[node.image].node_is_process else machine_node(network, node, seed)


def _interface(network: Network, nic: Nic) -> Interface:
    others = network.neighbours(nic) if nic.static_arp else []
    address = {} if nic.address is None else {"address": str(nic.address)}
    return Interface(
        device=nic.device,
        mac=nic.mac,
        mtu=nic.mtu,
        offloads=nic.offloads,
        **address,
        neighbours=tuple(
            Neighbour(address=str(other.address.ip), mac=other.mac) for other in others if other.address is not None
        ),
    )


def _services(experiment: Experiment, node: Node) -> list[Service]:
    """Services of `node`: one for an app and instance, for any number of workloads."""
    host = Host(experiment.network, node)
    merged: dict[tuple[str, str], ServicePlan] = {}
    for workload in experiment.workloads:
        if workload.server == node.name:
            for service in PLANS[workload.app].services(workload, host):
                key = (service.app, service.instance)
                known = merged.get(key)
                merged[key] = known.merged(service, node.name) if known else service
    return _tasks(host, list(merged.values()), experiment.seed)


def _idle_services(network: Network, node: Node, seed: int) -> list[Service]:
    """All services that the machine's image supports."""
    host = Host(network, node)
    fitting = (PLANS[name] for name, kind in KINDS.items() if kind.runs_on(host.image))
    return _tasks(host, [service for plan in fitting for service in plan.idle_services(host)], seed)


def _tasks(host: Host, planned: Sequence[ServicePlan], seed: int) -> list[Service]:
    """Services for a job, the binder first if one of them needs it."""
    services = []
    for service in planned:
        options = dict(service.options)
        if service.endpoint:
            options["endpoint"] = endpoint(host.network, host.node, seed, "service")
        restart = {"restart": True} if service.restart else {}
        services.append(Service(app=service.app, options=options, **restart))
    binder = [Service(app=host.image.binder, options={})] if any(service.bound for service in planned) else []
    return [*binder, *services]


def _steps(experiment: Experiment, node: Node) -> Iterator[Task]:
    """All steps of a machine; a process that is a node of MBCF gets its endpoint."""
    host = Host(experiment.network, node)
    steps = (
        step
        for place, workload in enumerate(experiment.workloads)
        if node.name in (workload.machines or workload.clients)
        for step in PLANS[workload.app].steps(workload, Way(host, workload.server, experiment.seed, place))
    )
    for number, step in enumerate(steps):
        options = dict(step.options)
        if step.endpoint:
            options["endpoint"] = endpoint(host.network, node, experiment.seed, "step", number)
        yield Task(app=step.app, options=options)
