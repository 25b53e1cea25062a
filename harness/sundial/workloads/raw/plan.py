# SPDX-License-Identifier: Apache-2.0
"""Raw sockets in jobs."""

from __future__ import annotations

from collections.abc import Iterator

from sundial.plan.calling import call_options, served, socket_options, written
from sundial.plan.workload import Host, Service, Step, Way, WorkloadPlan
from sundial.workloads import sockets
from sundial.workloads.function_options import function_options, turns
from sundial.workloads.raw.model import Raw

SERVER, CLIENT = "raw-server", "raw-client"


class RawPlan:
    """Raw sockets, as the plan asks for them."""

    def services(self, workload: Raw, server: Host) -> Iterator[Service]:
        options = {"transports": list(workload.transports), **served(workload, "tcp_nodelay", "socket_buffer")}
        yield Service(SERVER, options)

    def steps(self, workload: Raw, way: Way) -> Iterator[Step]:
        server = str(way.server_address)
        for series in range(workload.series):
            for transport in workload.transports:
                for band in turns(workload, series, way.seed):
                    options = call_options(
                        workload, band, server=server, transport=transport, procedure=None, series=series
                    )
                    options |= function_options(workload)
                    yield Step(CLIENT, written({**options, **socket_options(workload, transport)}))

    def idle_services(self, host: Host) -> Iterator[Service]:
        yield Service(SERVER, {"transports": [transport.name for transport in sockets.TRANSPORTS]})


KIND: WorkloadPlan[Raw] = RawPlan()
