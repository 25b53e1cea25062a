# SPDX-License-Identifier: Apache-2.0
"""DCE RPC in jobs."""

from __future__ import annotations

from collections.abc import Iterator

from sundial.plan.calling import written
from sundial.plan.workload import Host, Options, Service, Step, Way, WorkloadPlan
from sundial.workloads.dce.model import Dce
from sundial.workloads.function_options import function_options, turns

SERVER, CLIENT = "dce-server", "dce-client"
MAPPER_PORT = 135
"""The endpoint mapper's (C706 appendix H)."""
IDLE_SIZES = (0, 64, 1024, 1392, 4016, 8032, 16064, 24096, 32128, 48192, 64256)
"""Of the interface of a host that is only brought up; most are khandker's."""


class DcePlan:
    """DCE RPC, as the plan asks for it."""

    def services(self, workload: Dce, server: Host) -> Iterator[Service]:
        options: Options = {
            "interface": "functions" if workload.functions else None,
            "port": workload.port,
            "mapper_port": MAPPER_PORT if workload.binding == "mapper" else None,
            "executors": workload.executors,
            "work_ms": workload.work,
            **_common(workload),
        }
        yield Service(SERVER, written(options), instance=str(workload.port))

    def steps(self, workload: Dce, way: Way) -> Iterator[Step]:
        for series in range(workload.series):
            for procedure in workload.procedures or (None,):
                yield from _calls(workload, way, procedure, series)

    def idle_services(self, host: Host) -> Iterator[Service]:
        yield Service(SERVER, {"mapper_port": MAPPER_PORT, "interface_sizes": list(IDLE_SIZES)})


def _calls(workload: Dce, way: Way, procedure: str | None, series: int) -> Iterator[Step]:
    sizeless = procedure == "null"
    for calls, sizes in turns(workload, series, way.seed, sizeless=sizeless):
        options: Options = {
            **_binding(workload, way),
            **function_options(workload),
            "procedure": procedure,
            "semantics": workload.semantics,
            "sizes": None if sizeless else sizes or None,
            "series": series,
            "calls": calls,
            "warmup": workload.warmup,
            "threads": workload.threads,
            "connection": workload.connection,
            "ping_ms": workload.ping,
            "ack_delay_ms": workload.ack_delay,
            "cancel_ms": workload.cancel,
            **_common(workload),
        }
        yield Step(CLIENT, written(options))


def _common(workload: Dce) -> Options:
    """Options that both ends have."""
    return {
        "interface_sizes": None if workload.functions else [size for size in workload.sizes if isinstance(size, int)],
        "byte_order": workload.byte_order,
        "fragment_bytes": workload.fragment,
        "window_bytes": workload.window,
        "policy": workload.policy,
        "resend_ms": workload.resend,
        "give_up_ms": workload.give_up,
        "socket_buffer": workload.socket_buffer,
    }


def _binding(workload: Dce, way: Way) -> Options:
    if workload.semantics == "broadcast":
        return {"server": str(way.broadcast_address), "port": workload.port}
    if workload.binding == "mapper":
        return {"server": str(way.server_address), "mapper_port": MAPPER_PORT}
    return {"server": str(way.server_address), "port": workload.port}


KIND: WorkloadPlan[Dce] = DcePlan()
