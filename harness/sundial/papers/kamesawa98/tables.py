# SPDX-License-Identifier: Apache-2.0
"""Tables of the page of kamesawa98: printed beside measured, and what the paper did not measure."""

from __future__ import annotations

from sundial.papers.kamesawa98.results import RPC_TABLES, Results
from sundial.report.tables import DASH, Column, Table, decimal, numbers, whole, words
from sundial.reproduce.cells import Cell
from sundial.reproduce.page import CAPTURE, SHARES, capture_links, report_link, shares


def candidates_table(results: Results) -> Table:
    """Every speed that was tried."""
    rows = tuple(
        (
            f"{tried.mips:f}" + (" (taken)" if tried is results.best else ""),
            decimal(tried.distance, 3),
            *(decimal(tried.measured.get((number, size)), 0) for size in (0, 1024) for number in RPC_TABLES),
        )
        for tried in results.tried
    )
    titles = ("Distance", "0 B, 10Base-T (us)", "0 B, 100Base-TX", "1024 B, 10Base-T", "1024 B, 100Base-TX")
    return Table("Machine models tried", (Column("mips", "word"), *numbers(*titles)), rows)


def printed_table(results: Results, number: int) -> Table:
    """Printed beside measured."""
    table = results.paper.table(number)
    timed = table.unit == "us"
    digits = 1 if timed else 2
    rows = tuple(
        (
            whole(size),
            column.system if column.ours is None else f"{column.system} / {column.ours}",
            decimal(printed, digits),
            *((DASH,) * 2 if cell is None else _measured(cell, printed, digits)),
            *(_difference(results, number, printed, cell) if timed else _use(cell)),
            DASH if cell is None else capture_links(cell.run, cell.captures),
        )
        for size, column, printed, cell in results.beside(number)
    )
    more = ("Difference", "of it headers", "of it software") if timed else ("Wire can carry", "of it", "Wire occupied")
    head = (*numbers("Size (B)"), *words("System"), *numbers(f"Printed ({table.unit})", "Measured", "Ratio", *more))
    return Table(table.title, (*head, CAPTURE), rows)


def _measured(cell: Cell, printed: float | None, digits: int) -> tuple[str, str]:
    value = cell.value
    return report_link(cell.run, decimal(value, digits)), decimal(value / printed, 3) if value and printed else DASH


def parts_table(results: Results, number: int) -> Table:
    """What the measured time is made of; no rows for a table of rates."""
    rows = tuple(
        (whole(size), column.here, *shares(cell))
        for size, column, _, cell in results.beside(number)
        if cell is not None and cell.parts is not None
    )
    return Table("What the measured time is made of", (*numbers("Size (B)"), *words("System"), *SHARES), rows)


def _difference(results: Results, number: int, printed: float | None, cell: Cell | None) -> tuple[str, str, str]:
    """Measured less printed: what the RPC headers make of it, and the rest, which is software."""
    if printed is None or cell is None or cell.value is None:
        return DASH, DASH, DASH
    difference, headers = cell.value - printed, results.headers_us(number)
    of_headers = _signed(headers) if number in RPC_TABLES else DASH
    return _signed(difference), of_headers, _signed(difference - headers)


def _use(cell: Cell | None) -> tuple[str, str, str]:
    if cell is None or cell.value is None or not cell.most or cell.used is None:
        return DASH, DASH, DASH
    return decimal(cell.most, 2), f"{cell.value / cell.most:.1%}", f"{cell.used:.1%}"


def _signed(value: float) -> str:
    return f"{value:+,.1f}".replace("-", "\u2212")


def faults_table(results: Results) -> Table:
    """The client's view beside the server's count; an alarm where exactly once was not."""
    head = (
        *words("Fault", "Semantics", "Over"),
        *numbers("Calls", "Done", "Reported as failed", "Sent again", "Executed", "Lost", "Doubled"),
        *words("Behind it"), CAPTURE,
    )  # fmt: skip
    rows = tuple(
        (
            row.fault, row.semantics.replace("_", " "), row.transport,
            *map(
                whole,
                (row.calls, row.ok, row.failed, row.retransmissions, row.executed, row.lost, row.doubled),
            ),
            report_link(row.run, "run"), capture_links(row.run, row.captures),
        )
        for row in results.faults
    )  # fmt: skip
    broken = (
        number
        for number, row in enumerate(results.faults)
        if row.semantics == "exactly_once" and (row.lost or row.doubled)
    )
    return Table("", head, rows, frozenset(broken))
