# SPDX-License-Identifier: Apache-2.0
"""What each guest is told to do: interfaces, services, steps. The format is in ARCHITECTURE.md ("Job")."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from sundial.errors import BadInput
from sundial.model.experiment import AnyWorkload, Experiment, procedures_of
from sundial.model.fit import is_mbcf, semantics_of
from sundial.model.images import IMAGES
from sundial.model.network import Network, Nic, Node
from sundial.model.scenario import MBCF_TRANSPORTS, Iperf3, Mbcf, Raw, Sized, SunRpc
from sundial.model.topology import Clock
from sundial.plan.seeds import epoch, machine_seed, series_seed, shuffled

VERSION = 1
JOB_BYTES = 65536
BRIDGE_START_NS = 1_000_000_000
REFERENCE_MIPS = 125
TASK_SIZES_MOST = 64

Job = dict[str, Any]
Task = dict[str, Any]

WAITING: Job = {"version": VERSION, "wait": True}
"""The job of a guest that is only booted for a snapshot."""


def encode_job(job: Job, *, zero_ns: int | None = None) -> bytes:
    """The bytes that fw_cfg serves, padded; `zero_ns` is the guest clock's reading at the start of the run.

    Raises BadInput where a job is too long: its scenario has too many steps or sizes.
    """
    told = job if zero_ns is None else {**job, "zero_ns": zero_ns}
    text = json.dumps(told, separators=(",", ":")).encode()
    if len(text) > JOB_BYTES:
        what = f"the job of machine {job.get('machine')!r} has {len(text)} bytes"
        raise BadInput(what, allowed=f"{JOB_BYTES}: fewer sizes, series or steps")
    return text + b"\n" * (JOB_BYTES - len(text))


def build_jobs(experiment: Experiment) -> dict[str, Job]:
    """A job for every machine of a run, in machine order. Raises BadInput where workloads want one server two ways."""
    network = experiment.network
    steps = {node.name: list(_steps(experiment, node)) for node in network.nodes}
    services = {node.name: _services(experiment, node) for node in network.nodes}
    start_ns = experiment.scenario.start or default_start(network)
    return {
        node.name: _job(
            network,
            node,
            experiment.seed,
            experiment.clock,
            services=services[node.name],
            steps=steps[node.name],
            start_ns=start_ns,
        )
        for node in network.nodes
    }


def build_idle_jobs(network: Network, *, clock: Clock, seed: int) -> dict[str, Job]:
    """A job for every machine of a topology that is only brought up: all services on every host, nothing to call."""
    return {
        node.name: {
            **_job(
                network,
                node,
                seed,
                clock,
                services=_everything(network, node, seed) if node.role == "host" else [],
                steps=[],
                start_ns=0,
            ),
            "interactive": True,
        }
        for node in network.nodes
    }


def default_start(network: Network) -> int:
    """When steps begin, in ns: what the slowest image to start needs, or BRIDGE_START_NS where a machine is a bridge,
    which loads modules and must forward the first frame; longer in proportion where a machine is slower than
    REFERENCE_MIPS.
    """
    slowest = min(node.mips for node in network.nodes)
    start_ns = max(IMAGES[node.image].start_ns for node in network.nodes)
    if any(node.role == "bridge" for node in network.nodes):
        start_ns = max(start_ns, BRIDGE_START_NS)
    return max(start_ns, int(start_ns * REFERENCE_MIPS / slowest))


def node_id(node: Node) -> int:
    """How MBCF names a machine: its place in the topology, counted from 1."""
    return node.index + 1


def _everything(network: Network, node: Node, seed: int) -> list[Task]:
    if node.image == "ssscore":
        return [
            {"app": "portmapper", "options": {}},
            {"app": "echo-server", "options": {"transports": ["udp", "tcp", *MBCF_TRANSPORTS]}},
            {"app": "mbcf-server", "options": {}},
        ]
    sockets: list[Task] = [
        {"app": "rpcbind", "options": {}},
        {"app": "echo-server", "options": {"transports": ["udp", "tcp"]}},
        {"app": "raw-server", "options": {"transports": ["udp", "tcp"]}},
        {"app": "iperf3-server", "options": {}},
    ]
    if all(other.image != "ssscore" for other in network.nodes):
        return sockets
    served = {"transports": list(MBCF_TRANSPORTS), "endpoint": _endpoint(network, node, seed, "service")}
    return [*sockets, {"app": "mbcf-echo-server", "options": served}]


def _endpoint(network: Network, node: Node, seed: int, *process: str | int) -> dict[str, Any]:
    """A process on Linux as a node of the cluster; what it sends after an end and a new start must not be taken for
    the old one's, hence an epoch for each.
    """
    return {
        "device": node.nics[0].device,
        "node": node_id(node),
        "epoch": epoch(seed, node.name, *process),
        "nodes": _nodes(network, node),
    }


def _nodes(network: Network, node: Node) -> list[dict[str, Any]]:
    """Everybody else whom frames from eth0 reach at their own eth0."""
    reached = {nic.machine: nic for nic in network.neighbours(node.nics[0]) if nic.index == 0}
    return [
        {"node": node_id(other), "machine": other.name, "mac": reached[other.name].mac}
        for other in network.nodes
        if other.name in reached
    ]


def _job(
    network: Network,
    node: Node,
    seed: int,
    clock: Clock,
    *,
    services: list[Task],
    steps: list[Task],
    start_ns: int,
) -> Job:
    return {
        "version": VERSION,
        "machine": node.name,
        "seed": machine_seed(seed, node.name),
        "clock": "tsc" if clock == "virtual" else "monotonic",
        "interfaces": [_interface(network, nic) for nic in node.nics],
        "bridge": _bridge(node),
        **_cluster(network, node, seed),
        "files": {},
        "services": services,
        "start_ns": start_ns if clock == "virtual" else 0,
        "zero_ns": 0,
        "steps": steps,
    }


def _cluster(network: Network, node: Node, seed: int) -> dict[str, Any]:
    """What makes the machine a node of MBCF; Linux machines are told with each process instead."""
    if node.image != "ssscore":
        return {}
    return {"node": node_id(node), "epoch": epoch(seed, node.name), "nodes": _nodes(network, node)}


def _interface(network: Network, nic: Nic) -> dict[str, Any]:
    told: dict[str, Any] = {"device": nic.device, "mac": nic.mac, "mtu": nic.mtu, "offloads": nic.offloads}
    if nic.address is not None:
        told["address"] = str(nic.address)
    others = network.neighbours(nic) if nic.static_arp else []
    told["neighbours"] = [{"address": str(other.address.ip), "mac": other.mac} for other in others if other.address]
    return told


def _bridge(node: Node) -> dict[str, Any] | None:
    if node.role != "bridge":
        return None
    return {"ports": [nic.device for nic in node.nics], "netem": {nic.device: nic.netem for nic in node.nics}}


def _services(experiment: Experiment, node: Node) -> list[Task]:
    """What `node` serves: one service for an app, whatever the number of workloads; the binder first."""
    wanted: dict[str, dict[str, Any]] = {}
    for workload in experiment.workloads:
        if workload.server != node.name:
            continue
        for app, options in _workload_services(workload, node):
            if app not in wanted:
                wanted[app] = options
                continue
            transports = [*wanted[app].pop("transports", []), *options.pop("transports", [])]
            if wanted[app] != options:
                raise BadInput(
                    f"two workloads want {app} on {node.name!r} with different options",
                    allowed="the same buffers, tcp_nodelay, semantics and so on, or another server",
                )
            if transports:
                wanted[app]["transports"] = list(dict.fromkeys(transports))
    for app, options in wanted.items():
        if node.image == "linux" and app.startswith("mbcf-"):
            options["endpoint"] = _endpoint(experiment.network, node, experiment.seed, "service")
    tasks: list[Task] = [{"app": app, "options": options} for app, options in wanted.items()]
    for task in tasks:
        if task["app"] == "echo-server" and _starts_anew(experiment, node):
            task["restart"] = True
    if node.image == "ssscore" and tasks:
        return [{"app": "portmapper", "options": {}}, *tasks]  # the binder of MBCF too
    return [{"app": "rpcbind", "options": {}}, *tasks] if "echo-server" in wanted else tasks


def _starts_anew(experiment: Experiment, node: Node) -> bool:
    """Whether an echo server there that has died is to come back."""
    ours = (workload for workload in experiment.workloads if workload.server == node.name)
    return any(isinstance(workload, SunRpc) and workload.die is not None and workload.die.restart for workload in ours)


def _workload_services(workload: AnyWorkload, node: Node) -> Iterator[tuple[str, dict[str, Any]]]:
    """One service, but two for Sun RPC on Linux over sockets and over MBCF."""
    if isinstance(workload, Mbcf):
        yield "mbcf-server", {}
    elif not isinstance(workload, SunRpc):
        yield _socket_service(workload)
    elif node.image == "ssscore":
        yield "echo-server", {"transports": list(workload.transports), **_buffers(workload), **_serving_calls(workload)}
    else:
        sockets = tuple(name for name in workload.transports if not is_mbcf(name))
        memory = [name for name in workload.transports if is_mbcf(name)]
        if sockets:
            yield _socket_service(workload.model_copy(update={"transports": sockets}))
        if memory:
            yield "mbcf-echo-server", {"transports": memory, **_serving_calls(workload)}


def _serving_calls(workload: SunRpc) -> dict[str, Any]:
    """What only SSS-CORE's RPC library is told, on whatever kernel it runs."""
    die = None if workload.die is None else workload.die.model_dump(mode="json", exclude={"restart"})
    told = {"semantics": workload.semantics, "reply_cache": workload.reply_cache, "die": die}
    return {name: value for name, value in told.items() if value is not None}


