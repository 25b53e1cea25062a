# SPDX-License-Identifier: Apache-2.0
"""What was sent against what was to be sent, call by call.

UDP: every datagram must consist of exactly the expected fragments, and there must be as many requests as the client
says it made. TCP: the segments must be the expected ones where those are determined (`sundial.expect.tcp`); where
something was sent again the congestion window has changed, and only sum, largest segment and bounds bind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from sundial.expect.ip import TCP_HEADER, TCP_TIMESTAMPS
from sundial.verify.findings import findings
from sundial.verify.frames import DROPPED


def with_legs(calls: pl.DataFrame, legs: pl.DataFrame) -> pl.DataFrame:
    """One row for each call and direction with what is expected of it. `calls` as of `with_unsent`."""
    columns = ["id", "transport", "protocol", "kind", "ok", "retransmits", "error", "server_port", "unsent",
               "reply_unsent"]  # fmt: skip
    return calls.select(columns).rename({"id": "call"}).join(legs, on="kind", how="inner")


def with_unsent(
    calls: pl.DataFrame, unsent: Mapping[str, Sequence[tuple[int, int]]], *, exact_time: bool
) -> pl.DataFrame:
    """Adds `unsent` and `reply_unsent`: during the call the kernel of its client, or server, may have dropped what it
    was to send (`unsent`, by machine). `exact_time`: samples and capture share one clock."""
    columns = {"client": "unsent", "server": "reply_unsent"}
    found = calls.with_columns(pl.lit(value=False).alias(name) for name in columns.values())
    for machine, stretches in unsent.items():
        begins, ends = np.array(sorted(stretches), np.int64).T
        latest = pl.Series(np.maximum.accumulate(ends))
        # Of those that had begun when a call ended, one ended after that had begun.
        begun = pl.Series(np.searchsorted(begins, calls["end_ns"].to_numpy(), "right"))
        met = (latest.gather((begun - 1).clip(0)) >= calls["start_ns"]) & (begun > 0) if exact_time else None
        during = pl.lit(value=True) if met is None else pl.Series(met).fill_null(True)
        found = found.with_columns(
            pl.col(name) | ((pl.col(side) == machine) & during) for side, name in columns.items()
        )
    return found


def dropped_frames(frames: pl.DataFrame) -> pl.DataFrame:
    """Frames of each call and direction that were dropped, perhaps before they were seen at the sender's port."""
    return (
        frames.filter(pl.col("fate") == DROPPED, pl.col("call").is_not_null())
        .group_by("call", "reply")
        .agg(dropped=pl.len().cast(pl.Int64))
    )


def check_datagrams(sent: pl.DataFrame, expected: pl.DataFrame, dropped: pl.DataFrame, cut: pl.Series) -> pl.DataFrame:
    """Findings about the fragments of each datagram sent. `cut` as of `frames.cut_off`."""
    table = sent.join(expected.rename({"layout": "expected_layout"}), on=["call", "reply"], how="inner").join(
        dropped, on=["call", "reply"], how="left"
    )
    table = table.filter(pl.col("layout") != pl.col("expected_layout"))
    missing = pl.col("packets").cast(pl.Int64) - pl.col("count").cast(pl.Int64)
    partly = (
        pl.col("layout").str.split(",").list.set_difference(pl.col("expected_layout").str.split(",")).list.len() == 0
    ) & ((missing <= pl.col("dropped").fill_null(0)) | pl.when("reply").then("reply_unsent").otherwise("unsent"))
    begun = pl.col("expected_layout").str.starts_with(pl.concat_str("layout", pl.lit(",")))
    ends = begun & pl.col("rows").list.last().is_in(cut.implode())
    right = (partly & (missing > 0)) | ends
    return findings(table, ~right, "fragments", pl.col("expected_layout"), pl.col("layout"))


