# SPDX-License-Identifier: Apache-2.0
"""DCE RPC in reports: round trips by policy, calls of several threads, and what its senders and receivers counted.

The first call of an activity holds the server's question who_are_you, and is a warm-up everywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from sundial.expect import Leg
from sundial.report.calls import socket_legs
from sundial.report.tables import (
    Column,
    Table,
    decimal,
    numbers,
    size_ranges,
    size_text,
    whole,
    words,
)
from sundial.report.workload import (
    BOTH_DIRECTIONS,
    IP_FRAGMENTS,
    Client,
    Filter,
    Line,
    Records,
    Setting,
    WorkloadReport,
)
from sundial.workloads.dce.expect import expect_call
from sundial.workloads.dce.expect_ndr import lengths
from sundial.workloads.dce.expect_pdu import HEADER, VERSION, Type
from sundial.workloads.dce.plan import CLIENT
from sundial.workloads.function_table import function_table

LINES = {"udp": Line("dce-udp", "#8c3f9e", "#c98ad8", "d")}
"""Beside the colours of Okabe and Ito that Sun RPC and raw sockets have."""

_MOVES = {"null": 0, "put": 1, "get": 1, "void": 0, "distance": 1}
_GROUP = ("client", "procedure", "semantics", "policy", "fragment", "window", "threads")
"""What of a workload makes its calls take other fragments or other times."""
_COUNTED = ("fragments", "fragments_resent", "facks_received", "facks", "pings", "who_are_you")
_TROUBLE = (
    "working",
    "nocall",
    "rejects",
    "faults",
    "cancels",
    "duplicates",
    "strays",
    "dropped",
    "malformed",
    "overruns",
)
_ACTIVITY, _SEQUENCE, _FRAGMENT = slice(40, 56), slice(64, 68), slice(76, 78)
"""Fields of a PDU's header (C706 section 12.5.2)."""
_HEADS = {"client": "from"}
_BATCH = ("client", "node_step", "series", "procedure", "size", "thread")


def repeated(pdu: bytes) -> tuple[bytes, ...] | None:
    """What a request or response is a fragment of: the same each time it is sent, with another serial number."""
    if len(pdu) < HEADER or pdu[0] != VERSION or pdu[1] not in (Type.REQUEST, Type.RESPONSE):
        return None
    return pdu[1:2], pdu[_ACTIVITY], pdu[_SEQUENCE], pdu[_FRAGMENT]


class DceReport(WorkloadReport):
    """DCE RPC, as the report asks for it."""

    clients: Mapping[str, Client] = {CLIENT: Client("DCE RPC", LINES, first_apart=True, repeats=repeated)}

    def legs(self, setting: Setting, size: int) -> tuple[Leg, Leg] | None:
        """Without acknowledgements, and with the fragments of khandker: where a run had others, verification's count
        takes their place."""
        return socket_legs(expect_call, setting, size)

    def moves(self, procedure: str) -> int:
        return _MOVES.get(procedure, BOTH_DIRECTIONS)

    def filters(self, transports: Collection[str]) -> Iterator[Filter]:
        yield Filter("PDUs of DCE RPC", "dcerpc.ver == 4", of_calls=True)
        yield Filter("its acknowledgements of fragments", "dcerpc.pkt_type == 9")
        yield IP_FRAGMENTS

    def tables(self, records: Records, samples: pl.DataFrame) -> Iterator[Table]:
        batches = [_batch(record) for record in records.get("batch", []) if record.get("app") == CLIENT]
        if not batches:
            return
        lines = pl.DataFrame(batches, infer_schema_length=None)
        lines = lines.with_columns(threads=pl.col("thread").n_unique().over("client", "node_step", "series", "size"))
        measured = _measured(lines, samples)
        for table in (_by_function(measured), _by_policy(measured), _by_threads(measured), _counted(lines)):
            if table is not None:
                yield table


def _batch(record: Mapping[str, Any]) -> dict[str, Any]:
    """A batch line as a row: what it was, and what its client counted."""
    counters = record.get("counters", {})
    return {
        "client": record["machine"],
        "node_step": record.get("step"),
        **{name: record.get(name) for name in ("series", "procedure", "size", "thread", "semantics", "policy")},
        "fragment": record.get("fragment_bytes"),
        "window": record.get("window_bytes"),
        **{name: counters.get(name, 0) for name in (*_COUNTED, *_TROUBLE)},
    }


def _measured(lines: pl.DataFrame, samples: pl.DataFrame) -> pl.DataFrame:
    """Successful calls that count, with what their batches were."""
    keys = {"client": pl.String, "procedure": pl.String, "node_step": pl.Int64, "series": pl.Int64, "thread": pl.Int64}
    calls = (
        samples.filter(pl.col("app").cast(pl.String) == CLIENT, pl.col("ok"), ~pl.col("warmup"))
        .select(*_BATCH, "start_ns", "end_ns", "rtt_ns")
        .with_columns(pl.col(name).cast(kind) for name, kind in keys.items())
    )
    what = lines.select(*_BATCH, "semantics", "policy", "fragment", "window", "threads").unique(_BATCH)
    return calls.join(what.with_columns(pl.col(name).cast(kind) for name, kind in keys.items()), on=_BATCH)


