# SPDX-License-Identifier: Apache-2.0
"""Expectations as a table: one row for each distinct kind of call and direction.

The expectation is computed once for each kind (protocol, procedure, size, MTU, options and what the TCP connection
negotiated), however many calls there are of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from sundial.errors import GuestFault
from sundial.expect import Call, Connection, Leg, Shape
from sundial.expect.tcp import most_segments
from sundial.verify.sockets.protocol import Setting, SocketProtocol

KIND = (
    "protocol", "transport", "procedure", "size", "setting", "request_mtu", "reply_mtu", "timestamps", "client_mss",
    "server_mss",
)  # fmt: skip
"""What makes calls alike."""

LEG_SCHEMA: dict[str, type[pl.DataType]] = {
    "kind": pl.UInt32,
    "reply": pl.Boolean,
    "sent": pl.Boolean,
    "payload": pl.Int64,
    "packets": pl.UInt32,
    "layout": pl.String,
    "exact": pl.Boolean,
    "fewest": pl.UInt32,
    "most": pl.UInt32,
    "largest": pl.UInt32,
    "records": pl.String,
    "needed": pl.Int64,
}
"""`needed`: bytes of the payload that its receiver waits for; behind them is at most the mark of an empty fragment."""


def layout(leg: Leg) -> str:
    """The packets of a leg as text: `offset:bytes` of each fragment, `+` if more follow; or bytes of each segment."""
    if leg.transport == "tcp":
        return ",".join(str(packet.data) for packet in leg.packets)
    return ",".join(f"{packet.offset}:{packet.data}{'+' if packet.more else ''}" for packet in leg.packets)


def build_legs(
    calls: pl.DataFrame, settings: Sequence[Setting], protocols: Mapping[str, SocketProtocol]
) -> tuple[pl.DataFrame, pl.DataFrame, list[Call]]:
    """Adds `kind` to the calls; returns them, the table of legs (LEG_SCHEMA) and the expected call of each kind."""
    kinds = calls.select(KIND).unique(maintain_order=True).with_row_index("kind")
    expected: list[Call] = []
    rows: list[tuple[Any, ...]] = []
    for row in kinds.iter_rows(named=True):
        setting = settings[row["setting"]]
        try:
            call = _expect(row, setting, protocols[row["protocol"]])
        except ValueError as error:
            raise GuestFault(f"a client recorded {row['transport']} calls that there cannot be: {error}") from None
        expected.append(call)
        rows += [_row(row["kind"], False, call.request, setting), _row(row["kind"], True, call.reply, setting)]
    legs = pl.DataFrame(rows, schema=LEG_SCHEMA, orient="row")
    return calls.join(kinds, on=list(KIND), how="left", nulls_equal=True), legs, expected


def _expect(row: dict[str, Any], setting: Setting, protocol: SocketProtocol) -> Call:
    connection = Connection(bool(row["timestamps"]), request_mss=row["server_mss"], reply_mss=row["client_mss"])
    request, reply = (
        protocol.expect(Shape(row["transport"], row["procedure"], row["size"], row[mtu], connection), setting.options)
        for mtu in ("request_mtu", "reply_mtu")
    )
    return Call(request.request, reply.reply, request.fails)


def leg_row(kind: int, reply: bool, leg: Leg, window: int | None = None) -> tuple[Any, ...]:
    """One row with the columns of LEG_SCHEMA. `window`: as of Setting, where segments carry the leg."""
    most = leg.most
    if window is not None:
        most = max(most, most_segments((packet.data for packet in leg.packets), window))
    return (
        kind,
        reply,
        bool(leg.packets),
        leg.payload,
        len(leg.packets),
        layout(leg),
        leg.exact and window is None,
        leg.fewest,
        most,
        leg.largest,
        ",".join(map(str, leg.records)),
        _needed(leg),
    )


def _needed(leg: Leg) -> int:
    """A record may end with a fragment that holds nothing: its data is complete before."""
    if not leg.records or leg.records[-1] > 0:
        return leg.payload
    mark = (leg.payload - sum(leg.records)) // len(leg.records)
    return leg.payload - mark


def _row(kind: int, reply: bool, leg: Leg, setting: Setting) -> tuple[Any, ...]:
    return leg_row(kind, reply, leg, setting.window if leg.transport == "tcp" else None)
