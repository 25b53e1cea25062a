# SPDX-License-Identifier: Apache-2.0
"""Toys in reports."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from sundial.workloads.toy.expect import expect_call
from sundial.workloads.toy.plan import CLIENT

from sundial.expect import Leg
from sundial.report.calls import socket_legs
from sundial.report.workload import Client, Filter, Line, Setting, WorkloadReport


class ToyReport(WorkloadReport):
    """Toys, as the report asks for them."""

    clients: Mapping[str, Client] = {CLIENT: Client("Toy", {"udp": Line("toy-udp", "#123456", "#654321", "x")})}

    def legs(self, setting: Setting, size: int) -> tuple[Leg, Leg] | None:
        return socket_legs(expect_call, setting, size)

    def filters(self, transports: Collection[str]) -> Iterator[Filter]:
        yield Filter("toys", 'udp contains "TOY1"', of_calls=True)


KIND: WorkloadReport = ToyReport()
