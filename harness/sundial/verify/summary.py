# SPDX-License-Identifier: Apache-2.0
"""Samples by kind of call, size and client: what summary.csv and bounds on `summary` have of calls and round trips."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

CURVE = ["app", "transport", "procedure"]
"""What one curve of a figure shows."""

POINT = [*CURVE, "size", "client"]
"""What one row of summary.csv shows."""

NS_PER_US = 1_000.0


def round_trips(samples: pl.DataFrame, by: Sequence[str] = POINT) -> pl.DataFrame:
    """Round-trip statistics in us of the successful measured calls for each combination of `by`.

    The standard deviation is the sample's (n - 1), null for a single call; percentiles interpolate linearly.
    """
    rtt = pl.col("rtt_ns")
    times = {
        "rtt_min_us": rtt.min(),
        "rtt_median_us": rtt.median(),
        "rtt_mean_us": rtt.mean(),
        "rtt_p95_us": rtt.quantile(0.95, interpolation="linear"),
        "rtt_p99_us": rtt.quantile(0.99, interpolation="linear"),
        "rtt_max_us": rtt.max(),
        "rtt_stddev_us": rtt.std(ddof=1),
    }
    return (
        samples.lazy()
        .filter(pl.col("ok"), ~pl.col("warmup"))
        .group_by(by)
        .agg((value / NS_PER_US).alias(name) for name, value in times.items())
        .with_columns(pl.col(name).cast(pl.String) for name in by if name != "size")
        .sort(by)
        .collect()
    )


def of_calls(samples: pl.DataFrame, by: Sequence[str] = POINT) -> pl.DataFrame:
    """Measured calls, failed ones and the client's count of retransmissions, with the round trips beside them."""
    counts = (
        samples.filter(~pl.col("warmup"))
        .group_by(by)
        .agg(
            calls=pl.len().cast(pl.Int64),
            ok=pl.col("ok").sum().cast(pl.Int64),
            errors=(~pl.col("ok")).sum().cast(pl.Int64),
            retransmissions=pl.col("retransmits").cast(pl.Int64).sum(),
        )
        .with_columns(pl.col(name).cast(pl.String) for name in by if name != "size")
    )
    return counts.join(round_trips(samples, by), on=list(by), how="left").sort(by)
