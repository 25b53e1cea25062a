# SPDX-License-Identifier: Apache-2.0
"""What a reproduction of kamesawa98 has measured, beside what the paper printed."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from sundial.papers.kamesawa98.paper import Kamesawa98
from sundial.reproduce.cells import SUMMARY, Cell, Row, of_table, summary_row
from sundial.reproduce.fit import Candidate

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
    best: Candidate
    tried: tuple[Candidate, ...]
    quick: bool
    cells: dict[tuple[int, str, int], Cell] = field(default_factory=dict)
    """By table, column and size."""
    types: list[Row] = field(default_factory=list)
    depths: list[Row] = field(default_factory=list)
    clients: list[Row] = field(default_factory=list)
    faults: list[FaultRow] = field(default_factory=list)

    def put(self, table: int, key: str, size: int, cell: Cell) -> None:
        self.cells[table, key, size] = cell


def header_difference_us(paper: Kamesawa98, rate_bps: int) -> float:
    """What our RPC headers take longer on the wire than the paper's, there and back."""
    ours = CALL_HEADER + REPLY_HEADER + 2 * STRING_LENGTH
    theirs = paper.rpc_header_bytes.request + paper.rpc_header_bytes.reply
    return (ours - theirs) * 8e6 / rate_bps


def summary_table(results: Results) -> pl.DataFrame:
    """summary.csv."""
    rows = []
    for table in results.paper.tables:
        for size, column, printed, cell in of_table(table, results.cells):
            name = column.ours or column.system
            rows.append(summary_row(f"table {table.number}", name, str(size), printed, cell))
    for title, listed in (("types", results.types), ("depth", results.depths), ("clients", results.clients)):
        rows += [summary_row(title, row.names[0], row.names[1], None, row.cell) for row in listed]
    return pl.DataFrame(rows, schema=SUMMARY, orient="row")


def faults_table(results: Results) -> pl.DataFrame:
    """faults.csv."""
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
