# SPDX-License-Identifier: Apache-2.0
"""The capture against what a client's kernel counted by itself: the segments that TCP repeated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from sundial.verify.findings import findings
from sundial.verify.frames import DROPPED
from sundial.verify.sockets.analysis import Analysis
from sundial.verify.sockets.tcp import ACK, SYN

_COUNTED: dict[str, type[pl.DataType]] = {"client": pl.String, "batch": pl.Int64, "tcp_retransmits": pl.Int64}


def check_kernel_counters(analysis: Analysis, batches: Mapping[tuple[str, int], Mapping[str, Any]]) -> pl.DataFrame:
    """A finding for each batch whose requests TCP repeated another number of times than the client's kernel says.

    `batches`: the lines above them, by client and batch. The kernel counts for one connection, so a batch that took
    several (calls that failed) is left out, and the segments that it made and the adapter dropped are not captured.
    Where a client opens its connection in the batch's first call, the kernel counts SYN that are sent again as well.
    """
    counts = [(*batch, line.get("tcp_retransmits")) for batch, line in batches.items()]
    counted = pl.DataFrame(counts, schema=_COUNTED, orient="row")
    again = analysis.observed.filter(pl.col("transport") == "tcp").select("call", again="request_retransmissions")
    dropped = (
        analysis.frames.filter(pl.col("fate") == DROPPED, ~pl.col("reply"), pl.col("call").is_not_null())
        .group_by("call")
        .agg(dropped=pl.len())
    )
    sent = analysis.frames.filter(pl.col("view") == "sent", pl.col("tcp_flags") & (SYN | ACK) == SYN).select("row")
    opened = analysis.segments.filter(~pl.col("reply")).join(sent, on="row", how="semi")
    table = (
        analysis.calls.rename({"id": "call", "call": "number"})
        .join(again, on="call", how="inner")
        .join(dropped, on="call", how="left")
        .join(opened.group_by("conn").agg(opened=pl.len().cast(pl.Int64) - 1), on="conn", how="left")
        .group_by("client", "batch")
        .agg(
            pl.col("call").first(),
            pl.col("again").sum().cast(pl.Int64),
            pl.col("dropped").sum().cast(pl.Int64) + pl.col("opened").first().fill_null(0),
            one=(pl.col("conn").n_unique() == 1) & pl.col("ok").all(),
        )
        .filter("one")
        .join(counted.drop_nulls(), on=["client", "batch"], how="inner")
        .sort("call")
    )
    kernel = pl.col("tcp_retransmits")
    over_udp = pl.DataFrame(
        [(*batch, line.get("tcp_retransmits")) for batch, line in batches.items() if line.get("transport") == "udp"],
        schema=_COUNTED,
        orient="row",
    )
    wrong = (pl.col("again") > kernel) | (pl.col("again") < kernel - pl.col("dropped"))
    said = pl.format("{} by the client's kernel", kernel)
    seen = pl.format("{} in the capture", "again")
    of_udp = over_udp.with_columns(call=pl.lit(None, pl.UInt32))
    return pl.concat(
        [
            findings(table, wrong, pl.lit("batch.tcp_retransmits"), said, seen, rows=None),
            findings(of_udp, kernel > 0, pl.lit("batch.tcp_retransmits"), pl.lit("0, over UDP"), said, rows=None),
        ]
    )
