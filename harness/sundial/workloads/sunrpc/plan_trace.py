# SPDX-License-Identifier: Apache-2.0
"""Where the time of a Sun RPC call goes: functions of libtirpc, or of SSS-CORE's library, and of the kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from sundial.plan.trace import Function, Stamps, WorkloadTrace
from sundial.plan.workload import Host
from sundial.workloads import linux_functions, sss_functions
from sundial.workloads.mbcf.plan_trace import core_functions
from sundial.workloads.sunrpc.plan import CLIENT, NODE_CLIENT, NODE_SERVER, SERVER
from sundial.workloads.sunrpc.scenario import TRANSPORTS, VRPC, VRPC_MBCF, SunRpc

_Names = Sequence[tuple[str, Stamps]]
_CALLS: dict[Literal["udp", "tcp"], str] = {"udp": "clnt_dg_call", "tcp": "clnt_vc_call"}
_CLIENT: _Names = (("xdr_callhdr", "entry"), ("xdr_replymsg", "entry"))
_SERVER: dict[str, _Names] = {
    "udp": (("svc_dg_recv", "both"), ("svc_dg_reply", "both")),
    "tcp": (("svc_vc_recv", "both"), ("svc_vc_reply", "both")),
}
_SERVICE: _Names = (("service_serve", "both"), ("svc_sendreply", "both"))


_NODE_CLIENT: _Names = (
    ("client_call", "both"),
    ("rpc_call_encode", "entry"),
    ("rpc_poll", "entry"),
    ("rpc_call_reply", "entry"),
)
_NODE_SERVICE: _Names = (
    ("udp_recv", "both"),
    ("connection_recv", "both"),
    ("mbm_service_call", "entry"),
    ("echo_service_dispatch", "entry"),
    ("xdr_replymsg", "entry"),
    ("udp_reply", "both"),
    ("connection_reply", "both"),
    *_SERVICE,
)


_RING_CLIENT: _Names = (
    ("client_call", "both"),
    ("vrpc_line_begin", "both"),
    ("rpc_call_encode", "both"),
    ("rpc_call_reply", "both"),
)
_RING_SERVICE: _Names = (
    ("svc_getreq_transport", "entry"),
    ("xdr_callmsg", "both"),
    ("echo_service_dispatch", "both"),
    ("serve_echo", "both"),
    ("transport_measure_reply", "both"),
    ("vrpc_line_begin", "both"),
    ("transport_encode_reply", "both"),
    ("vrpc_line_end", "both"),
)
_RING_POLLS = {False: "finish", True: "look"}
"""What polls until a message has come, on a client and on the server."""


def _of(application: str, names: _Names) -> Iterator[Function]:
    """Which of them there are, the library's version and the compiler decide."""
    for name, stamps in names:
        yield Function((name,), application, stamps, needed=False)


def _tirpc(transports: Sequence[Literal["udp", "tcp"]], *, serves: bool) -> Iterator[Function]:
    if serves:
        for transport in transports:
            yield from _of(SERVER, _SERVER[transport])
        yield from _of(SERVER, _SERVICE)
    else:
        for transport in transports:
            yield Function((_CALLS[transport],), CLIENT, role="call")
        yield from _of(CLIENT, _CLIENT)


def _on_sss_core(transports: Sequence[str], *, serves: bool) -> Iterator[Function]:
    """One library and one kernel, whatever the transport."""
    in_rings = [name for name in transports if name in (VRPC, VRPC_MBCF)]
    application = SERVER if serves else CLIENT
    if in_rings:
        yield from _of(application, _RING_SERVICE if serves else _RING_CLIENT)
        yield Function((_RING_POLLS[serves],), application, role="poll", needed=False)
    if len(in_rings) < len(transports):
        yield from _of(application, _NODE_SERVICE if serves else _NODE_CLIENT)
    if any(not TRANSPORTS[name].between_nodes for name in transports):
        yield from sss_functions.kernel_functions("sockets")
    if any(TRANSPORTS[name].between_nodes and name != VRPC for name in transports):
        yield from sss_functions.kernel_functions("mbcf")
    if VRPC in transports:
        yield from sss_functions.kernel_functions("backplane")


class SunRpcTrace:
    """Sun RPC, as a trace asks for it."""

    def functions(self, workload: SunRpc, host: Host, *, serves: bool) -> Iterator[Function]:
        if not host.image.node_is_process:
            yield from _on_sss_core(workload.transports, serves=serves)
            return
        over_sockets = [name for name in _CALLS if name in workload.transports]
        if over_sockets:
            yield from _tirpc(over_sockets, serves=serves)
            yield from linux_functions.kernel_functions(*over_sockets)
        if len(over_sockets) < len(workload.transports):
            application = NODE_SERVER if serves else NODE_CLIENT
            yield from _of(application, _NODE_SERVICE if serves else _NODE_CLIENT)
            yield from core_functions(application)
            yield from linux_functions.kernel_functions("packet")

    def application(self, workload: SunRpc, host: Host, *, serves: bool) -> str:
        by_process = host.image.node_is_process and any(TRANSPORTS[name].between_nodes for name in workload.transports)
        if serves:
            return NODE_SERVER if by_process else SERVER
        return NODE_CLIENT if by_process else CLIENT


KIND: WorkloadTrace[SunRpc] = SunRpcTrace()