def _socket_service(workload: SunRpc | Raw | Iperf3) -> tuple[str, dict[str, Any]]:
    if isinstance(workload, Iperf3):
        return "iperf3-server", {}
    served = _served(workload, "tcp_nodelay", "socket_buffer")
    options = {"transports": list(workload.transports), **served}
    if isinstance(workload, SunRpc):
        return "echo-server", {**options, **_buffers(workload)}
    return "raw-server", options


def _buffers(workload: SunRpc) -> dict[str, Any]:
    """Those of the RPC library at the server's end."""
    return _served(workload, "send_buffer", "recv_buffer", "udp_message_size")


def _served(workload: SunRpc | Raw, *names: str) -> dict[str, Any]:
    """These options where they are written, the server's own before those of the workload."""
    own = {name: getattr(workload.serving, name, None) for name in names}
    told = {name: getattr(workload, name) if own[name] is None else own[name] for name in names}
    return {name: value for name, value in told.items() if value is not None}


def _steps(experiment: Experiment, node: Node) -> Iterator[Task]:
    """All steps of a machine; a process on Linux that speaks MBCF gets its endpoint."""
    for number, step in enumerate(_plain_steps(experiment, node)):
        if node.image == "linux" and step["app"].startswith("mbcf-"):
            step["options"]["endpoint"] = _endpoint(experiment.network, node, experiment.seed, "step", number)
        yield step


