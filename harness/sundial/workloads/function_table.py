# SPDX-License-Identifier: Apache-2.0
"""Round trips by function in reports."""

from __future__ import annotations

from collections.abc import Callable, Collection

import polars as pl

from sundial.report.tables import QUARTILE_TITLES, QUARTILES, Table, decimal, numbers, quartiles_us, whole, words
from sundial.workloads.functions import BY_NAME


def function_table(
    samples: pl.DataFrame, clients: Collection[str], octets: Callable[[str], tuple[int, int]]
) -> Table | None:
    """Of calls by these programs; `octets`: bytes of a function's request and reply. None: nothing was called."""
    names = pl.col("client", "transport", "procedure").cast(pl.String)
    called = samples.filter(pl.col("app").cast(pl.String).is_in(list(clients)), ~pl.col("warmup")).with_columns(names)
    called = called.filter(pl.col("procedure").is_in(list(BY_NAME)))
    if called.is_empty():
        return None
    number = pl.col("procedure").replace_strict({each.name: each.number for each in BY_NAME.values()})
    points = called.group_by("client", "transport", "procedure").agg(
        calls=pl.len(), failed=(~pl.col("ok")).sum(), **quartiles_us()
    )
    rows: list[tuple[str, ...]] = []
    alarms: set[int] = set()
    for row in points.sort("client", "transport", number).iter_rows(named=True):
        if row["failed"]:
            alarms.add(len(rows))
        name = row["procedure"]
        times = (decimal(row[key]) if row[key] is not None else "" for key in QUARTILES)
        counts = (whole(row["calls"]), whole(row["failed"]))
        rows.append((row["client"], row["transport"], name, *map(whole, octets(name)), *counts, *times))
    columns = (
        *words("from", "transport", "function"),
        *numbers("request (B)", "reply (B)", "calls", "failed", *QUARTILE_TITLES),
    )
    return Table("Round trip by function (µs)", columns, tuple(rows), frozenset(alarms))
