# SPDX-License-Identifier: Apache-2.0
"""RPyC in reports: round trips and exchanges by function, with what its arrays were in."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import polars as pl

from sundial.report.tables import (
    QUARTILE_TITLES,
    QUARTILES,
    Table,
    decimal,
    numbers,
    quartiles_us,
    whole,
    words,
)
from sundial.report.workload import (
    BOTH_DIRECTIONS,
    TCP_RETRANSMISSIONS,
    Client,
    Filter,
    Line,
    Records,
    WorkloadReport,
)
from sundial.workloads import functions
from sundial.workloads.rpyc.model import PORT
from sundial.workloads.rpyc.plan import CLIENT

LINES = {"rpyc": Line("rpyc", "#b0486a", "#e58ba6", "X")}
_KEY = ("client", "function", "container", "variant", "tcp_nodelay")


class RpycReport(WorkloadReport):
    """RPyC, as the report asks for it."""

    clients: Mapping[str, Client] = {CLIENT: Client("RPyC", LINES, dissector="rpyc", ports=(PORT, PORT + 1))}

    def moves(self, procedure: str) -> int:
        """Lists and objects never cross, so what does is not a measure."""
        return 0 if functions.BY_NAME[procedure].size == 0 else 1 if procedure == "distance" else BOTH_DIRECTIONS

    def filters(self, transports: Collection[str]) -> Iterator[Filter]:
        yield Filter("messages of RPyC", "rpyc", of_calls=True)
        yield Filter("references given back", "rpyc.handler == 15")
        yield TCP_RETRANSMISSIONS

    def tables(self, records: Records, samples: pl.DataFrame) -> Iterator[Table]:
        batches = [_batch(record) for record in records.get("batch", []) if record.get("app") == CLIENT]
        if not batches:
            return
        lines = pl.DataFrame(batches, infer_schema_length=None, schema_overrides=_TYPES)
        joins = ["client", "node_step", "series", "procedure"]
        calls = (
            samples.filter(pl.col("app").cast(pl.String) == CLIENT)
            .with_columns(pl.col(name).cast(_TYPES[name]) for name in joins)
            .join(lines, on=joins)
            .with_columns(asked=pl.col("exchanges") / pl.len().over(joins))
            .filter(~pl.col("warmup"))
        )
        if not calls.is_empty():
            yield _by_function(calls)


_TYPES: dict[str, Any] = {
    "client": pl.String, "node_step": pl.Int64, "series": pl.Int64, "procedure": pl.String, "function": pl.Int64,
    "container": pl.String, "variant": pl.String, "tcp_nodelay": pl.Boolean, "exchanges": pl.Int64,
}  # fmt: skip


def _batch(record: Mapping[str, Any]) -> dict[str, Any]:
    names = ("series", "procedure", "function", "container", "variant", "tcp_nodelay", "exchanges")
    return {"client": record["machine"], "node_step": record.get("step"), **{name: record.get(name) for name in names}}


def _by_function(calls: pl.DataFrame) -> Table:
    """Requests of the client a call: those of its batch, what it gave back with them, over all its calls."""
    points = (
        calls.group_by(*_KEY, "procedure")
        .agg(
            calls=pl.len(),
            failed=(~pl.col("ok")).sum(),
            asked=pl.col("asked").mean(),
            **quartiles_us(),
        )
        .sort(*_KEY, nulls_last=True)
    )
    rows: list[tuple[str, ...]] = []
    alarms: set[int] = set()
    for row in points.iter_rows(named=True):
        if row["failed"]:
            alarms.add(len(rows))
        how = (row[name] or "" for name in ("container", "variant"))
        nodelay = "yes" if row["tcp_nodelay"] else "no"
        times = (decimal(row[name]) if row[name] is not None else "" for name in QUARTILES)
        counts = (whole(row["calls"]), whole(row["failed"]), decimal(row["asked"], 2))
        rows.append((row["client"], row["procedure"], *how, nodelay, *counts, *times))
    columns = (
        *words("from", "function", "container", "computed by", "TCP_NODELAY"),
        *numbers("calls", "failed", "requests a call", *QUARTILE_TITLES),
    )
    return Table("Round trip by function (µs)", columns, tuple(rows), frozenset(alarms))


KIND: WorkloadReport = RpycReport()
