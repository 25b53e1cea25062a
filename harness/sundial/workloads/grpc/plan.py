# SPDX-License-Identifier: Apache-2.0
"""gRPC in jobs."""

from __future__ import annotations

from collections.abc import Iterator

from sundial.plan.workload import Host, Service, Step, Way, WorkloadPlan
from sundial.workloads import server_death
from sundial.workloads.grpc.model import DEFAULT_PORT, Grpc, programs, versions_of


class GrpcPlan:
    """gRPC, as the plan asks for it."""

    def services(self, workload: Grpc, server: Host) -> Iterator[Service]:
        for language, port in workload.ports.items():
            options = {"port": port, "max_workers": workload.max_workers, "bdp_probe": workload.bdp_probe}
            yield Service(programs(language).server, options | server_death.options(workload.die), instance=str(port))

    def steps(self, workload: Grpc, way: Way) -> Iterator[Step]:
        for series in range(workload.series):
            for language, port in workload.ports.items():
                options = {
                    "server": str(way.server_address),
                    "port": port,
                    "functions": list(workload.functions),
                    "calls": workload.calls,
                    "warmup": workload.warmup,
                    "series": series,
                    "bdp_probe": workload.bdp_probe,
                    "total_timeout_ms": workload.total_timeout,
                }
                yield Step(programs(language).client, options)

    def idle_services(self, host: Host) -> Iterator[Service]:
        for place, language in enumerate(versions_of(host.image)):
            yield Service(programs(language).server, {"port": DEFAULT_PORT + place})


KIND: WorkloadPlan[Grpc] = GrpcPlan()
