# SPDX-License-Identifier: Apache-2.0
"""ShrimpRPC in jobs."""

from __future__ import annotations

from collections.abc import Iterator

from sundial.plan.calling import bands
from sundial.plan.workload import Host, Options, Service, Step, Way, WorkloadPlan
from sundial.workloads.shrimprpc.model import ShrimpRpc, fixed_size

SERVER, CLIENT = "shrimp-server", "shrimp-client"
TASK_SIZES_MOST = 64
"""Sizes that one program takes (guest-apps/sss-core)."""


class ShrimpRpcPlan:
    """ShrimpRPC, as the plan asks for it."""

    def services(self, workload: ShrimpRpc, server: Host) -> Iterator[Service]:
        yield Service(SERVER, {})

    def steps(self, workload: ShrimpRpc, way: Way) -> Iterator[Step]:
        for series in range(workload.series):
            for procedure in workload.procedures:
                only = fixed_size(procedure)
                for calls, sizes in bands(workload, series, way.seed, sizeless=only is not None, most=TASK_SIZES_MOST):
                    options: Options = {
                        "server": way.server_node,
                        "procedure": procedure,
                        "wait": workload.wait,
                        "series": series,
                        "sizes": sizes if only is None else [only],
                        "calls": calls,
                        "warmup": workload.warmup,
                        "total_timeout_ms": workload.total_timeout,
                    }
                    yield Step(CLIENT, options)

    def idle_services(self, host: Host) -> Iterator[Service]:
        """It polls only if a connected client does."""
        if host.node.mapped is not None:
            yield Service(SERVER, {})


KIND: WorkloadPlan[ShrimpRpc] = ShrimpRpcPlan()
