# SPDX-License-Identifier: Apache-2.0
"""iperf3 in jobs."""

from __future__ import annotations

from collections.abc import Iterator

from sundial.plan.calling import written
from sundial.plan.workload import Host, Options, Service, Step, Way, WorkloadPlan
from sundial.workloads.iperf3.model import Iperf3

SERVER, CLIENT = "iperf3-server", "iperf3-client"


class Iperf3Plan:
    """iperf3, as the plan asks for it."""

    def services(self, workload: Iperf3, server: Host) -> Iterator[Service]:
        yield Service(SERVER, {})

    def steps(self, workload: Iperf3, way: Way) -> Iterator[Step]:
        for series in range(workload.series):
            for transport in workload.transports:
                options: Options = {
                    "server": str(way.server_address),
                    "transport": transport,
                    "series": series,
                    "duration_ms": workload.duration,
                    "streams": workload.streams,
                    "rate_bps": workload.rate if transport == "udp" else None,
                    "socket_buffer": workload.socket_buffer,
                    "tcp_nodelay": workload.tcp_nodelay if transport == "tcp" else None,
                }
                yield Step(CLIENT, written(options))

    def idle_services(self, host: Host) -> Iterator[Service]:
        yield Service(SERVER, {})


KIND: WorkloadPlan[Iperf3] = Iperf3Plan()
