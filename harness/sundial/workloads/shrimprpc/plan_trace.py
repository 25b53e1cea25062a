# SPDX-License-Identifier: Apache-2.0
"""Where the time of a call of ShrimpRPC goes: its server's procedures, and the kernel where an end sleeps.

A client's stub is a part of its caller, for the compiler leaves nothing between the two: no function of it is there to
be stamped. What its packets say divides its time.
"""

from __future__ import annotations

from collections.abc import Iterator

from sundial.plan.trace import Function, WorkloadTrace
from sundial.plan.workload import Host
from sundial.workloads import sss_functions
from sundial.workloads.shrimprpc.model import ShrimpRpc
from sundial.workloads.shrimprpc.plan import CLIENT, SERVER

_POLLING = ("serve_next", "serve_next.constprop.0", "serve_next.isra.0")
"""What polls, as the compiler calls it."""


def entrance(procedure: str) -> str:
    """What shrimpgen calls a server's entrance to a procedure of echo.x."""
    return f"shrimp_enter_echo_{procedure}"


class ShrimpRpcTrace:
    """ShrimpRPC, as a trace asks for it."""

    def functions(self, workload: ShrimpRpc, host: Host, *, serves: bool) -> Iterator[Function]:
        if serves:
            yield Function(_POLLING, SERVER, role="poll", needed=False)
            for procedure in workload.procedures:
                yield Function((entrance(procedure),), SERVER, needed=False)
        yield from sss_functions.kernel_functions("backplane")

    def application(self, workload: ShrimpRpc, host: Host, *, serves: bool) -> str:
        return SERVER if serves else CLIENT


KIND: WorkloadTrace[ShrimpRpc] = ShrimpRpcTrace()
