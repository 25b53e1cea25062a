# SPDX-License-Identifier: Apache-2.0
"""Toys in jobs."""

from __future__ import annotations

from collections.abc import Iterator

from sundial.workloads.toy.model import Toy

from sundial.plan.calling import bands
from sundial.plan.workload import Host, Service, Step, Way, WorkloadPlan

SERVER, CLIENT = "toy-server", "toy-client"


class ToyPlan:
    """Toys, as the plan asks for them."""

    def services(self, workload: Toy, server: Host) -> Iterator[Service]:
        yield Service(SERVER, {})

    def steps(self, workload: Toy, way: Way) -> Iterator[Step]:
        for series in range(workload.series):
            for calls, sizes in bands(workload, series, way.seed):
                options = {"server": str(way.server_address), "series": series, "sizes": sizes, "calls": calls}
                yield Step(CLIENT, {**options, "warmup": workload.warmup})

    def idle_services(self, host: Host) -> Iterator[Service]:
        yield Service(SERVER, {})


KIND: WorkloadPlan[Toy] = ToyPlan()
