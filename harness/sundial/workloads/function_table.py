# SPDX-License-Identifier: Apache-2.0
"""Round trips by function in reports."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import polars as pl

from sundial.report.tables import QUARTILE_TITLES, QUARTILES, Table, decimal, numbers, quartiles_us, whole, words
from sundial.workloads.functions import BY_NAME

BY: Mapping[str, str] = {"client": "from", "transport": "transport"}


def calls_by(samples: pl.DataFrame, clients: Collection[str]) -> pl.DataFrame:
    """Measured calls of samples by these programs."""
    names = pl.col("app", "client", "transport", "procedure").cast(pl.String)
    return samples.with_columns(names).filter(pl.col("app").is_in(list(clients)), ~pl.col("warmup"))


def function_table(
    calls: pl.DataFrame, octets: Callable[[str], tuple[int, int]], by: Mapping[str, str] = BY
) -> Table | None:
    """Of those of `calls` that are of the twelve functions.

    `octets`: bytes of a function's request and reply; `by`: columns of calls that are apart, with their titles. None:
    nothing was called.
    """
    called = calls.filter(pl.col("procedure").is_in(list(BY_NAME)))
    if called.is_empty():
        return None
    number = pl.col("procedure").replace_strict({each.name: each.number for each in BY_NAME.values()})
    points = called.group_by(*by, "procedure").agg(calls=pl.len(), failed=(~pl.col("ok")).sum(), **quartiles_us())
    rows: list[tuple[str, ...]] = []
    alarms: set[int] = set()
    for row in points.sort(*by, number).iter_rows(named=True):
        if row["failed"]:
            alarms.add(len(rows))
        name = row["procedure"]
        times = (decimal(row[key]) if row[key] is not None else "" for key in QUARTILES)
        counts = (whole(row["calls"]), whole(row["failed"]))
        rows.append((*(row[column] for column in by), name, *map(whole, octets(name)), *counts, *times))
    columns = (
        *words(*by.values(), "function"),
        *numbers("request (B)", "reply (B)", "calls", "failed", *QUARTILE_TITLES),
    )
    return Table("Round trip by function (µs)", columns, tuple(rows), frozenset(alarms))
