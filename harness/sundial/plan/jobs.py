# SPDX-License-Identifier: Apache-2.0
"""What each guest is told to do: interfaces, services, steps. The format is in ARCHITECTURE.md ("Job")."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from sundial.errors import BadInput
from sundial.model.experiment import AnyWorkload, Experiment
from sundial.model.network import Network, Nic, Node
from sundial.model.scenario import Calling, Iperf3, Raw, SunRpc
from sundial.model.topology import Clock
from sundial.plan.seeds import machine_seed, series_seed, shuffled

VERSION = 1
JOB_BYTES = 65536
START_NS = 300_000_000
"""Default start of the steps: time for services to come up on a machine of REFERENCE_MIPS."""
BRIDGE_START_NS = 1_000_000_000
REFERENCE_MIPS = 125

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
    everything: list[Task] = [
        {"app": "rpcbind", "options": {}},
        {"app": "echo-server", "options": {"transports": ["udp", "tcp"]}},
        {"app": "raw-server", "options": {"transports": ["udp", "tcp"]}},
        {"app": "iperf3-server", "options": {}},
    ]
    return {
        node.name: {
            **_job(
                network, node, seed, clock, services=everything if node.role == "host" else [], steps=[], start_ns=0
            ),
            "interactive": True,
        }
        for node in network.nodes
    }


def default_start(network: Network) -> int:
    """When steps begin, in ns: START_NS, or BRIDGE_START_NS where a machine is a bridge, which loads modules and must
    forward the first frame; longer in proportion where a machine is slower than REFERENCE_MIPS.
    """
    slowest = min(node.mips for node in network.nodes)
    start_ns = BRIDGE_START_NS if any(node.role == "bridge" for node in network.nodes) else START_NS
    return max(start_ns, int(start_ns * REFERENCE_MIPS / slowest))


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
        "files": {},
        "services": services,
        "start_ns": start_ns if clock == "virtual" else 0,
        "zero_ns": 0,
        "steps": steps,
    }


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
    """What `node` serves: one service for an app, whatever the number of workloads; rpcbind first."""
    wanted: dict[str, dict[str, Any]] = {}
    for workload in experiment.workloads:
        if workload.server != node.name:
            continue
        app, options = _service(workload)
        if app not in wanted:
            wanted[app] = options
            continue
        transports = [*wanted[app].pop("transports", []), *options.pop("transports", [])]
        if wanted[app] != options:
            raise BadInput(
                f"two workloads want {app} on {node.name!r} with different options",
                allowed="the same buffers, tcp_nodelay and udp_message_size, or another server",
            )
        if transports:
            wanted[app]["transports"] = list(dict.fromkeys(transports))
    tasks = [{"app": app, "options": options} for app, options in wanted.items()]
    return [{"app": "rpcbind", "options": {}}, *tasks] if "echo-server" in wanted else tasks


def _service(workload: AnyWorkload) -> tuple[str, dict[str, Any]]:
    if isinstance(workload, Iperf3):
        return "iperf3-server", {}
    served = {name: getattr(workload.serving, name) for name in type(workload.serving).model_fields}
    options: dict[str, Any] = {"transports": list(workload.transports)}
    names = ["tcp_nodelay", "socket_buffer"]
    if isinstance(workload, SunRpc):
        names += ["send_buffer", "recv_buffer", "udp_message_size"]
    for name in names:
        own = getattr(workload, name) if served.get(name) is None else served[name]
        if own is not None:
            options[name] = own
    return ("echo-server" if isinstance(workload, SunRpc) else "raw-server"), options


def _steps(experiment: Experiment, node: Node) -> Iterator[Task]:
    for workload in experiment.workloads:
        if node.name not in workload.clients:
            continue
        route = experiment.network.route(node.name, workload.server)
        if route is None or route[1].address is None:
            raise AssertionError("resolve_workloads refuses clients that do not reach their server")
        server = str(route[1].address.ip)
        for series in range(workload.series):
            for transport in workload.transports:
                if isinstance(workload, Iperf3):
                    yield _iperf3_step(workload, server, transport, series)
                else:
                    yield from _calling_steps(workload, server, transport, series, experiment.seed)


def _calling_steps(workload: SunRpc | Raw, server: str, transport: str, series: int, seed: int) -> Iterator[Task]:
    procedures = workload.procedures if isinstance(workload, SunRpc) else ("echo",)
    for procedure in procedures:
        for calls, sizes in _bands(workload, procedure):
            if workload.order == "seeded":
                sizes = shuffled(sizes, series_seed(seed, series))
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
            else:
                options["tcp_nodelay"] = workload.tcp_nodelay
            if isinstance(workload, SunRpc):
                options.update(_sunrpc_options(workload, transport))
            told = {name: value for name, value in options.items() if value is not None}
            yield {"app": "echo-client" if isinstance(workload, SunRpc) else "raw-client", "options": told}


def _sunrpc_options(workload: SunRpc, transport: str) -> dict[str, Any]:
    if transport == "udp":
        return {"auth": workload.auth, "udp_message_size": workload.udp_message_size}
    return {
        "auth": workload.auth,
        "one_way": workload.one_way or None,
        "send_buffer": workload.send_buffer,
        "recv_buffer": workload.recv_buffer,
    }


def _bands(workload: Calling, procedure: str) -> Iterator[tuple[int, list[int]]]:
    """Sizes that are called equally often, ascending; `null` has the one size 0."""
    sizes = [0] if procedure == "null" else [size for size in workload.sizes if isinstance(size, int)]
    for number, (least, calls) in enumerate(workload.calls):
        end = workload.calls[number + 1][0] if number + 1 < len(workload.calls) else None
        band = [size for size in sizes if size >= least and (end is None or size < end)]
        if band:
            yield calls, band


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
