# SPDX-License-Identifier: Apache-2.0
"""gRPC in jobs."""

from __future__ import annotations

from collections.abc import Iterator

from sundial.plan.workload import Host, Service, Step, Way, WorkloadPlan
from sundial.workloads import dying
from sundial.workloads.grpc.model import DEFAULT_PORT, Grpc

SERVER, CLIENT = "grpc-server", "grpc-client"


class GrpcPlan:
    """gRPC, as the plan asks for it."""

    def services(self, workload: Grpc, server: Host) -> Iterator[Service]:
        options = {"port": workload.port, "max_workers": workload.max_workers, "bdp_probe": workload.bdp_probe}
        yield Service(SERVER, options | dying.options(workload.die), instance=str(workload.port))

    def steps(self, workload: Grpc, way: Way) -> Iterator[Step]:
        for series in range(workload.series):
            yield Step(
                CLIENT,
                {
                    "server": str(way.server_address),
                    "port": workload.port,
                    "functions": list(workload.functions),
                    "calls": workload.calls,
                    "warmup": workload.warmup,
                    "series": series,
                    "bdp_probe": workload.bdp_probe,
                    "total_timeout_ms": workload.total_timeout,
                },
            )

    def idle_services(self, host: Host) -> Iterator[Service]:
        yield Service(SERVER, {"port": DEFAULT_PORT})


KIND: WorkloadPlan[Grpc] = GrpcPlan()
