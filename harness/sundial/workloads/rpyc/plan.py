# SPDX-License-Identifier: Apache-2.0
"""RPyC in jobs."""

from __future__ import annotations

from collections.abc import Iterator

from sundial.plan.workload import Host, Service, Step, Way, WorkloadPlan
from sundial.workloads import server_death
from sundial.workloads.rpyc.model import PORT, Rpyc

SERVER, CLIENT = "rpyc-server", "rpyc-client"


class RpycPlan:
    """RPyC, as the plan asks for it."""

    def services(self, workload: Rpyc, server: Host) -> Iterator[Service]:
        for nodelay, port in workload.ports.items():
            options = {"port": port, "tcp_nodelay": nodelay} | server_death.options(workload.die)
            yield Service(SERVER, options, instance=str(port))

    def steps(self, workload: Rpyc, way: Way) -> Iterator[Step]:
        for series in range(workload.series):
            for nodelay, port in workload.ports.items():
                for container, variant, names in workload.turns:
                    options = {
                        "server": str(way.server_address),
                        "port": port,
                        "functions": names,
                        "container": container,
                        "distance": variant,
                        "tcp_nodelay": nodelay,
                        "calls": workload.calls,
                        "warmup": workload.warmup,
                        "series": series,
                        "total_timeout_ms": workload.total_timeout,
                    }
                    yield Step(CLIENT, options)

    def idle_services(self, host: Host) -> Iterator[Service]:
        yield Service(SERVER, {"port": PORT, "tcp_nodelay": False})


KIND: WorkloadPlan[Rpyc] = RpycPlan()
