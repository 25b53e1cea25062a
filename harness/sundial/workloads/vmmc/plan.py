# SPDX-License-Identifier: Apache-2.0
"""Automatic and deliberate updates in jobs."""

from __future__ import annotations

from collections.abc import Iterator

from sundial.plan.calling import bands
from sundial.plan.workload import Host, Options, Service, Step, Way, WorkloadPlan
from sundial.workloads.vmmc.model import Vmmc

SERVER, CLIENT = "vmmc-server", "vmmc-client"
TASK_SIZES_MOST = 64
"""Sizes that one program takes (guest-apps/sss-core)."""


class VmmcPlan:
    """Updates, as the plan asks for them."""

    def services(self, workload: Vmmc, server: Host) -> Iterator[Service]:
        yield Service(SERVER, {"transports": list(workload.operations)})

    def steps(self, workload: Vmmc, way: Way) -> Iterator[Step]:
        for series in range(workload.series):
            for operation in workload.operations:
                for mode in workload.modes:
                    for calls, sizes in bands(workload, series, way.seed, most=TASK_SIZES_MOST):
                        yield Step(CLIENT, self._options(workload, way, series, operation, mode, calls, sizes))

    def _options(
        self, workload: Vmmc, way: Way, series: int, operation: str, mode: str, calls: int, sizes: list[int]
    ) -> Options:
        stream = mode == "stream"
        return {
            "server": way.server_node,
            "transport": operation,
            "procedure": mode,
            "series": series,
            "sizes": sizes,
            "calls": 1 if stream else calls,
            "warmup": 0 if stream else workload.warmup,
            "transfers": calls if stream else 1,
            "total_timeout_ms": workload.total_timeout,
        }

    def idle_services(self, host: Host) -> Iterator[Service]:
        """A server polls only if a client has connected."""
        if host.node.mapped is not None:
            yield Service(SERVER, {})


KIND: WorkloadPlan[Vmmc] = VmmcPlan()