def _plain_steps(experiment: Experiment, node: Node) -> Iterator[Task]:
    for workload in experiment.workloads:
        if node.name not in workload.clients:
            continue
        route = experiment.network.route(node.name, workload.server)
        if route is None or route[1].address is None:
            raise AssertionError("resolve_workloads refuses clients that do not reach their server")
        server = str(route[1].address.ip)
        peer = node_id(experiment.network.node(workload.server))
        for series in range(workload.series):
            for transport in workload.transports:
                if isinstance(workload, Iperf3):
                    yield _iperf3_step(workload, server, transport, series)
                elif isinstance(workload, Mbcf):
                    yield from _operation_steps(workload, peer, series, experiment.seed)
                else:
                    whom = peer if is_mbcf(transport) else server
                    yield from _calling_steps(workload, node, whom, transport, series, experiment.seed)


def _operation_steps(workload: Mbcf, server: int, series: int, seed: int) -> Iterator[Task]:
    for operation in workload.operations:
        for mode in workload.modes:
            for calls, sizes in _pieces(_bands(workload, operation, series, seed)):
                options = {
                    "server": server,
                    "operation": operation,
                    "mode": mode,
                    "series": series,
                    "sizes": sizes,
                    "calls": calls,
                    "warmup": workload.warmup,
                    "total_timeout_ms": workload.total_timeout,
                }
                yield {"app": "mbcf-client", "options": options}


