# SPDX-License-Identifier: Apache-2.0
"""Where the time of a DCE RPC call goes: the functions of the runtime that a step begins or ends with, and Linux's.

`papers/khandker/steps.py` gives what is between two of them the name that the paper's figures 1 and 2 have for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sundial.plan.trace import Function, Stamps, WorkloadTrace
from sundial.plan.workload import Host
from sundial.workloads import linux_functions
from sundial.workloads.dce.model import Dce
from sundial.workloads.dce.plan import CLIENT, SERVER

STUBS = {"null": "dce_null", "put": "put_i", "get": "get_i", "echo": "echo_i", "function": "function_i"}
"""The client's function for each procedure, and for the twelve functions: a call begins and ends with it."""
_Names = Sequence[tuple[str, Stamps]]
_CLIENT: _Names = (
    ("dce_marshal", "both"),
    ("dce_transmit", "entry"),
    ("dce_copy", "both"),
    ("xmitq_append", "both"),
    ("client_machine_packet", "both"),
)
_BOTH_ENDS: _Names = (
    ("xmitq_send", "both"),
    ("runtime_send", "both"),
    ("runtime_wait", "both"),
    ("runtime_receive", "both"),
    ("recvq_fack", "both"),
)
_SERVER: _Names = (("server_machine_packet", "both"), ("dce_copy", "both"), ("xmitq_append", "both"))
_INTERRUPTS: _Names = (
    ("skb_recv_done", "entry"),
    ("skb_xmit_done", "entry"),
    ("irqentry_exit", "exit"),
    ("irqentry_exit_to_user_mode", "exit"),
)
"""What an interrupt was for (the adapter's queues, else the clock), and when the step that it has interrupted goes on:
the entry itself leaves by IRET, which has no stamp."""


def _called(workload: Dce) -> tuple[str, ...]:
    return ("function",) if workload.functions else workload.procedures


class DceTrace:
    """DCE RPC, as a trace asks for it."""

    def functions(self, workload: Dce, host: Host, *, serves: bool) -> Iterator[Function]:
        application = self.application(workload, host, serves=serves)
        if serves:
            for procedure in _called(workload):
                yield Function((f"dce_procedure_{procedure}",), application)
        else:
            for procedure in _called(workload):
                yield Function((STUBS[procedure],), application, role="call")
        for name, stamps in (*(_SERVER if serves else _CLIENT), *_BOTH_ENDS):
            yield Function((name,), application, stamps)
        yield from linux_functions.kernel_functions("udp")
        for name, stamps in _INTERRUPTS:
            yield Function((name,), stamps=stamps, needed=False)

    def application(self, workload: Dce, host: Host, *, serves: bool) -> str:
        return SERVER if serves else CLIENT


KIND: WorkloadTrace[Dce] = DceTrace()
