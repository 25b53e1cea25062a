# SPDX-License-Identifier: Apache-2.0
"""Where the time of a call goes: guest samples joined with capture stamps.

The five stages of one call, in the order they happen:

    start ....... first byte leaves the client's port .... last byte reaches the server's port
      client_call                    wire_out
    .... first byte of the reply leaves .... last byte reaches the client's port .... end
      server               wire_back                                client_return

They add up to the round trip exactly. Stamps and samples share one time axis under virtual time; on the real clock
they only do so approximately, and the two client stages are then reported as their sum alone, which needs no common
axis: rtt - (reply_last_rx - call_first_tx).

Calls that failed, were warm-up, or needed a retransmission (seen by client or capture) are left out, as their wire
stages would contain waiting. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

STAGES = ("client_call", "wire_out", "server", "wire_back", "client_return")
STAMPS = ("call_first_tx_ns", "call_last_rx_ns", "reply_first_tx_ns", "reply_last_rx_ns")
KEY = ("client", "batch", "call")

NS_PER_US = 1_000.0


def join(samples: pl.DataFrame, observed: pl.DataFrame) -> pl.DataFrame:
    """Samples with the stamps of their frames beside them; calls without all four stamps are left out."""
    needed = [*KEY, *STAMPS]
    if samples.is_empty() or observed.is_empty() or any(name not in observed.columns for name in needed):
        return samples.clear().with_columns(
            pl.lit(None, dtype=pl.Int64).alias(name) for name in (*STAMPS, "seen_again")
        )
    extra = pl.col("retransmissions") if "retransmissions" in observed.columns else pl.lit(0)
    stamps = observed.select([*needed, extra.cast(pl.Int64).alias("seen_again")])
    same_order = samples.height == stamps.height and samples.select(KEY).equals(stamps.select(KEY))
    both = samples.hstack(stamps.drop(KEY)) if same_order else samples.join(stamps, on=list(KEY), how="inner")
    return both.drop_nulls(list(STAMPS))


def clean(joined: pl.DataFrame) -> pl.DataFrame:
    """The calls whose stages mean something: measured, successful, nothing sent twice."""
    return joined.filter(
        pl.col("ok"),
        ~pl.col("warmup"),
        pl.col("retransmits") == 0,
        pl.col("seen_again").fill_null(0) == 0,
    )


def stages(joined: pl.DataFrame, by: Sequence[str], common_axis: bool) -> pl.DataFrame:
    """Mean of each stage in us for each combination of `by`, with calls and the mean round trip.

    Columns: `by`, calls, the five STAGES (only wire_out, server and wire_back without a common axis), client, rtt.
    """
    call_tx, call_rx, reply_tx, reply_rx = (pl.col(name) for name in STAMPS)
    parts = {
        "wire_out": call_rx - call_tx,
        "server": reply_tx - call_rx,
        "wire_back": reply_rx - reply_tx,
        "client": pl.col("rtt_ns") - (reply_rx - call_tx),
        "rtt": pl.col("rtt_ns"),
    }
    if common_axis:
        parts |= {"client_call": call_tx - pl.col("start_ns"), "client_return": pl.col("end_ns") - reply_rx}
    return (
        clean(joined)
        .group_by(by)
        .agg(pl.len().alias("calls"), *((value.mean() / NS_PER_US).alias(name) for name, value in parts.items()))
        .with_columns(pl.col(name).cast(pl.String) for name in by if name != "size")
        .sort(by)
    )
