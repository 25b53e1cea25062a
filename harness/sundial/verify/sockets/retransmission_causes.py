# SPDX-License-Identifier: Apache-2.0
"""Why a request went over UDP again.

The wire explains it when, at the moment the request was sent again, no whole answer had reached the client although the
server had answered every whole request that had reached it: then a request or an answer was lost, dropped, corrupted,
or still on its way. Without that the cause is at one of the ends: a server that is too slow or silent, a client that
has its answer and asks again. (That the wire tells of each frame which did not arrive is `conservation`'s matter.)
"""

from __future__ import annotations

import polars as pl

from sundial.verify.frames import CORRUPTED, DROPPED
from sundial.verify.sockets.udp import datagrams


def uncaused(frames: pl.DataFrame, sent: pl.DataFrame, arrived: pl.DataFrame, expected: pl.DataFrame) -> pl.DataFrame:
    """Requests sent again that the wire does not explain: call, reply, asked, answered, received, rows.

    `frames`: UDP with `call`; `sent` and `arrived`: their datagrams; `expected`: the expected layout of each leg.
    """
    again = (
        sent.filter(~pl.col("reply"))
        .sort("call", "first_ns", maintain_order=True)
        .with_columns(number=pl.int_range(pl.len()).over("call"))
        .filter(pl.col("number") > 0)
    )
    events = _events(frames, sent, arrived, expected)
    moments = again.select("call", "number", "first_ns")
    before = events.join(moments, on="call").filter(pl.col("at") < pl.col("first_ns"))
    counts = before.group_by("call", "number").agg(pl.col("asked", "answered", "received").sum())
    table = again.join(counts, on=["call", "number"], how="left").with_columns(
        pl.col("asked", "answered", "received").fill_null(0)
    )
    return table.filter((pl.col("received") > 0) | (pl.col("asked") > pl.col("answered"))).sort("call", "number")


def _events(frames: pl.DataFrame, sent: pl.DataFrame, arrived: pl.DataFrame, expected: pl.DataFrame) -> pl.DataFrame:
    """What changes the counts of a call: call, at (ns), asked, answered, received.

    A datagram in which the wire corrupted a frame counts as not received: its checksum is wrong. An answer that was
    dropped before it passed the server's port was given all the same.
    """
    whole = arrived.join(expected, on=["call", "reply", "layout"], how="semi")
    corrupted = frames.filter(pl.col("fate") == CORRUPTED, pl.col("call").is_not_null())
    dropped = datagrams(frames.filter(pl.col("fate") == DROPPED))
    arrivals = pl.concat(
        [
            whole.select("call", "reply", at="last_ns", count=pl.lit(1)),
            corrupted.select("call", "reply", at="time_ns", count=pl.lit(-1)),
        ]
    )
    answers = pl.concat([part.filter("reply").select("call", at="first_ns") for part in (sent, dropped)])
    zero, one = pl.lit(0), pl.lit(1)
    return pl.concat(
        [
            arrivals.filter(~pl.col("reply")).select("call", "at", asked="count", answered=zero, received=zero),
            answers.select("call", "at", asked=zero, answered=one, received=zero),
            arrivals.filter("reply").select("call", "at", asked=zero, answered=zero, received="count"),
        ]
    )
