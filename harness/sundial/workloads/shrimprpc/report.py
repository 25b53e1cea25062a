# SPDX-License-Identifier: Apache-2.0
"""ShrimpRPC in reports."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from sundial.report.workload import BOTH_DIRECTIONS, Client, Filter, Line, WorkloadReport
from sundial.workloads.shrimprpc.plan import CLIENT

LINES = {"shrimprpc": Line("shrimprpc", "#b03060", "#ff7fa5", "p")}
"""Beside the colours of Okabe and Ito that Sun RPC and raw sockets have."""
_MOVES = {"null": 0, "in": 1, "out": 1, "in_64": 1, "out_64": 1}


class ShrimpRpcReport(WorkloadReport):
    """ShrimpRPC, as the report asks for it."""

    clients: Mapping[str, Client] = {CLIENT: Client("ShrimpRPC", LINES)}

    def moves(self, procedure: str) -> int:
        return _MOVES.get(procedure, BOTH_DIRECTIONS)

    def filters(self, transports: Collection[str]) -> Iterator[Filter]:
        yield Filter("calls of ShrimpRPC", "vmmc.shrimp.seq", of_calls=True)
        yield Filter("those that failed", "vmmc.shrimp.status != 0")


KIND: WorkloadReport = ShrimpRpcReport()
