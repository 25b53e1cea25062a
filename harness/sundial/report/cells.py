# SPDX-License-Identifier: Apache-2.0
"""Cells of calls as captured: which PDUs of a segment's ports carried which call. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import polars as pl

from sundial.report.stats import CURVE

SENT: dict[str, type[pl.DataType]] = {
    "at_ns": pl.Int64, "source": pl.UInt32, "target": pl.UInt32, "protocol": pl.UInt8, "payload": pl.Int64,
    "cells": pl.Int64,
}  # fmt: skip
"""An IP packet as it left a port in cells: its first bit, its addresses, IP's number of what it carries, bytes above
that protocol's header (of UDP: above IP), cells."""

SEEN = {
    **dict.fromkeys((*CURVE, "direction"), pl.String),
    **dict.fromkeys(("size", "cells", "calls", "wrong"), pl.Int64),
}
PROTOCOLS = {"udp": 17, "tcp": 6}
_WINDOWS = {
    "request": ("client", "server", "call_first_tx_ns", "call_last_rx_ns"),
    "reply": ("server", "client", "reply_first_tx_ns", "reply_last_rx_ns"),
}
_ENDS = ["from", "to", "protocol"]


def seen(observed: pl.DataFrame, sent: pl.DataFrame, addresses: Mapping[str, Collection[int]]) -> pl.DataFrame:
    """Cells a call as captured: app, transport, procedure, size, direction, cells, calls, wrong (which verification
    failed). `addresses`: of each machine, as numbers.

    A packet belongs to the call in whose direction, and between whose first bit and last, it was sent; acknowledgements
    without payload belong to none. Calls that were sent again, and calls that overlap others between the same machines,
    cannot be told apart so and are left out.
    """
    needed = {*CURVE, "size", "client", "server", *(name for window in _WINDOWS.values() for name in window)}
    if sent.is_empty() or not needed <= set(observed.columns):
        return pl.DataFrame(schema=SEEN)
    owner = {address: name for name, owned in addresses.items() for address in owned}
    packets = (
        sent.filter(pl.col("payload") > 0)
        .with_columns(
            pl.col(end).replace_strict(owner, default=None, return_dtype=pl.String).alias(name)
            for end, name in (("source", "from"), ("target", "to"))
        )
        .drop_nulls(["from", "to"])
        .sort("at_ns")
    )
    parts = [_direction(observed, packets, direction) for direction in _WINDOWS]
    return pl.concat(parts).sort(*CURVE, "size", "direction", "cells")


def _direction(observed: pl.DataFrame, packets: pl.DataFrame, direction: str) -> pl.DataFrame:
    near, far, first, last = _WINDOWS[direction]
    again = pl.col("retransmissions") if "retransmissions" in observed.columns else pl.lit(0)
    failed = pl.col("verdict") == "fail" if "verdict" in observed.columns else pl.lit(value=False)
    calls = (
        observed.with_row_index("at_row")
        .select(
            "at_row", pl.col(CURVE).cast(pl.String), "size", pl.col(near).cast(pl.String).alias("from"),
            pl.col(far).cast(pl.String).alias("to"), pl.col(first).alias("first"), pl.col(last).alias("last"),
            pl.col("transport").cast(pl.String).replace_strict(PROTOCOLS, default=None, return_dtype=pl.UInt8)
            .alias("protocol"), (again.fill_null(0) > 0).alias("again"), failed.alias("failed"),
        )
        .drop_nulls(["first", "last", "protocol"])
        .sort("first")
        .with_columns(
            (pl.col("first") <= pl.col("last").shift(1).over(_ENDS)).fill_null(value=False).alias("meets_before"),
            (pl.col("first").shift(-1).over(_ENDS) <= pl.col("last")).fill_null(value=False).alias("meets_after"),
        )
    )  # fmt: skip
    carried = (
        packets.join_asof(
            calls, left_on="at_ns", right_on="first", by=_ENDS, strategy="backward", check_sortedness=False
        )
        .filter(pl.col("at_ns") <= pl.col("last"))
        .filter(~pl.col("again") & ~pl.col("meets_before") & ~pl.col("meets_after"))
    )
    return (
        carried.group_by("at_row", *CURVE, "size", "failed")
        .agg(pl.col("cells").sum())
        .group_by(*CURVE, "size", "cells")
        .agg(calls=pl.len().cast(pl.Int64), wrong=pl.col("failed").sum().cast(pl.Int64))
        .with_columns(pl.lit(direction).alias("direction"))
        .select(pl.col(name).cast(kind) for name, kind in SEEN.items())
    )
