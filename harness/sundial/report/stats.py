# SPDX-License-Identifier: Apache-2.0
"""The statistics of a run: tables in, tables out.

Pure: nothing here opens a file, draws, or knows what a report looks like. All tables are polars frames with the
columns of samples.parquet; times come in as ns and leave as the unit in the column's name (us: microseconds, kB/s: 1000
bytes a second).

Two rules that a reader of the numbers must know:

* Warm-up calls are left out everywhere. Round-trip statistics take the calls that succeeded; a call that succeeded
  after a retransmission is among them, with the time it really took.
* Throughput is `bytes moved / T`: both directions are counted, so an echo of N bytes moves 2N, and T is the time from
  the start of a batch's first measured call to the end of its last one, pauses and timeouts included. Threads of one
  client add up; batches that repeat the same thing are averaged.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from sundial.model.scenario import MEAN, STATISTICS
from sundial.model.statistic import Statistic
from sundial.report import registry
from sundial.verify.summary import CURVE as CURVE
from sundial.verify.summary import NS_PER_US as NS_PER_US
from sundial.verify.summary import POINT as POINT
from sundial.verify.summary import round_trips as round_trips

NS_PER_S = 1_000_000_000.0


def statistic_named(word: str | None) -> Statistic:
    """The statistic of a run; the mean where there is none of that name any more."""
    return STATISTICS.get(word or MEAN, STATISTICS[MEAN])


def measured(samples: pl.DataFrame) -> pl.DataFrame:
    """The calls that count: all but the warm-up ones."""
    return samples.filter(~pl.col("warmup"))


def _moved(of: pl.DataFrame) -> pl.DataFrame:
    """Batches with the payload bytes that one successful call moves, both directions counted."""
    kinds = of.select("app", "procedure").unique()
    times = [registry.moves(app, procedure) for app, procedure in kinds.iter_rows()]
    return (
        of.join(kinds.with_columns(times=pl.Series(times, dtype=pl.Int64)), on=["app", "procedure"])
        .with_columns(moved=pl.col("times") * pl.col("size") * pl.col("ok"))
        .drop("times")
    )


def batches(samples: pl.DataFrame) -> pl.DataFrame:
    """One row a batch: what it was, how many calls of each kind, payload moved (bytes) and time taken (ns).

    A batch is one client's run of calls of one kind and size on one thread of one series; all that is not a percentile
    comes from here.
    """
    counted = ~pl.col("warmup")
    identity = ("server", *CURVE, "size", "series", "thread", "node_step")
    return (
        samples.group_by("client", "batch")
        .agg(
            *(pl.col(name).first() for name in identity),
            calls=counted.sum().cast(pl.Int64),
            warmups=pl.col("warmup").sum().cast(pl.Int64),
            ok=(pl.col("ok") & counted).sum().cast(pl.Int64),
            errors=(~pl.col("ok") & counted).sum().cast(pl.Int64),
            retransmissions=pl.col("retransmits").filter(counted).cast(pl.Int64).sum(),
            elapsed_ns=pl.col("end_ns").filter(counted).max() - pl.col("start_ns").filter(counted).min(),
        )
        .with_columns(pl.col(name).cast(pl.String) for name in ("client", "server", *CURVE))
        .pipe(_moved)
        .sort("client", "batch")
    )


def counts(of: pl.DataFrame, by: Sequence[str] = POINT) -> pl.DataFrame:
    """Calls, ok, errors and retransmissions (the client's count) for each combination of `by`, from batches."""
    return (
        of.filter(pl.col("calls") > 0)
        .group_by(by)
        .agg(pl.col("calls", "ok", "errors", "retransmissions").sum())
        .sort(by)
    )


def series_throughput(of: pl.DataFrame, by: Sequence[str] = POINT) -> pl.DataFrame:
    """Throughput in kB/s of each series for each combination of `by`, from batches.

    Columns: `by`, series, throughput_kBps.
    """
    keys = list(by)
    machine = [] if "client" in keys else ["client"]
    rates = of.filter(pl.col("elapsed_ns") > 0).with_columns(
        throughput_kBps=pl.col("moved") / pl.col("elapsed_ns") * (NS_PER_S / 1000.0)
    )
    threads = rates.group_by([*keys, *machine, "series", "thread"]).agg(pl.col("throughput_kBps").mean())
    clients = threads.group_by([*keys, *machine, "series"]).agg(pl.col("throughput_kBps").sum())
    series = clients.group_by([*keys, "series"]).agg(pl.col("throughput_kBps").mean())
    return series.sort([*keys, "series"])


def over_series(series: pl.DataFrame, statistic: str | None, by: Sequence[str] = POINT) -> pl.DataFrame:
    """One throughput a point out of its series.

    A statistic may drop the series with the lowest throughput; mean and relative standard deviation (sample, in percent
    of the mean) are of the series that stay. `series_min_kBps` and
    `series_max_kBps` are of all series.
    """
    value = pl.col("throughput_kBps")
    ranked = series.with_columns(
        rank=value.rank("ordinal").over(list(by)),
        of=pl.len().over(list(by)),
    )
    dropped = {of: statistic_named(statistic).dropped(of) for of in ranked["of"].unique()}
    stays = pl.col("rank") > pl.col("of").replace_strict(dropped, default=0, return_dtype=pl.UInt32)
    kept = value.filter(stays)
    return (
        ranked.group_by(by)
        .agg(
            series=pl.len(),
            series_dropped=(~stays).sum(),
            throughput_kBps=kept.mean(),
            throughput_stddev_pct=pl.when(kept.mean() > 0).then(100.0 * kept.std(ddof=1) / kept.mean()),
            series_min_kBps=value.min(),
            series_max_kBps=value.max(),
        )
        .sort(by)
    )


def summary(samples: pl.DataFrame, of: pl.DataFrame, statistic: str | None, by: Sequence[str] = POINT) -> pl.DataFrame:
    """The table of summary.csv: one row per app, transport, procedure, size and client. `of`: the samples' batches."""
    rates = over_series(series_throughput(of, by), statistic, by)
    return (
        counts(of, by)
        .join(round_trips(samples, by), on=list(by), how="left")
        .join(rates, on=list(by), how="left")
        .with_columns(statistic=pl.lit(statistic or MEAN))
        .sort(by)
    )


def curves(samples: pl.DataFrame, of: pl.DataFrame, summarised: pl.DataFrame, statistic: str | None) -> pl.DataFrame:
    """The same over all clients, for the figures over size. With one client it is the summary without its name."""
    if summarised["client"].n_unique() <= 1:
        return summarised.drop("client")
    return summary(samples, of, statistic, [*CURVE, "size"])


def ecdf(values_us: Sequence[float] | pl.Series, points: int = 400) -> tuple[list[float], list[float]]:
    """The empirical distribution as steps: (value, share of calls at or below it).

    Exact for up to `points` different values, beyond that thinned to `points` of them, the extremes kept.
    """
    series = pl.Series("v", values_us, dtype=pl.Float64).sort()
    if series.is_empty():
        return [], []
    steps = pl.DataFrame({"v": series}).with_row_index("i").group_by("v", maintain_order=True).agg(pl.col("i").max())
    total = series.len()
    if steps.height > points:
        last = steps.height - 1
        keep = sorted({round(k * last / (points - 1)) for k in range(points)})
        steps = steps[keep]
    return steps["v"].to_list(), [(i + 1) / total for i in steps["i"].to_list()]


def chosen_sizes(sizes: Sequence[int], want: int = 4) -> list[int]:
    """A few sizes that stand for all: the least, the greatest, and those nearest to even steps between them."""
    distinct = sorted(set(sizes))
    if len(distinct) <= want:
        return distinct
    low, high = distinct[0], distinct[-1]
    goals = [low + (high - low) * k / (want - 1) for k in range(want)]
    picked = {min((abs(size - goal), size) for size in distinct)[1] for goal in goals}
    return sorted(picked)
