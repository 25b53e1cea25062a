# SPDX-License-Identifier: Apache-2.0
"""What a guest wrote about its calls (`samples.jsonl`) as a table on the run's time axis."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sundial.errors import BadInput
from sundial.observe.rundir import Node

SAMPLE_COLUMNS: dict[str, type[pl.DataType]] = {
    "scenario": pl.String,
    "series": pl.Int32,
    "client": pl.String,
    "server": pl.String,
    "transport": pl.String,
    "app": pl.String,
    "procedure": pl.String,
    "size": pl.Int64,
    "thread": pl.Int32,
    "call": pl.Int64,
    "warmup": pl.Boolean,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "rtt_ns": pl.Int64,
    "xid": pl.Int64,
    "ok": pl.Boolean,
    "retransmits": pl.Int32,
    "error": pl.String,
    "client_address": pl.String,
    "server_address": pl.String,
    "client_port": pl.Int32,
    "server_port": pl.Int32,
    "batch": pl.Int64,
    "node_step": pl.Int32,
}
"""Columns of samples.parquet; times in ns since zero of the run.

Over MBCF `server_address` is the server's node, and the ports are the tasks."""

ROW = ("call", "start", "end", "ok", "retransmits", "xid", "error")
ALLOWED = "lines as in harness/schemas/README.md, Samples"


@dataclass(frozen=True)
class Samples:
    """One node's samples. `table`: one row a call; `batches`: the lines above them, by `batch` of the table;
    `records`: all other lines, in order.

    `truncated`: the last line is not complete, as after a guest that was killed; it is left out.
    """

    table: pl.DataFrame
    batches: tuple[dict[str, Any], ...]
    records: tuple[dict[str, Any], ...]
    truncated: bool


def read_samples(path: Path, *, scenario: str, client: Node, names: dict[str, str]) -> Samples:
    """Read one node's samples. `names` maps addresses to machine names.

    Raises BadInput, with the line, for what is not a sample; a cut last line is tolerated.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise BadInput("no such file", file=str(path), allowed=ALLOWED) from None
    except OSError as error:
        raise BadInput(str(error.strerror), file=str(path), allowed=ALLOWED) from None
    lines = data.split(b"\n")
    truncated = bool(lines.pop())
    parts: list[pl.DataFrame] = []
    batches: list[dict[str, Any]] = []
    records: list[dict[str, Any]] = []
    batch: dict[str, Any] | None = None
    rows: list[tuple[int, bytes]] = []

    def close() -> None:
        if batch is not None:
            parts.append(_batch(path, batch, rows, len(parts), client, names, scenario))
            batches.append(batch)
        rows.clear()

    for number, line in enumerate(lines, start=1):
        if line.startswith(b"["):
            if batch is None:
                raise BadInput("a row before any batch", file=str(path), line=number, allowed=ALLOWED)
            rows.append((number, line))
        elif line.strip():
            value = _json(path, number, line)
            if not isinstance(value, dict) or "type" not in value:
                raise BadInput("neither a row nor a record", file=str(path), line=number, allowed=ALLOWED)
            if value["type"] == "alive":
                continue  # it may come between two rows
            close()
            batch = {**value, "line": number} if value["type"] == "batch" else None
            if batch is None:
                records.append(_on_axis(value, client.zero_ns))
    close()
    empty = pl.DataFrame(schema=SAMPLE_COLUMNS)
    return Samples(pl.concat(parts) if parts else empty, tuple(batches), tuple(records), truncated)


def _on_axis(record: dict[str, Any], zero_ns: int) -> dict[str, Any]:
    """A record with its clock readings on the run's axis."""
    if record["type"] != "binding":
        return record
    return {**record, "start": record["start"] - zero_ns, "end": record["end"] - zero_ns}


