# SPDX-License-Identifier: Apache-2.0
"""A guest's record of its calls (`samples.jsonl`) as a table on the run's time axis."""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sundial import SAMPLES_LINE_BYTES
from sundial.errors import BadInput, GuestFault, Problem
from sundial.observe.rundir import Node
from sundial.printable import printable

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
COUNTERS = "counters"
"""Type of a line with a server's counters."""
ROWS_AT_A_TIME = 100_000
_BUFFER_BYTES = 1 << 16
_NATURAL = rb"(?:0|[1-9]\d{0,17})"
_PLAIN = re.compile(rb"(?:\[(?:N,){3}[01],(?:0|[1-9]\d{0,8}),(?:N|null),null\]\n)+".replace(b"N", _NATURAL))
"""Form of almost all rows: `ROW` in that order, of a call without error. They are read in bulk."""


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

    Raises GuestFault, with machine and line, for what is not a sample, and BadInput if there is no file. A cut last
    line is accepted.
    """
    reader = _Reader(_Source(path, client.name), scenario, client, names)
    truncated = False
    try:
        with io.BufferedReader(io.FileIO(path), _BUFFER_BYTES) as file:
            number = 0
            while True:
                plain = _PLAIN.match(file.peek())
                line = file.read(plain.end()) if plain else file.readline(SAMPLES_LINE_BYTES + 1)
                if not line:
                    break
                if plain or _PLAIN.fullmatch(line):  # what is behind its beginning was not read yet
                    number += reader.take_plain(number + 1, line)
                    continue
                number += 1
                if len(line) > SAMPLES_LINE_BYTES:
                    raise reader.source.fault(f"a line of more than {SAMPLES_LINE_BYTES} bytes", number)
                truncated = not line.endswith(b"\n")
                if not truncated:
                    reader.take(number, line[:-1])
    except FileNotFoundError:
        raise BadInput("does not exist", file=str(path), allowed=ALLOWED) from None
    except OSError as error:
        raise BadInput(str(error.strerror), file=str(path), allowed=ALLOWED) from None
    return reader.samples(truncated)


@dataclass(frozen=True)
class _Source:
    """Whose samples, and where."""

    path: Path
    machine: str

    def fault(self, what: str, line: int) -> GuestFault:
        # The run directory gets another name when the run is over.
        file = "/".join(self.path.parts[-3:])
        return GuestFault(str(Problem(what, ALLOWED, file, line)), machine=self.machine)

    def json(self, number: int, line: bytes) -> Any:
        try:
            return json.loads(line)
        except ValueError as error:
            raise self.fault(f"is not JSON: {error}", number) from None
        except RecursionError:
            raise self.fault(_TOO_DEEP, number) from None

    def record(self, number: int, line: bytes) -> Any:
        """With its words printable: they go into reports and messages."""
        try:
            return _shown(self.json(number, line))
        except RecursionError:
            raise self.fault(_TOO_DEEP, number) from None


_TOO_DEEP = "lists and objects are nested too deeply"


class _Reader:
    """Line by line: the batch that is open, and its rows that are not yet in a table."""

    def __init__(self, source: _Source, scenario: str, client: Node, names: dict[str, str]) -> None:
        self.source = source
        self._scenario = scenario
        self._client = client
        self._names = names
        self._parts: list[pl.DataFrame] = []
        self._batches: list[dict[str, Any]] = []
        self._records: list[dict[str, Any]] = []
        self._batch: dict[str, Any] | None = None
        self._rows: list[tuple[int, bytes]] = []
        """Of each some rows and the line of the first: plain ones, or one other without its end."""
        self._waiting = 0

    def take_plain(self, number: int, rows: bytes) -> int:
        """Rows as of `_PLAIN`; how many they are."""
        count = rows.count(b"\n")
        self._take_rows(number, rows, count)
        return count

    def take(self, number: int, line: bytes) -> None:
        if line.startswith(b"["):
            self._take_rows(number, line, 1)
        elif line.strip():
            self._take_record(number, self.source.record(number, line))

    def _take_rows(self, number: int, rows: bytes, count: int) -> None:
        if self._batch is None:
            raise self.source.fault("a row before any batch", number)
        self._rows.append((number, rows))
        self._waiting += count
        if self._waiting >= ROWS_AT_A_TIME:
            self._convert(self._batch)

    def samples(self, truncated: bool) -> Samples:
        self._close()
        empty = pl.DataFrame(schema=SAMPLE_COLUMNS)
        return Samples(pl.concat([empty, *self._parts]), tuple(self._batches), tuple(self._records), truncated)

    def _take_record(self, number: int, value: Any) -> None:
        if not isinstance(value, dict) or "type" not in value:
            raise self.source.fault("neither a row nor a record", number)
        if value["type"] == "alive":
            return  # it may come between two rows
        if value["type"] != COUNTERS:  # so may what a server on the client's machine counted
            self._close()
        if value["type"] == "batch":
            self._batch = {**value, "line": number}
            return
        try:
            self._records.append(_on_axis(value, self._client.zero_ns))
        except (KeyError, TypeError) as error:
            raise self.source.fault(f"not a record: {error!r}", number) from None

    def _close(self) -> None:
        if self._batch is not None:
            self._convert(self._batch)
            self._batches.append(self._batch)
        self._batch = None

    def _convert(self, batch: dict[str, Any]) -> None:
        table = _batch(self.source, batch, self._rows, len(self._batches), self._client, self._names, self._scenario)
        self._parts.append(table)
        self._rows.clear()
        self._waiting = 0


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_shown(item) for item in value]
    if isinstance(value, dict):
        return {printable(name): _shown(item) for name, item in value.items()}
    return value


def _on_axis(record: dict[str, Any], zero_ns: int) -> dict[str, Any]:
    """A record with its clock readings on the run's axis."""
    if record["type"] != "binding":
        return record
    return {**record, "start": record["start"] - zero_ns, "end": record["end"] - zero_ns}


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
    source: _Source,
    batch: dict[str, Any],
    rows: list[tuple[int, bytes]],
    index: int,
    client: Node,
    names: dict[str, str],
    scenario: str,
) -> pl.DataFrame:
    """One batch as a table with SAMPLE_COLUMNS."""
    usual = batch.get("columns", list(ROW)) == list(ROW)
    plain = bool(rows) and usual and all(text.endswith(b"\n") for _, text in rows)
    lines = [] if plain else _lines(rows)
    values = _rows(source, lines)
    try:
        head = _head(batch)
    except KeyError as error:
        raise source.fault(f"the batch has no {error}", batch["line"]) from None
    except (TypeError, ValueError, OverflowError) as error:
        raise source.fault(f"not a batch: {error}", batch["line"]) from None
    for (number, _), value in zip(lines, values, strict=True):
        if not isinstance(value, list) or len(value) != len(head.columns):
            raise source.fault(f"a row of {len(head.columns)} values", number)
    try:
        table = _plain_table([text for _, text in rows]) if plain else _table(head, values)
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
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        raise source.fault(f"not a batch: {error}", batch["line"]) from None


