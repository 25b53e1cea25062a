# SPDX-License-Identifier: Apache-2.0
"""Sun RPC in jobs.

Functions are a program of their own, of which a server serves one.

Two programs serve it where a process is a node of memory-based communication: one over sockets with the platform's own
library, one over MBCF with SSS-CORE's. Where the machine is the node, one task serves both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sundial.model.images import IMAGES
from sundial.plan.calling import call_options, served, socket_options, written
from sundial.plan.workload import Host, Options, Service, Step, Way, WorkloadPlan
from sundial.workloads import sockets
from sundial.workloads.function_options import function_options, turns
from sundial.workloads.mbcf import transports as over_mbcf
from sundial.workloads.mbcf.plan import TASK_SIZES_MOST
from sundial.workloads.sunrpc.model import semantics_of
from sundial.workloads.sunrpc.scenario import RINGS, TRANSPORTS, VRPC, SunRpc

SERVER, CLIENT = "echo-server", "echo-client"
_RINGS = frozenset(each.name for each in RINGS)
NODE_SERVER, NODE_CLIENT = "mbcf-echo-server", "mbcf-echo-client"
"""Programs whose process is a node."""


class SunRpcPlan:
    """Sun RPC, as the plan asks for it."""

    def services(self, workload: SunRpc, server: Host) -> Iterator[Service]:
        apart = server.image.node_is_process
        over_nodes = [name for name in workload.transports if apart and TRANSPORTS[name].between_nodes]
        others = [name for name in workload.transports if name not in over_nodes]
        if others:
            restart = workload.die is not None and workload.die.restart
            yield Service(SERVER, _server_options(workload, others, server), bound=True, restart=restart)
        if over_nodes:
            options = {"transports": over_nodes, **_program(workload), **_execution_options(workload)}
            yield Service(NODE_SERVER, options, endpoint=True)

    def steps(self, workload: SunRpc, way: Way) -> Iterator[Step]:
        for series in range(workload.series):
            for transport in workload.transports:
                for procedure in workload.procedures or (None,):
                    yield from _calls(workload, way, transport, procedure, series)

    def idle_services(self, host: Host) -> Iterator[Service]:
        names = [transport.name for transport in sockets.TRANSPORTS]
        if not host.image.node_is_process:
            yield Service(SERVER, {"transports": [*names, *over_mbcf.NAMES]}, bound=True)
            return
        yield Service(SERVER, {"transports": names}, bound=True)
        if any(not IMAGES[node.image].node_is_process for node in host.network.nodes):
            by_process = [name for name in over_mbcf.NAMES if name not in over_mbcf.TASKS_ONLY]
            yield Service(NODE_SERVER, {"transports": by_process}, endpoint=True)


def _server_options(workload: SunRpc, transports: Sequence[str], server: Host) -> Options:
    own = () if server.image.fixed_sockets else ("tcp_nodelay", "socket_buffer")
    return {
        "transports": list(transports),
        **_program(workload),
        **served(workload, *own, "send_buffer", "recv_buffer", "udp_message_size"),
        **(_execution_options(workload) if server.image.keeps_replies else {}),
        **_ring_options(workload, transports),
    }


def _ring_options(workload: SunRpc, transports: Sequence[str]) -> Options:
    """What both ends of vRPC must know."""
    options: Options = {}
    if _RINGS & set(transports):
        options["wait"] = workload.wait
    if VRPC in transports:
        options["deliberate_above"] = workload.deliberate_above
    return written(options)


def _program(workload: SunRpc) -> Options:
    """What is served, where it is not echo."""
    return {} if workload.functions is None else {"program": "functions"}


def _execution_options(workload: SunRpc) -> Options:
    """What SSS-CORE's library takes and the platform's own does not, on whatever kernel it runs."""
    die = None if workload.die is None else workload.die.model_dump(mode="json", exclude={"restart"})
    return written({"semantics": workload.semantics, "reply_cache": workload.reply_cache, "die": die})


def _calls(workload: SunRpc, way: Way, transport: str, procedure: str | None, series: int) -> Iterator[Step]:
    image = way.client.image
    between_nodes = TRANSPORTS[transport].between_nodes
    node_library = between_nodes or image.platform == over_mbcf.SSS_CORE
    process = between_nodes and image.node_is_process
    most = TASK_SIZES_MOST if node_library else None
    for band in turns(workload, series, way.seed, sizeless=procedure == "null", most=most):
        server = way.server_node if between_nodes else str(way.server_address)
        options = {
            **call_options(workload, band, server=server, transport=transport, procedure=procedure, series=series),
            **function_options(workload),
            **socket_options(workload, transport),
            "auth": workload.auth,
            **_transport_options(workload, transport),
            **(_library_options(workload, way, transport) if node_library else {}),
        }
        yield Step(NODE_CLIENT if process else CLIENT, written(options), endpoint=process)


def _transport_options(workload: SunRpc, transport: str) -> Options:
    if transport == "udp":
        return {"udp_message_size": workload.udp_message_size}
    one_way: Options = {"one_way": workload.one_way or None}
    if transport == "tcp":
        return {**one_way, "send_buffer": workload.send_buffer, "recv_buffer": workload.recv_buffer}
    if transport in _RINGS:
        return _ring_options(workload, [transport])
    return {**one_way, "depth": workload.depth, "ack": workload.ack}


def _library_options(workload: SunRpc, way: Way, transport: str) -> Options:
    """What SSS-CORE's library asks of a client besides."""
    semantics = semantics_of(workload, transport)
    asks_again = TRANSPORTS[transport].between_nodes and semantics != "exactly_once"
    return {
        "semantics": semantics,
        **({"retry_timeout_ms": workload.retry_timeout} if asks_again else {}),
        "auth_machine": way.client.node.name if workload.auth == "sys" else None,
    }


KIND: WorkloadPlan[SunRpc] = SunRpcPlan()