def _by_function(measured: pl.DataFrame) -> Table | None:
    """Round trips of one thread by function; nothing where sizes were called."""
    single = measured.filter(pl.col("threads") == 1).with_columns(ok=pl.lit(value=True))
    return function_table(single, lengths, {"client": "from", "policy": "policy", "semantics": "semantics"})


def _by_policy(measured: pl.DataFrame) -> Table | None:
    """Round trips of one thread by size, a column a policy (and whatever else differs); nothing where all are alike."""
    single = measured.filter(pl.col("threads") == 1)
    ways = ("policy", "semantics", "fragment", "window")
    differing = [name for name in ways if single[name].n_unique() > 1]
    if not differing:
        return None
    points = (
        single.group_by("client", "procedure", "size", *differing)
        .agg(
            calls=pl.len(), median=pl.col("rtt_ns").median() / 1e3, p95=pl.col("rtt_ns").quantile(0.95, "linear") / 1e3
        )
        .sort("client", "procedure", "size", *differing)
    )
    heads = points.select(differing).unique().sort(differing).rows()
    found = {
        (*row[:3], row[3 : 3 + len(differing)]): row[-3:]
        for row in points.select("client", "procedure", "size", *differing, "calls", "median", "p95").iter_rows()
    }
    rows = []
    for client, procedure, size in points.select("client", "procedure", "size").unique(maintain_order=True).iter_rows():
        cells = [found.get((client, procedure, size, head)) for head in heads]
        text = (f"{decimal(cell[1])} / {decimal(cell[2])}" if cell else "" for cell in cells)
        rows.append((client, procedure, whole(size), *text))
    columns = (*words("from", "procedure"), *numbers("size (B)", *(_head(differing, head) for head in heads)))
    return Table("Round trip by policy (µs, median / p95)", columns, tuple(rows))


def _head(names: Sequence[str], values: Sequence[object]) -> str:
    """A column's: values that are words say what they are."""
    return ", ".join(
        f"{value}" if isinstance(value, str) else f"{name} {value}" for name, value in zip(names, values, strict=True)
    )


def _by_threads(measured: pl.DataFrame) -> Table | None:
    """Calls a second of all threads of a client together, from the first measured call to the end of the last."""
    if measured.filter(pl.col("threads") > 1).is_empty():
        return None
    made = (
        measured.group_by(*_GROUP, "node_step", "series", "size")
        .agg(calls=pl.len(), ns=pl.col("end_ns").max() - pl.col("start_ns").min())
        .group_by(*_GROUP, "size")
        .agg(pl.col("calls").sum(), pl.col("ns").sum())
        .filter(pl.col("ns") > 0)
        .sort("client", "procedure", "size", "policy", "semantics", "threads")
    )
    rows = []
    alone: dict[tuple[object, ...], float | None] = {}
    for row in made.iter_rows(named=True):
        rate = row["calls"] / row["ns"] * 1e9
        key = tuple(row[name] for name in (*_GROUP[:-1], "size"))
        alone.setdefault(key, rate if row["threads"] == 1 else None)
        moved = row["size"] * _MOVES.get(row["procedure"], BOTH_DIRECTIONS)
        one = alone[key]
        counts = (whole(row[name]) for name in ("size", "threads", "calls"))
        rates = (decimal(row["ns"] / 1e6, 3), decimal(rate), decimal(rate / one, 2) if one else "")
        bits = decimal(rate * moved * 8 / 1e6, 3) if moved else ""
        rows.append((row["client"], row["procedure"], row["policy"], *counts, *rates, bits))
    columns = (
        *words("from", "procedure", "policy"),
        *numbers("size (B)", "threads", "calls", "time (ms)", "calls/s", "times one thread", "Mb/s"),
    )
    return Table("Threads", columns, tuple(rows))


def _counted(lines: pl.DataFrame) -> Table:
    """What clients counted, all calls of a size together; neighbouring sizes that are alike are one row, and what all
    workloads have in common has no column."""
    names = [*_COUNTED, *(name for name in _TROUBLE if lines[name].sum())]
    alike = ("semantics", "fragment", "window", "threads")
    shown = [name for name in _GROUP if name not in alike or lines[name].n_unique() > 1]
    sums = lines.group_by(*shown, "size").agg(pl.col(names).sum()).sort(*shown, "size")
    rows: list[tuple[str, ...]] = []
    alarms: set[int] = set()
    for group, part in sums.group_by(shown, maintain_order=True):
        totals = {size: tuple(found) for size, *found in part.select("size", *names).iter_rows()}
        for first, last, count, _ in size_ranges(list(totals.items())):
            if totals[first][_COUNTED.index("fragments_resent")]:
                alarms.add(len(rows))
            what = (value if isinstance(value, str) else whole(value) for value in group)
            rows.append((*what, size_text(first, last), whole(count), *map(whole, totals[first])))
    columns = (
        *(Column(_HEADS.get(name, name), "word" if lines[name].dtype == pl.String else "number") for name in shown),
        *numbers("sizes (B)", "sizes"),
        *numbers("fragments sent", "sent again", "facks received", "facks sent", "pings", "who are you"),
        *numbers(*(name.replace("_", " ") for name in names[len(_COUNTED) :])),
    )  # fmt: skip
    return Table(
        "Fragments and acknowledgements that clients counted, by size", columns, tuple(rows), frozenset(alarms)
    )


KIND: WorkloadReport = DceReport()