def _calling_steps(
    workload: SunRpc | Raw, client: Node, server: str | int, transport: str, series: int, seed: int
) -> Iterator[Task]:
    for procedure in procedures_of(workload):
        bands = _bands(workload, procedure, series, seed)
        for calls, sizes in _pieces(bands) if client.image == "ssscore" or is_mbcf(transport) else bands:
            options: dict[str, Any] = {
                "server": server,
                "transport": transport,
                "procedure": procedure if isinstance(workload, SunRpc) else None,
                "series": series,
                "sizes": sizes,
                "calls": calls,
                "warmup": workload.warmup,
                "connection": workload.connection,
                "threads": workload.threads,
                "total_timeout_ms": workload.total_timeout,
                "socket_buffer": workload.socket_buffer,
            }
            if transport == "udp":
                options["retry_timeout_ms"] = workload.retry_timeout
            elif transport == "tcp":
                options["tcp_nodelay"] = workload.tcp_nodelay
            if isinstance(workload, SunRpc):
                options.update(_sunrpc_options(workload, transport))
                if client.image == "ssscore" or is_mbcf(transport):
                    semantics = semantics_of(workload, transport)
                    options["semantics"] = semantics
                    if is_mbcf(transport) and semantics != "exactly_once":
                        options["retry_timeout_ms"] = workload.retry_timeout
                    if workload.auth == "sys":
                        options["auth_machine"] = client.name
            told = {name: value for name, value in options.items() if value is not None}
            yield {"app": _client_app(workload, client.image, transport), "options": told}


def _client_app(workload: SunRpc | Raw, image: str, transport: str) -> str:
    if isinstance(workload, Raw):
        return "raw-client"
    return "mbcf-echo-client" if image == "linux" and is_mbcf(transport) else "echo-client"


def _sunrpc_options(workload: SunRpc, transport: str) -> dict[str, Any]:
    if is_mbcf(transport):
        told = {"auth": workload.auth, "one_way": workload.one_way or None}
        return {**told, "depth": workload.depth, "ack": workload.ack}
    if transport == "udp":
        return {"auth": workload.auth, "udp_message_size": workload.udp_message_size}
    return {
        "auth": workload.auth,
        "one_way": workload.one_way or None,
        "send_buffer": workload.send_buffer,
        "recv_buffer": workload.recv_buffer,
    }


def _pieces(bands: Iterator[tuple[int, list[int]]]) -> Iterator[tuple[int, list[int]]]:
    """The same in steps of as many sizes as a task of SSS-CORE takes."""
    for calls, sizes in bands:
        for first in range(0, len(sizes), TASK_SIZES_MOST):
            yield calls, sizes[first : first + TASK_SIZES_MOST]


def _bands(workload: Sized, procedure: str, series: int, seed: int) -> Iterator[tuple[int, list[int]]]:
    """Sizes that are called equally often, in the order of the workload; `null` has the one size 0."""
    sizes = [0] if procedure == "null" else [size for size in workload.sizes if isinstance(size, int)]
    for number, (least, calls) in enumerate(workload.calls):
        end = workload.calls[number + 1][0] if number + 1 < len(workload.calls) else None
        band = [size for size in sizes if size >= least and (end is None or size < end)]
        if band:
            yield calls, shuffled(band, series_seed(seed, series)) if workload.order == "seeded" else band


def _iperf3_step(workload: Iperf3, server: str, transport: str, series: int) -> Task:
    options: dict[str, Any] = {
        "server": server,
        "transport": transport,
        "series": series,
        "duration_ms": workload.duration,
        "streams": workload.streams,
        "rate_bps": workload.rate if transport == "udp" else None,
        "socket_buffer": workload.socket_buffer,
        "tcp_nodelay": workload.tcp_nodelay if transport == "tcp" else None,
    }
    return {"app": "iperf3-client", "options": {name: value for name, value in options.items() if value is not None}}
