# SPDX-License-Identifier: Apache-2.0
"""Sun RPC in reports."""

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
from sundial.workloads.functions import BY_NAME
from sundial.workloads.mbcf.expect import mbcf_leg
from sundial.workloads.mbcf.observe import repeated
from sundial.workloads.sunrpc.expect import DEFAULTS, expect_call, messages
from sundial.workloads.sunrpc.expect_mbcf import expect_rpc
from sundial.workloads.sunrpc.plan import CLIENT, NODE_CLIENT
from sundial.workloads.sunrpc.scenario import TRANSPORTS

LINES = {
    "udp": Line("rpc-udp", "#0072b2", "#4b9fe0", "o"),
    "tcp": Line("rpc-tcp", "#d55e00", "#f5823a", "s"),
}
"""Hue says the transport; these and those of raw sockets are Okabe and Ito's, which people with the common kinds of
colour blindness tell apart."""

_MOVES = {"null": 0, "sink": 1, "source": 1, "void": 0, "distance": 1}


class SunRpcReport(WorkloadReport):
    """Sun RPC, as the report asks for it."""

    clients: Mapping[str, Client] = {
        CLIENT: Client("Sun RPC", LINES),
        NODE_CLIENT: Client(NODE_CLIENT, repeats=repeated),
    }

    def legs(self, setting: Setting, size: int) -> tuple[Leg, Leg] | None:
        transport = TRANSPORTS.get(setting.curve[1])
        if transport is None or not transport.between_nodes:
            options = DEFAULTS if setting.options is None else setting.options
            return socket_legs(lambda shape: expect_call(shape, options), setting, size)
        return _node_legs(transport.name, setting.curve[2], size)

    def moves(self, procedure: str) -> int:
        return _MOVES.get(procedure, BOTH_DIRECTIONS)

    def filters(self, transports: Collection[str]) -> Iterator[Filter]:
        yield Filter("calls and replies", "rpc", of_calls=True)
        yield from socket_filters(transports)

    def tables(self, records: Records, samples: pl.DataFrame) -> Iterator[Table]:
        found = function_table(calls_by(samples, self.clients), lambda name: messages(name, BY_NAME[name].size))
        yield from () if found is None else (found,)


def _node_legs(transport: str, procedure: str, size: int) -> tuple[Leg, Leg] | None:
    """All sequenced frames of a call by sender, whatever brings its bytes."""
    try:
        call = expect_rpc(transport, procedure, size)
    except ValueError:
        return None
    return None if call.fails else (mbcf_leg(call.client), mbcf_leg(call.server))


KIND: WorkloadReport = SunRpcReport()