def _json(path: Path, number: int, line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise BadInput(f"is not JSON: {error}", file=str(path), line=number, allowed=ALLOWED) from None


@dataclass(frozen=True)
class _Head:
    """What the line above a batch says, as far as the table has it."""

    columns: tuple[str, ...]
    server: str
    """Its address, or the number of its node."""
    by_address: bool
    client_port: int
    server_port: int
    """Or their tasks."""
    warmup: int
    constants: dict[str, Any]


def _head(batch: dict[str, Any]) -> _Head:
    """Raises KeyError, TypeError and ValueError for what is missing or of another form."""
    columns = tuple(batch.get("columns", ROW))
    if not set(ROW) <= set(columns):
        raise ValueError(f"columns {list(columns)} lack some of {list(ROW)}")
    by_address = "server_node" not in batch
    server, ends = ("server", "port") if by_address else ("server_node", "task")
    names = ("series", "transport", "app", "procedure", "size", "thread")
    return _Head(
        columns,
        str(batch[server]),
        by_address,
        batch[f"client_{ends}"],
        batch[f"server_{ends}"],
        int(batch.get("warmup", 0)),
        {name: batch[name] for name in names} | {"node_step": batch["step"]},
    )


def _batch(
    path: Path,
    batch: dict[str, Any],
    rows: list[tuple[int, bytes]],
    index: int,
    client: Node,
    names: dict[str, str],
    scenario: str,
) -> pl.DataFrame:
    """One batch as a table with SAMPLE_COLUMNS."""
    values = _rows(path, rows)
    try:
        head = _head(batch)
    except KeyError as error:
        raise BadInput(f"the batch has no {error}", file=str(path), line=batch["line"], allowed=ALLOWED) from None
    except (TypeError, ValueError) as error:
        raise _no_batch(path, batch, error) from None
    for (number, _), value in zip(rows, values, strict=True):
        if not isinstance(value, list) or len(value) != len(head.columns):
            raise BadInput(f"a row of {len(head.columns)} values", file=str(path), line=number, allowed=ALLOWED)
    try:
        table = _table(head, values)
        here = client.towards(head.server if head.by_address else None)
        constants = head.constants | {
            "scenario": scenario,
            "client": client.name,
            "server": names.get(head.server, head.server),
            "client_address": here.address if here else "",
            "server_address": head.server,
            "client_port": head.client_port,
            "server_port": head.server_port,
            "batch": index,
        }
        return table.with_columns(
            pl.col("start_ns") - client.zero_ns,
            pl.col("end_ns") - client.zero_ns,
            (pl.col("end_ns") - pl.col("start_ns")).alias("rtt_ns"),
            (pl.col("call") < head.warmup).alias("warmup"),
            *(pl.lit(value, dtype=SAMPLE_COLUMNS[name]).alias(name) for name, value in constants.items()),
        ).select(list(SAMPLE_COLUMNS))
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise _no_batch(path, batch, error) from None


def _no_batch(path: Path, batch: dict[str, Any], error: Exception) -> BadInput:
    return BadInput(f"not a batch: {error}", file=str(path), line=batch["line"], allowed=ALLOWED)


def _table(head: _Head, values: list[Any]) -> pl.DataFrame:
    """The rows as columns. Raises TypeError and polars' errors for values of another type."""
    given = {name: [value[place] for value in values] for place, name in enumerate(head.columns)}
    return pl.DataFrame(
        {
            "call": pl.Series(given["call"], dtype=pl.Int64),
            "start_ns": pl.Series(given["start"], dtype=pl.Int64),
            "end_ns": pl.Series(given["end"], dtype=pl.Int64),
            "xid": pl.Series(given["xid"], dtype=pl.Int64),
            "ok": pl.Series([bool(value) for value in given["ok"]], dtype=pl.Boolean),
            "retransmits": pl.Series(given["retransmits"], dtype=pl.Int32),
            "error": pl.Series(given["error"], dtype=pl.String),
        }
    )


def _rows(path: Path, rows: list[tuple[int, bytes]]) -> list[Any]:
    try:
        values: list[Any] = json.loads(b"[" + b",".join(line for _, line in rows) + b"]")
    except ValueError:
        values = []
    return values if len(values) == len(rows) else [_json(path, number, line) for number, line in rows]
