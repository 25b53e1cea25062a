# SPDX-License-Identifier: Apache-2.0
"""What a reproduction has measured, beside what the paper printed. Pure data and arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from sundial.reproduce.fit import Candidate
from sundial.reproduce.paper import Column, Paper, Table
from sundial.reproduce.shares import Share

if TYPE_CHECKING:
    from sundial.reproduce.measure import Measured, RoundTrip, Stream
    from sundial.reproduce.runs import Made

CALL_HEADER, REPLY_HEADER, STRING_LENGTH = 40, 24, 4
"""Bytes of our RPC messages without data: AUTH_NONE call and accepted reply (RFC 5531), the length word of a string."""


@dataclass(frozen=True)
class Cell:
    """One measured value, and what it is made of."""

    value: float | None
    unit: str
    run: str
    """The run directory below runs/."""
    calls: int = 0
    parts: Share | None = None
    """Of the call in the middle."""
    instruction_ns: float | None = None
    rtt_us: float | None = None
    """Of a rate: the middle round trip."""
    used: float | None = None
    """Of a stream: share of the time in which the wire was occupied."""
    most: float | None = None
    """Of a stream: what the wire carries with these headers."""

    @property
    def instructions(self) -> int | None:
        """Of both ends, without what the wire hides."""
        if self.parts is None or not self.instruction_ns:
            return None
        return round(self.parts.software_ns / self.instruction_ns)


@dataclass(frozen=True)
class Row:
    """A measured value beyond the paper: what it is of, and the value."""

    names: tuple[str, ...]
    cell: Cell


@dataclass(frozen=True)
class FaultRow:
    """Calls under a fault: the client's view against the server's counter."""

    semantics: str
    transport: str
    fault: str
    calls: int
    ok: int
    retransmissions: int
    executed: int | None
    """By the server's own count; None where it told nothing."""
    run: str

    @property
    def failed(self) -> int:
        return self.calls - self.ok

    @property
    def lost(self) -> int | None:
        """Calls that the client holds for done and that no server has executed."""
        return None if self.executed is None else max(0, self.ok - self.executed)

    @property
    def doubled(self) -> int | None:
        """Executions beyond one for each call."""
        return None if self.executed is None else max(0, self.executed - self.calls)


@dataclass
class Results:
    """Everything of one reproduction."""

    paper: Paper
    best: Candidate
    tried: tuple[Candidate, ...]
    quick: bool
    seed: int
    cells: dict[tuple[int, str, int], Cell] = field(default_factory=dict)
    """By table, column and size."""
    types: list[Row] = field(default_factory=list)
    depths: list[Row] = field(default_factory=list)
    clients: list[Row] = field(default_factory=list)
    faults: list[FaultRow] = field(default_factory=list)
    made: tuple[Made, ...] = ()

    def put(self, table: int, key: str, size: int, cell: Cell) -> None:
        self.cells[table, key, size] = cell

    def of_table(self, table: Table) -> Iterator[tuple[int, Column, float | None, Cell | None]]:
        """Size, column, what was printed, what was measured: by size, then by column."""
        for size in table.sizes:
            for column in table.columns:
                yield size, column, table.printed(column, size), self.cells.get((table.number, column.key, size))


def cell_of_round_trip(trip: RoundTrip, run: Measured) -> Cell:
    return Cell(trip.median_us, "us", run.folder.name, trip.calls, trip.parts, trip.instruction_ns)


def cell_of_stream(stream: Stream, run: Measured) -> Cell:
    return Cell(
        stream.megabytes_per_s,
        "MB/s",
        run.folder.name,
        stream.operations,
        used=stream.used,
        most=stream.most_megabytes_per_s,
    )


def header_difference_us(paper: Paper, rate_bps: int) -> float:
    """What our RPC headers take longer on the wire than the paper's, there and back."""
    ours = CALL_HEADER + REPLY_HEADER + 2 * STRING_LENGTH
    theirs = paper.rpc_header_bytes.request + paper.rpc_header_bytes.reply
    return (ours - theirs) * 8e6 / rate_bps


def table_of(results: Results) -> pl.DataFrame:
    """The rows of summary.csv."""
    rows = []
    for table in results.paper.tables:
        for size, column, printed, cell in results.of_table(table):
            name = column.ours or column.system
            rows.append(_row(f"table {table.number}", name, str(size), printed, cell))
    for title, listed in (("types", results.types), ("depth", results.depths), ("clients", results.clients)):
        rows += [_row(title, row.names[0], row.names[1], None, row.cell) for row in listed]
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


_SCHEMA = {
    "experiment": pl.String, "system": pl.String, "of": pl.String, "unit": pl.String, "printed": pl.Float64,
    "measured": pl.Float64, "ratio": pl.Float64, "calls": pl.Int64, "wire_us": pl.Float64, "client_us": pl.Float64,
    "server_us": pl.Float64, "instructions": pl.Int64, "frames": pl.Int64, "wire_bytes": pl.Int64,
    "wire_used": pl.Float64, "run": pl.String,
}  # fmt: skip


def _row(experiment: str, system: str, of: str, printed: float | None, cell: Cell | None) -> tuple[object, ...]:
    if cell is None:
        return (experiment, system, of, None, printed, *[None] * 11)
    parts = cell.parts
    ratio = cell.value / printed if cell.value is not None and printed else None
    times = (parts.wire_ns / 1e3, parts.client_ns / 1e3, parts.server_ns / 1e3) if parts else (None, None, None)
    frames = (parts.frames, parts.wire_bytes) if parts else (None, None)
    return (
        experiment, system, of, cell.unit, printed, cell.value, ratio, cell.calls, *times, cell.instructions, *frames,
        cell.used, cell.run,
    )  # fmt: skip


def faults_table(results: Results) -> pl.DataFrame:
    """The rows of faults.csv."""
    names = (
        "semantics",
        "transport",
        "fault",
        "calls",
        "ok",
        "failed",
        "retransmissions",
        "executed",
        "lost",
        "doubled",
        "run",
    )
    rows = [tuple(getattr(row, name) for name in names) for row in results.faults]
    kinds = {name: pl.String if name in ("semantics", "transport", "fault", "run") else pl.Int64 for name in names}
    return pl.DataFrame(rows, schema=kinds, orient="row")
