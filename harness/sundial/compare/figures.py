# SPDX-License-Identifier: Apache-2.0
"""Figures of runs side by side, by groups of calls. Pure: tables of samples in, figures out.

Under the virtual clock a figure is exact, so there are no statistics. Under the real clock each difference gets a 95 %
interval by the percentile bootstrap of order statistics: of n sorted values the k-th of a resample is the value at
place n U, where U has the distribution Beta(k, n + 1 - k) (David and Nagaraja, Order Statistics, 2003, 2.3). That is
exact and takes no longer for a million calls. The seed is fixed, so the same runs give the same intervals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sundial.seams.compare import ComparedGroup, Figures, Interval

BY = ("app", "transport", "procedure", "size")
COLUMNS = (*BY, "client", "server", "series", "thread")
"""What calls can be grouped by."""
CALL = ("client", "server", "app", "transport", "procedure", "size", "series", "thread", "call")
"""What identifies a call of a scenario."""
RESAMPLES = 10_000
SEED = 1
METHOD = (
    f"95 % intervals: percentile bootstrap with {RESAMPLES} resamples; of the difference of the runs' percentiles, or, "
    "where both runs have the same calls, for p50 of the median of the differences call by call. They cover the spread "
    "within these runs, not between runs"
)
_BOUNDS = (0.025, 0.975)
_US = 1e3

Values = NDArray[np.float64]


def compare(samples: Sequence[pl.DataFrame], by: Sequence[str], *, intervals: bool) -> list[ComparedGroup]:
    """Each group of calls that any run has, in order of its key. `samples` with the columns of samples.parquet."""
    tables = [_measured(table, by) for table in samples]
    figures = [_figures(table, by) for table in tables]
    keys = sorted({key for each in figures for key in each}, key=lambda key: tuple(map(_order, key)))
    parts = [_parts(table, by) for table in tables] if intervals else []
    groups = []
    for number, key in enumerate(keys):
        base = figures[0].get(key)
        runs: list[Figures | None] = [None if base is None else _of(base, None, None)]
        for place in range(1, len(figures)):
            row = figures[place].get(key)
            interval = None
            if intervals and row is not None and base is not None:
                interval = _interval(parts[0][key], parts[place][key], (SEED, number, place))
            runs.append(None if row is None else _of(row, base, interval))
        groups.append(ComparedGroup(key=dict(zip(by, key, strict=True)), runs=tuple(runs)))
    return groups


def unpaired(first: Values, other: Values, share: float, seed: Sequence[int]) -> tuple[float, float]:
    """The interval of the difference of percentiles, other less first. Both have values."""
    random = np.random.default_rng(list(seed))
    drawn = [_resampled(np.sort(values), share, random) for values in (first, other)]
    return _bounds(drawn[1] - drawn[0])


def paired(differences: Values, seed: Sequence[int]) -> tuple[float, float]:
    """The interval of the median of differences."""
    return _bounds(_resampled(np.sort(differences), 0.5, np.random.default_rng(list(seed))))


def _resampled(values: Values, share: float, random: np.random.Generator) -> Values:
    """A percentile of each of RESAMPLES resamples of sorted values."""
    count = len(values)
    rank = max(1, math.ceil(share * count))
    places = (random.beta(rank, count + 1 - rank, RESAMPLES) * count).astype(np.int64)
    found: Values = values[np.minimum(places, count - 1)]
    return found


def _bounds(values: Values) -> tuple[float, float]:
    low, high = np.quantile(values, _BOUNDS)
    return float(low), float(high)


def _interval(first: pl.DataFrame, other: pl.DataFrame, seed: Sequence[int]) -> Interval | None:
    ours, theirs = (table["us"].to_numpy() for table in (first, other))
    if len(ours) < 2 or len(theirs) < 2:
        return None
    late = unpaired(ours, theirs, 0.99, (*seed, 99))
    differences = _same_calls(first, other)
    if differences is None:
        return Interval(method="unpaired", p50_us=unpaired(ours, theirs, 0.5, seed), p99_us=late)
    return Interval(method="paired", p50_us=paired(differences, seed), p99_us=late)


def _same_calls(first: pl.DataFrame, other: pl.DataFrame) -> Values | None:
    """Differences call by call; None unless each call of a run has one counterpart in the other one."""
    if first.height != other.height or first.select(CALL).is_duplicated().any():
        return None
    both = first.join(other, on=CALL, how="inner", suffix="_other", maintain_order="left")
    if both.height != first.height:
        return None
    differences: Values = (both["us_other"] - both["us"]).to_numpy()
    return differences


def _measured(samples: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    words = [name for name, kind in samples.schema.items() if kind == pl.Categorical]
    return (
        samples.filter(~pl.col("warmup"))
        .with_columns(pl.col(words).cast(pl.String), us=pl.col("rtt_ns") / _US)
        .select(*CALL, "ok", "retransmits", "us")
    )


def _figures(table: pl.DataFrame, by: Sequence[str]) -> dict[tuple[Any, ...], Mapping[str, Any]]:
    answered = pl.col("us").filter("ok")
    rows = table.group_by(by).agg(
        calls=pl.len(),
        errors=(~pl.col("ok")).sum(),
        retransmissions=pl.col("retransmits").cast(pl.Int64).sum(),
        p50_us=answered.median(),
        p99_us=answered.quantile(0.99, "linear"),
    )
    return {tuple(row[name] for name in by): row for row in rows.iter_rows(named=True)}


def _parts(table: pl.DataFrame, by: Sequence[str]) -> dict[tuple[Any, ...], pl.DataFrame]:
    """The calls that succeeded, by group; groups without any have an empty table."""
    found = {key: part.filter("ok") for key, part in table.partition_by(by, as_dict=True).items()}
    return dict(found)


def _of(row: Mapping[str, Any], base: Mapping[str, Any] | None, interval: Interval | None) -> Figures:
    return Figures(
        calls=int(row["calls"]),
        errors=int(row["errors"]),
        retransmissions=int(row["retransmissions"] or 0),
        p50_us=row["p50_us"],
        p99_us=row["p99_us"],
        p50_ratio=None if base is None else _ratio(row["p50_us"], base["p50_us"]),
        p99_ratio=None if base is None else _ratio(row["p99_us"], base["p99_us"]),
        interval=interval,
    )


def _ratio(value: float | None, base: float | None) -> float | None:
    return None if value is None or not base else value / base


def _order(value: Any) -> tuple[bool, Any]:
    return isinstance(value, str), value