def check_attempts(
    sent: pl.DataFrame, received: pl.DataFrame, expected: pl.DataFrame, dropped: pl.DataFrame
) -> pl.DataFrame:
    """Findings about how often requests and replies went over UDP.

    A request goes once and once more for each retransmission that the client counted (`retransmits` null: unknown, at
    least once); one whose client has no port of a server (0) never goes. A server answers at most each complete
    request. A call that succeeded has a complete one of both.
    """
    side = ["call", "reply"]
    attempts = sent.group_by(side).agg(attempts=pl.len().cast(pl.Int64), rows=pl.col("rows").explode())
    # What was sent in other fragments than expected is a finding of check_datagrams, and may well arrive whole.
    whole = pl.concat([part.select(*side, "layout") for part in (expected, sent)]).unique()
    complete = (
        received.join(whole, on=[*side, "layout"], how="semi").group_by(side).agg(complete=pl.len().cast(pl.Int64))
    )
    table = (
        expected.filter(pl.col("transport") == "udp")
        .join(attempts, on=side, how="left")
        .join(complete, on=side, how="left")
        .join(dropped, on=side, how="left")
        .with_columns(pl.col("attempts", "complete", "dropped").fill_null(0))
    )
    requests = table.filter(~pl.col("reply"))
    goes = pl.col("sent") & (pl.col("server_port") != 0)
    requested = pl.when(goes).then(pl.col("retransmits").cast(pl.Int64) + 1).otherwise(0)
    # The client's kernel took no more than those before: a socket buffer without room, or an ICMP message that came.
    refused = pl.col("error").str.contains("Unable to send|cannot send").fill_null(False).cast(pl.Int64)
    least = pl.when("unsent").then(0).otherwise(requested - pl.col("dropped") - refused)
    right = (pl.col("attempts") <= requested) & (pl.col("attempts") >= least)
    right = pl.when(requested.is_null()).then(pl.col("attempts") > 0).otherwise(right)
    answered = requests.select("call", pl.col("complete").alias("asked"))
    replies = table.filter("reply").join(answered, on="call", how="left")
    incomplete = pl.col("ok") & pl.col("sent") & (pl.col("complete") == 0)
    return pl.concat(
        [
            findings(requests, ~right, "count", requested.fill_null(1), pl.col("attempts")),
            findings(replies, pl.col("attempts") > pl.col("asked"), "count", pl.col("asked"), pl.col("attempts")),
            findings(table, incomplete, "received", pl.lit("1 complete"), pl.lit("none")),
        ]
    )


def check_messages(sent: pl.DataFrame, expected: pl.DataFrame, given: pl.DataFrame) -> pl.DataFrame:
    """Findings about the segments of each request and reply over TCP. `given`: call, xid, timestamps of the samples."""
    side = ["call", "reply"]
    table = (
        expected.filter(pl.col("transport") == "tcp")
        .rename({"layout": "expected_layout", "records": "expected_records"})
        .join(sent, on=side, how="left")
        .join(given.rename({"xid": "given_xid"}), on="call", how="left")
        .with_columns(pl.col("bytes", "count", "again", "longest").fill_null(0), pl.col("layout").fill_null(""))
    )
    whole = pl.col("bytes") == pl.col("payload")
    short = (pl.col("bytes") < pl.col("payload")) & ~pl.col("ok")
    same = pl.col("layout") == pl.col("expected_layout")
    # What a segment with SACK blocks holds less (_shortened_by_options) may go by itself.
    left_over = pl.col("with_options").fill_null(0).cast(pl.Int64)
    bounded = (
        (pl.col("count") >= pl.col("fewest"))
        & (pl.col("count") <= pl.col("most").cast(pl.Int64) + left_over)
        & (pl.col("longest") <= pl.col("largest"))
    )
    exactly = same | _shortened_by_options()
    fits = pl.when(pl.col("exact") & (pl.col("again") == 0)).then(exactly).otherwise(bounded)
    bounds = pl.format("{} to {} segments of at most {} bytes", "fewest", "most", "largest")
    layout = pl.when("exact").then("expected_layout").otherwise(bounds)
    renamed = pl.col("xid").is_not_null() & (pl.col("xid").cast(pl.Int64) != pl.col("given_xid"))
    return pl.concat(
        [
            findings(table, ~whole & ~short, "bytes", pl.col("payload"), pl.col("bytes")),
            findings(table, whole & ~fits, "segments", layout, pl.col("layout")),
            findings(table, renamed.fill_null(False), "xid", pl.col("given_xid"), pl.col("xid")),
        ]
    )


def _shortened_by_options() -> pl.Expr:
    """Segments that carry SACK blocks hold so much less (RFC 2018, section 3; RFC 6691, section 2), as after a request
    that came twice (RFC 2883): with its options each but the last is as long as the connection allows. What such a
    segment leaves over of what was cut before goes by itself."""
    usual = TCP_HEADER + pl.when("timestamps").then(TCP_TIMESTAMPS).otherwise(0)
    full = pl.col("largest").cast(pl.Int64) + usual
    most = pl.col("with_header_most")
    is_full = ((most == full) | ((pl.col("count") == 1) & (most < full))) & (
        pl.col("shorter") <= pl.col("with_options")
    )
    cut_by_size_alone = pl.col("fewest") == (pl.col("payload") / pl.col("largest")).ceil()
    return cut_by_size_alone & (pl.col("header_most") > usual) & is_full