def _table(head: _Head, values: list[Any]) -> pl.DataFrame:
    """The rows as columns. Raises TypeError and polars' errors for values of another type."""
    given = {name: [value[place] for value in values] for place, name in enumerate(head.columns)}
    if not set(given["ok"]) <= {0, 1}:
        raise ValueError("ok is neither 0 nor 1")
    errors = [printable(value) if isinstance(value, str) else value for value in given["error"]]
    return pl.DataFrame(
        {
            "call": pl.Series(given["call"], dtype=pl.Int64),
            "start_ns": pl.Series(given["start"], dtype=pl.Int64),
            "end_ns": pl.Series(given["end"], dtype=pl.Int64),
            "xid": pl.Series(given["xid"], dtype=pl.Int64),
            "ok": pl.Series([bool(value) for value in given["ok"]], dtype=pl.Boolean),
            "retransmits": pl.Series(given["retransmits"], dtype=pl.Int32),
            "error": pl.Series(errors, dtype=pl.String),
        }
    )


def _plain_table(rows: list[bytes]) -> pl.DataFrame:
    """The same of rows as of `_PLAIN`."""
    given = pl.read_csv(
        io.BytesIO(b"".join(rows).translate(None, b"[]")),
        has_header=False,
        schema={**dict.fromkeys(ROW, pl.Int64), "error": pl.String},
        null_values="null",
    )
    return given.select(
        "call",
        pl.col("start").alias("start_ns"),
        pl.col("end").alias("end_ns"),
        "xid",
        pl.col("ok").cast(pl.Boolean),
        pl.col("retransmits").cast(pl.Int32),
        "error",
    )


def _lines(rows: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Each row with its line."""
    texts = ((first, text.removesuffix(b"\n").split(b"\n")) for first, text in rows)
    return [(first + place, line) for first, lines in texts for place, line in enumerate(lines)]


def _rows(source: _Source, rows: list[tuple[int, bytes]]) -> list[Any]:
    try:
        values: list[Any] = json.loads(b"[" + b",".join(line for _, line in rows) + b"]")
    except (ValueError, RecursionError):
        values = []
    return values if len(values) == len(rows) else [source.json(number, line) for number, line in rows]
