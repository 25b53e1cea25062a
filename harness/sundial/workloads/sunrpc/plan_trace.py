# SPDX-License-Identifier: Apache-2.0
"""Where the time of a Sun RPC call goes: functions of libtirpc and of Linux."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sundial.plan.trace import Function, Stamps, WorkloadTrace
from sundial.plan.workload import Host
from sundial.workloads import linux_functions
from sundial.workloads.sunrpc.plan import CLIENT, NODE_CLIENT, NODE_SERVER, SERVER
from sundial.workloads.sunrpc.scenario import TRANSPORTS, SunRpc

_Names = Sequence[tuple[str, Stamps]]
_CALLS = {"udp": "clnt_dg_call", "tcp": "clnt_vc_call"}
_CLIENT: _Names = (("xdr_callhdr", "entry"), ("xdr_replymsg", "entry"))
_SERVER: dict[str, _Names] = {
    "udp": (("svc_dg_recv", "both"), ("svc_dg_reply", "both")),
    "tcp": (("svc_vc_recv", "both"), ("svc_vc_reply", "both")),
}
_SERVICE: _Names = (("service_serve", "both"), ("svc_sendreply", "both"))


class SunRpcTrace:
    """Sun RPC, as a trace asks for it."""

    def functions(self, workload: SunRpc, host: Host, *, serves: bool) -> Iterator[Function]:
        application = self.application(workload, host, serves=serves)
        over_sockets = [name for name in workload.transports if name in _CALLS]
        if not serves:
            for name in over_sockets:
                yield Function((_CALLS[name],), application, role="call")
        names = (each for name in over_sockets for each in _SERVER[name]) if serves else iter(_CLIENT)
        for name, stamps in (*names, *(_SERVICE if serves else ())):
            yield Function((name,), application, stamps, needed=False)
        yield from linux_functions.kernel_functions(*(name for name in ("udp", "tcp") if name in over_sockets))

    def application(self, workload: SunRpc, host: Host, *, serves: bool) -> str:
        by_process = host.image.node_is_process and any(TRANSPORTS[name].between_nodes for name in workload.transports)
        if serves:
            return NODE_SERVER if by_process else SERVER
        return NODE_CLIENT if by_process else CLIENT


KIND: WorkloadTrace[SunRpc] = SunRpcTrace()
