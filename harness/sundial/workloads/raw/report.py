# SPDX-License-Identifier: Apache-2.0
"""Raw sockets in reports."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import polars as pl

from sundial.expect import Leg
from sundial.report.calls import socket_filters, socket_legs
from sundial.report.tables import Table
from sundial.report.workload import (
    BOTH_DIRECTIONS,
    Client,
    Filter,
    Line,
    Records,
    Setting,
    WorkloadReport,
)
from sundial.workloads.function_table import calls_by, function_table
from sundial.workloads.raw.expect import expect_call, messages
from sundial.workloads.raw.plan import CLIENT

LINES = {
    "udp": Line("raw-udp", "#4fa9dd", "#9ad3f7", "^"),
    "tcp": Line("raw-tcp", "#e39b06", "#f7c95a", "D"),
}
"""The hue of each transport is Sun RPC's, but bright."""


class RawReport(WorkloadReport):
    """Raw sockets, as the report asks for them."""

    clients: Mapping[str, Client] = {CLIENT: Client("raw", LINES)}

    def legs(self, setting: Setting, size: int) -> tuple[Leg, Leg] | None:
        return socket_legs(expect_call, setting, size)

    def moves(self, procedure: str) -> int:
        return 1 if procedure == "distance" else BOTH_DIRECTIONS

    def filters(self, transports: Collection[str]) -> Iterator[Filter]:
        yield from socket_filters(transports)

    def tables(self, records: Records, samples: pl.DataFrame) -> Iterator[Table]:
        found = function_table(calls_by(samples, self.clients), messages)
        yield from () if found is None else (found,)


KIND: WorkloadReport = RawReport()
