# SPDX-License-Identifier: Apache-2.0
"""Where the time of an operation goes: functions of MBCF's core, and of the kernel that it is in or runs on."""

from __future__ import annotations

from collections.abc import Iterator

from sundial.plan.trace import Function, Stamps, WorkloadTrace
from sundial.plan.workload import Host
from sundial.workloads import linux_functions, sss_functions
from sundial.workloads.mbcf.model import Mbcf
from sundial.workloads.mbcf.plan import CLIENT, SERVER

_CORE: tuple[tuple[str, Stamps], ...] = (
    ("mbcf_operate", "both"),
    ("mbcf_operate_quick", "both"),
    ("mbcf_receive", "both"),
    ("mbcf_execute", "entry"),
    ("mbcf_execute_quick", "entry"),
)

_TASK = ("operate", "mb_ack_wait")
"""Of the client, where the core is in the kernel."""


def core_functions(application: str) -> Iterator[Function]:
    """Those of the core in the program of an application; which there are, the compiler decides."""
    for name, stamps in _CORE:
        yield Function((name,), application, stamps, needed=False)


class MbcfTrace:
    """Operations, as a trace asks for them."""

    def functions(self, workload: Mbcf, host: Host, *, serves: bool) -> Iterator[Function]:
        if host.image.node_is_process:
            yield from core_functions(self.application(workload, host, serves=serves))
            yield from linux_functions.kernel_functions("packet")
        else:
            yield from (Function((name,), CLIENT, needed=False) for name in _TASK if not serves)
            yield from sss_functions.kernel_functions("mbcf")

    def application(self, workload: Mbcf, host: Host, *, serves: bool) -> str:
        return SERVER if serves else CLIENT


KIND: WorkloadTrace[Mbcf] = MbcfTrace()
