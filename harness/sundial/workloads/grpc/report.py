# SPDX-License-Identifier: Apache-2.0
"""gRPC in reports: round trips by function. Sizes are those of the values; the messages are other ones."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import polars as pl

from sundial.expect import Leg
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
    Setting,
    WorkloadReport,
)
from sundial.workloads import functions
from sundial.workloads.grpc.expect import call_messages
from sundial.workloads.grpc.expect_languages import BY_CLIENT, CPP, PYTHON

LINES = {
    PYTHON.name: {"grpc": Line("grpc", "#2f7d6d", "#6fc7b4", "P")},
    CPP.name: {"grpc": Line("grpc", "#4a5f94", "#9db1e3", "X")},
}


class GrpcReport:
    """gRPC, as the report asks for it."""

    clients: Mapping[str, Client] = {
        app: Client(language.label, LINES[language.name]) for app, language in BY_CLIENT.items()
    }

    def legs(self, setting: Setting, size: int) -> tuple[Leg, Leg] | None:
        """Segments are TCP's choice; those of each call are in observed.parquet."""
        return None

    def moves(self, procedure: str) -> int:
        return 1 if procedure == "distance" else BOTH_DIRECTIONS

    def filters(self, transports: Collection[str]) -> Iterator[Filter]:
        yield Filter("requests and replies", "http2.type == 0", of_calls=True)
        yield Filter("what is no part of a call", "http2.type == 3 || http2.type == 6 || http2.type == 7")
        yield TCP_RETRANSMISSIONS

    def tables(self, records: Records, samples: pl.DataFrame) -> Iterator[Table]:
        measured = samples.filter(pl.col("app").cast(pl.String).is_in(list(BY_CLIENT)), ~pl.col("warmup"))
        if measured.is_empty():
            return
        named = (pl.col(name).cast(pl.String) for name in ("client", "app", "procedure"))
        points = measured.group_by(*named, "size").agg(
            calls=pl.len(),
            failed=(~pl.col("ok")).sum(),
            **quartiles_us(),
        )
        rows: list[tuple[str, ...]] = []
        alarms: set[int] = set()
        number = pl.col("procedure").replace_strict(
            {each.name: each.number for each in functions.FUNCTIONS}, default=0, return_dtype=pl.Int64
        )
        place = pl.col("app").replace_strict({app: place for place, app in enumerate(BY_CLIENT)}, return_dtype=pl.Int64)
        for row in points.sort("client", number, place).iter_rows(named=True):
            name = row["procedure"]
            octets = [whole(len(part)) for part in call_messages(name)] if name in functions.BY_NAME else ["", ""]
            if row["failed"]:
                alarms.add(len(rows))
            times = (decimal(row[key]) for key in QUARTILES)
            language = BY_CLIENT[row["app"]].name
            rows.append((row["client"], name, language, *octets, whole(row["calls"]), whole(row["failed"]), *times))
        columns = (
            *words("from", "function", "language"),
            *numbers("request (B)", "reply (B)", "calls", "failed"),
            *numbers(*QUARTILE_TITLES),
        )
        yield Table("Round trip by function (µs)", columns, tuple(rows), frozenset(alarms))


KIND: WorkloadReport = GrpcReport()
