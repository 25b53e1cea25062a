# SPDX-License-Identifier: Apache-2.0
"""Operations of memory-based communication in jobs."""

from __future__ import annotations

from collections.abc import Iterator

from sundial.plan.calling import bands
from sundial.plan.workload import Host, Options, Service, Step, Way, WorkloadPlan
from sundial.workloads.mbcf.model import Mbcf

SERVER, CLIENT = "mbcf-server", "mbcf-client"
TASK_SIZES_MOST = 64
"""Sizes that one program takes (guest-apps/sss-core)."""


class MbcfPlan:
    """Operations, as the plan asks for them."""

    def services(self, workload: Mbcf, server: Host) -> Iterator[Service]:
        """Where the machine is the node, its binder answers for MBCF too."""
        process = server.image.node_is_process
        yield Service(SERVER, {}, bound=not process, endpoint=process)

    def steps(self, workload: Mbcf, way: Way) -> Iterator[Step]:
        for series in range(workload.series):
            for operation in workload.operations:
                for mode in workload.modes:
                    for calls, sizes in bands(workload, series, way.seed, most=TASK_SIZES_MOST):
                        options: Options = {
                            "server": way.server_node,
                            "operation": operation,
                            "mode": mode,
                            "series": series,
                            "sizes": sizes,
                            "calls": calls,
                            "warmup": workload.warmup,
                            "total_timeout_ms": workload.total_timeout,
                        }
                        yield Step(CLIENT, options, endpoint=way.client.image.node_is_process)

    def idle_services(self, host: Host) -> Iterator[Service]:
        """A process that is a node would keep all others of its machine from being one."""
        if not host.image.node_is_process:
            yield Service(SERVER, {}, bound=True)


KIND: WorkloadPlan[Mbcf] = MbcfPlan()
