# SPDX-License-Identifier: Apache-2.0
"""Calls against their frames: when each began and ended, by its client, and when its messages were on the wire.

A call begins before its first frame leaves the client's port. It ends, where it succeeded, after the frame has arrived
that completes its reply. A server answers after the request has arrived whole. So what is after the end of a call can
only have been sent again.

Under virtual time all stamps have one axis. Under the real clock each guest's begins when it boots, and on a loaded
host its distance to the captures' changes by more than a call takes: there a call lasts at least as long as its frames.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import polars as pl

from sundial.verify.contention import NEVER_BUSY, Contention
from sundial.verify.findings import findings
from sundial.verify.frames import turn
from sundial.verify.headers.arp import RETRY_NS

DRIFT = 500e-6
"""How much a guest's clock may gain or lose under the real clock: as much as adjtimex(2) can correct."""

UNPROVEN: tuple[str, ...] = (
    "how long before its first frame a call began, and how long after its last one it ended: both are the client's own"
    " (at 125 mips, over sockets: 28 to 2,400 us and 55 to 2,000 us on Linux, 10 to 24 us each on SSS-CORE)",
    "how long a client waits between two calls, and a server before it answers: what all stamps show alike",
)
UNPROVEN_REAL_CLOCK: tuple[str, ...] = (
    "when calls began and ended beside their frames: only that none was shorter than its frames were apart",
)


def check_call_times(calls: pl.DataFrame, stamps: pl.DataFrame, exact_time: bool) -> pl.DataFrame:
    """Findings about starts and ends. `calls`: sampled ones with id, client, ok, start_ns and end_ns.

    `stamps`: call, call_first_tx_ns, reply_last_rx_ns (null: never).
    """
    table = (
        calls.rename({"id": "call", "call": "number"})
        .join(stamps, on="call", how="inner")
        .with_columns(
            above=pl.col("call_first_tx_ns") - pl.col("start_ns"),
            below=pl.when("ok").then(pl.col("reply_last_rx_ns") - pl.col("end_ns")),
        )
    )
    if not exact_time:
        lasted = pl.col("end_ns") - pl.col("start_ns")
        least = ((pl.col("reply_last_rx_ns") - pl.col("call_first_tx_ns")) * (1 - DRIFT)).cast(pl.Int64)
        short = (pl.col("ok") & (lasted < least)).fill_null(False)
        return findings(
            table, short, pl.lit("rtt"), pl.format("{} ns or more, as its frames", least), lasted, rows=None
        )
    apart = (pl.lit(0), pl.lit(0))
    return pl.concat(
        [
            findings(
                table,
                (pl.col("above") < apart[0]).fill_null(False),
                pl.lit("start"),
                pl.format("not after its first frame leaves, at {} ns", pl.col("call_first_tx_ns")),
                pl.format("{} ns too late", apart[0] - pl.col("above")),
                rows=None,
            ),
            findings(
                table,
                (pl.col("below") > apart[1]).fill_null(False),
                pl.lit("end"),
                pl.format("not before its reply is whole at the client, at {} ns", pl.col("reply_last_rx_ns")),
                pl.format("{} ns too early", pl.col("below") - apart[1]),
                rows=None,
            ),
        ]
    )


def check_answers(datagrams: pl.DataFrame, arrived: pl.DataFrame, streams: pl.DataFrame) -> pl.DataFrame:
    """Findings about replies that leave before the request that they answer has arrived whole.

    `datagrams`: sent; `arrived`: those that arrived whole; `streams`: call, asked_ns (the request whole at the server),
    answered_ns (the reply's first byte leaves) and the reply's rows. The n-th reply over UDP answers a request that was
    the n-th to arrive at the earliest.
    """
    asked = (
        arrived.filter(~pl.col("reply")).sort("call", "last_ns").select("call", asked_ns="last_ns", place=turn("call"))
    )
    answers = (
        datagrams.filter("reply")
        .sort("call", "first_ns", "datagram", "copy")
        .select("call", "rows", answered_ns="first_ns", place=turn("call"))
    )
    columns = ["call", "asked_ns", "answered_ns", "rows"]
    table = pl.concat([answers.join(asked, on=["call", "place"], how="inner").select(columns), streams.select(columns)])
    return findings(
        table,
        pl.col("answered_ns") < pl.col("asked_ns"),
        pl.lit("reply.sent"),
        pl.format("after its request has arrived, at {} ns", "asked_ns"),
        pl.format("at {} ns", "answered_ns"),
    )


def check_late_requests(
    calls: pl.DataFrame,
    datagrams: pl.DataFrame,
    ports: pl.DataFrame,
    lines: Mapping[str, Contention],
    held: Callable[[], pl.DataFrame],
    asked: Mapping[str, Sequence[tuple[str, int, int]]],
) -> pl.DataFrame:
    """Findings about calls over UDP whose first request leaves after their end, though its line was free meanwhile, no
    adapter kept it back (`held`: row and since_ns) and ARP had an answer (`asked`: as of `headers.arp.asking`); of what
    is sent again the causes are asked for (`retransmission_causes`). `ports`: interface of rows, whose name is the key
    of `lines`."""
    first = (
        datagrams.filter(~pl.col("reply"))
        .sort("call", "first_ns")
        .group_by("call", maintain_order=True)
        .first()
        .join(calls.select("end_ns", call="id"), on="call", how="inner")
        .filter(pl.col("first_ns") > pl.col("end_ns"))
        .with_columns(row=pl.col("rows").list.first().cast(pl.UInt32))
        .join(ports, on="row", how="left", maintain_order="left")
    )
    if first.height:
        since = held().select(pl.col("row").cast(pl.UInt32), "since_ns")
        first = first.join(since, on="row", how="left", maintain_order="left").filter(
            (pl.col("since_ns") > pl.col("end_ns")).fill_null(True)
        )
    columns = first.select("interface", "end_ns", "first_ns").iter_rows()
    free = [
        lines.get(port, NEVER_BUSY).idle_ns(since, at) > 0
        and not any(
            begin <= since <= end <= at <= end + RETRY_NS for _, begin, end in asked.get(port.partition(":")[0], ())
        )
        for port, since, at in columns
    ]
    return findings(
        first.filter(pl.Series(free, dtype=pl.Boolean)),
        pl.lit(True),
        pl.lit("request.sent"),
        pl.format("before the end of its call, at {} ns", "end_ns"),
        pl.format("at {} ns", "first_ns"),
    )
