# SPDX-License-Identifier: Apache-2.0
"""What a reproduction of kamesawa98 has measured, beside what the paper printed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

from sundial.papers.kamesawa98.paper import Kamesawa98
from sundial.reproduce.cells import SUMMARY, Beside, Cell, Row, of_table, summary_row
from sundial.reproduce.fit import Candidate

RPC_TABLES = {3: 10_000_000, 4: 100_000_000}
"""Rates of their wires, bit/s."""
CALL_HEADER, REPLY_HEADER, STRING_LENGTH = 40, 24, 4
"""Bytes of our RPC messages without data: AUTH_NONE call and accepted reply (RFC 5531), the length word of a string."""


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
    """By the server's own count; None where it reported none."""
    run: str
    captures: tuple[str, ...] = ()
    """Below the run directory."""

    @property
    def failed(self) -> int:
        return self.calls - self.ok

    @property
    def lost(self) -> int | None:
        """Calls that the client takes for done and that no server has executed."""
        return None if self.executed is None else max(0, self.ok - self.executed)

    @property
    def doubled(self) -> int | None:
        """Executions beyond one for each call."""
        return None if self.executed is None else max(0, self.executed - self.calls)


@dataclass
class Results:
    """Everything of one reproduction."""

    paper: Kamesawa98
    scale: str
    best: Candidate
    tried: tuple[Candidate, ...]
    cells: dict[tuple[int, str, int], Cell] = field(default_factory=dict)
    """By table, column and size."""
    types: list[Row] = field(default_factory=list)
    depths: list[Row] = field(default_factory=list)
    clients: list[Row] = field(default_factory=list)
    faults: list[FaultRow] = field(default_factory=list)

    def put(self, table: int, key: str, size: int, cell: Cell) -> None:
        self.cells[table, key, size] = cell

    def beside(self, number: int) -> Iterator[Beside]:
        """A table of the paper, with what was measured."""
        return of_table(self.paper.table(number), self.cells)

    def ends(self, number: int, key: str) -> list[tuple[tuple[int, float, Cell], tuple[int, float, Cell]]]:
        """Size, printed and measured value of a column at its least and greatest size; empty for fewer than two."""
        known = [
            (size, printed, cell)
            for size, column, printed, cell in self.beside(number)
            if column.key == key and printed is not None and cell is not None and cell.parts is not None
        ]
        return [(known[0], known[-1])] if len(known) > 1 else []

    def headers_us(self, number: int) -> float:
        """What our RPC headers take longer on the wire of a table than the paper's, there and back."""
        if number not in RPC_TABLES:
            return 0
        ours = CALL_HEADER + REPLY_HEADER + 2 * STRING_LENGTH
        theirs = self.paper.rpc_header_bytes.request + self.paper.rpc_header_bytes.reply
        return (ours - theirs) * 8e6 / RPC_TABLES[number]


def summary_table(results: Results) -> pl.DataFrame:
    """summary.csv."""
    rows = []
    for table in results.paper.tables:
        for size, column, printed, cell in results.beside(table.number):
            rows.append(summary_row(f"table {table.number}", column.here, str(size), printed, cell))
    for title, listed in (("types", results.types), ("depth", results.depths), ("clients", results.clients)):
        rows += [summary_row(title, row.names[0], row.names[1], None, row.cell) for row in listed]
    return pl.DataFrame(rows, schema=SUMMARY, orient="row")


def faults_table(results: Results) -> pl.DataFrame:
    """faults.csv."""
    words = ("semantics", "transport", "fault", "run")
    counts = ("calls", "ok", "failed", "retransmissions", "executed", "lost", "doubled")
    kinds = {**dict.fromkeys(words[:3], pl.String), **dict.fromkeys(counts, pl.Int64), "run": pl.String}
    rows = [tuple(getattr(row, name) for name in kinds) for row in results.faults]
    return pl.DataFrame(rows, schema=kinds, orient="row")
