# SPDX-License-Identifier: Apache-2.0
"""Writes report.html and figures/ of a reproduction, in the style of run reports."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from sundial.report import palette
from sundial.report.plotting import Drawing
from sundial.report.tables import DASH, Column, Table, decimal, numbers, whole, words
from sundial.reproduce import figures
from sundial.reproduce.paper import Column as PaperColumn
from sundial.reproduce.paper import Table as Printed
from sundial.reproduce.results import Cell, Results, Row, header_difference_us
from sundial.reproduce.runs import RUNS

HERE = Path(__file__).parent
STYLE = HERE.parent / "report"
RATES_BPS = {1: 100_000_000, 2: 100_000_000, 3: 10_000_000, 4: 100_000_000}
RPC_TABLES = (3, 4)
CAPTURE = Column("Capture", "word")
SHARES = numbers("Wire (us)", "Client (us)", "Server (us)", "Instructions", "Frames", "Bytes on wire")


def write_page(folder: Path, results: Results, command: Sequence[str]) -> Path:
    """The page and its figures."""
    drawings = figures.draw_all(results, folder / "figures")
    path = folder / "report.html"
    path.write_text(_page(folder, results, drawings, command), encoding="utf-8")
    return path


def _page(folder: Path, results: Results, drawings: Mapping[str, Drawing], command: Sequence[str]) -> str:
    loader = FileSystemLoader([HERE, STYLE])
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    style = (STYLE / "style.css").read_text(encoding="utf-8")
    style = style.replace("LIGHT-COLOURS", palette.css_variables(dark=False))
    style = style.replace("DARK-COLOURS", palette.css_variables(dark=True))
    bad = [made for made in results.made if made.verdict != "pass"]
    return environment.get_template("page.html.j2").render(
        style=Markup(style),
        name=folder.name.removeprefix(".").removesuffix(".partial"),
        paper=results.paper,
        results=results,
        mips=f"{results.best.mips:f}",
        instruction_ns=decimal(1000 / float(results.best.mips), 0),
        good=not bad,
        bad=bad,
        calls=whole(sum(made.calls for made in results.made)),
        figures=_key_figures(results),
        candidates=_candidates(results),
        tables=[
            (table, _paper_table(results, table), _parts_table(results, table), _reasons(results, table))
            for table in results.paper.tables
        ],
        drawings=drawings,
        inline={stem: Markup(palette.themed(made.svg, stem, made.title)) for stem, made in drawings.items()},
        types=_rows(results.types, "Transport", "Size"),
        depths=_rows(results.depths, "Transport", "Under way"),
        clients=_rows(results.clients, "Transport", "Clients"),
        faults=_faults(results),
        runs=_runs(results),
        command=" ".join(shlex.quote(word) for word in command),
    )


def _report(run: str, text: str) -> Markup:
    """A link to the report of the run behind a number."""
    return Markup('<a href="{}">{}</a>').format(f"{RUNS}/{run}/report.html", text)


def _capture(run: str) -> Markup:
    return Markup('<a href="{}">pcapng</a>').format(f"{RUNS}/{run}/wire/lan.pcapng")


def _key_figures(results: Results) -> list[tuple[str, str, str]]:
    """What the paper argues with: the ratios, printed beside measured."""
    found = []
    for number in RPC_TABLES:
        table = results.paper.table(number)
        linux, ours = (
            next(column for column in table.columns if column.key == key) for key in ("linux-udp", "sss-mbcf3")
        )
        cells = [results.cells.get((number, column.key, 0)) for column in (ours, linux)]
        top, bottom = table.printed(ours, 0), table.printed(linux, 0)
        if all(cell is not None and cell.value for cell in cells) and top and bottom:
            ratio = cells[0].value / cells[1].value  # type: ignore[union-attr, operator]
            wire = "10Base-T" if number == 3 else "100Base-TX"
            found.append((f"MBCF by UDP, 0 B, {wire}", decimal(ratio, 3), f"printed {decimal(top / bottom, 3)}"))
    null, write = results.cells.get((4, "sss-mbcf3", 0)), results.cells.get((1, "write", 4))
    for name, cell in (("string RPC of 0 B over MBCF", null), ("remote WRITE with ACK", write)):
        if cell is not None and cell.instructions is not None:
            found.append((name, whole(cell.instructions), "instructions, both ends"))
    stream = results.cells.get((2, "stream", 1408))
    if stream is not None and stream.value and stream.most:
        found.append(("streaming WRITE, 1408 B", f"{stream.value / stream.most:.1%}", "of what the wire carries"))
    return found


def _candidates(results: Results) -> Table:
    rows = tuple(
        (
            f"{tried.mips:f}" + (" (taken)" if tried is results.best else ""),
            decimal(tried.distance, 3),
            *(decimal(tried.measured.get((number, 0)), 0) for number in RPC_TABLES),
            *(decimal(tried.measured.get((number, 1024)), 0) for number in RPC_TABLES),
        )
        for tried in results.tried
    )
    titles = ("Distance", "0 B, 10Base-T (us)", "0 B, 100Base-TX", "1024 B, 10Base-T", "1024 B, 100Base-TX")
    return Table("Machine models tried", (Column("mips", "word"), *numbers(*titles)), rows)


def _paper_table(results: Results, table: Printed) -> Table:
    """Printed beside measured."""
    timed = table.unit == "us"
    digits = 1 if timed else 2
    rows: list[tuple[str, ...]] = []
    for size, column, printed, cell in results.of_table(table):
        value = None if cell is None else cell.value
        rows.append(
            (
                whole(size),
                _system(column),
                decimal(printed, digits),
                DASH if cell is None else _report(cell.run, decimal(value, digits)),
                decimal(value / printed, 3) if value is not None and printed else DASH,
                *(_difference(results, table, printed, cell) if timed else _use(cell)),
                DASH if cell is None else _capture(cell.run),
            )
        )
    head = (*numbers("Size (B)"), *words("System"), *numbers(f"Printed ({table.unit})", "Measured", "Ratio"))
    if timed:
        return Table(
            table.title, (*head, *numbers("Difference", "of it headers", "of it software"), CAPTURE), tuple(rows)
        )
    return Table(table.title, (*head, *numbers("Wire can carry", "of it", "Wire occupied"), CAPTURE), tuple(rows))


def _parts_table(results: Results, table: Printed) -> Table:
    """What the measured time is made of; no rows for a table of rates."""
    rows = tuple(
        (whole(size), column.ours or column.system, *_shares(cell))
        for size, column, _, cell in results.of_table(table)
        if cell is not None and cell.parts is not None
    )
    return Table("What the measured time is made of", (*numbers("Size (B)"), *words("System"), *SHARES), rows)


def _system(column: PaperColumn) -> str:
    return column.system if column.ours is None else f"{column.system} / {column.ours}"


def _difference(results: Results, table: Printed, printed: float | None, cell: Cell | None) -> tuple[str, str, str]:
    """Measured less printed: what the RPC headers make of it, and the rest, which is software."""
    if printed is None or cell is None or cell.value is None:
        return DASH, DASH, DASH
    difference = cell.value - printed
    if table.number not in RPC_TABLES:
        return _signed(difference), DASH, _signed(difference)
    headers = header_difference_us(results.paper, RATES_BPS[table.number])
    return _signed(difference), _signed(headers), _signed(difference - headers)


def _shares(cell: Cell | None) -> tuple[str, ...]:
    if cell is None or cell.parts is None:
        return (DASH,) * 6
    parts = cell.parts
    times = (decimal(value / 1e3) for value in (parts.wire_ns, parts.client_ns, parts.server_ns))
    return (*times, whole(cell.instructions), whole(parts.frames), whole(parts.wire_bytes))


def _use(cell: Cell | None) -> tuple[str, str, str]:
    if cell is None or cell.value is None or not cell.most or cell.used is None:
        return DASH, DASH, DASH
    return decimal(cell.most, 2), f"{cell.value / cell.most:.1%}", f"{cell.used:.1%}"


def _reasons(results: Results, table: Printed) -> list[str]:
    """Each difference in words: what the wire takes of the printed and of the measured time, and what is left."""
    said = []
    for size, column, printed, cell in results.of_table(table):
        if printed is None or cell is None or cell.value is None:
            continue
        name = f"{size} B, {column.ours or column.system}"
        if table.unit != "us":
            said.append(_stream_reason(name, size, printed, cell))
        elif cell.parts is not None and cell.instructions is not None:
            headers = header_difference_us(results.paper, RATES_BPS[table.number]) if table.number in RPC_TABLES else 0
            wire = cell.parts.wire_ns / 1e3
            theirs = printed - wire + headers
            share = (
                f"{wire / cell.value:.0%} of the measured time and {(wire - headers) / printed:.0%} of the printed one"
            )
            said.append(
                f"{name}: {cell.parts.frames} frames, {cell.parts.wire_bytes} bytes with preamble and FCS, "
                f"take {wire:.1f} us, {share}. What is left is software: {theirs:.0f} us printed, "
                f"{cell.value - wire:.1f} us measured, which is {cell.instructions:,} instructions ({_halves(cell)})."
            )
    return said


def _halves(cell: Cell) -> str:
    assert cell.parts is not None
    assert cell.instruction_ns is not None
    client, server = (round(ns / cell.instruction_ns) for ns in (cell.parts.client_ns, cell.parts.server_ns))
    return f"client {client:,}, server {server:,}"


def _stream_reason(name: str, size: int, printed: float, cell: Cell) -> str:
    assert cell.value is not None
    most, used = cell.most or 0.0, cell.used or 0.0
    bound = "the wire" if used > 0.9 else "the sender's software"
    return (
        f"{name}: the wire can carry {most:.2f} MB/s of these of {size} + 62 bytes with preamble, FCS and gap; "
        f"{printed / most:.0%} of it was printed, {cell.value / most:.0%} is measured. It is occupied "
        f"{used:.0%} of the time, acknowledgements included: {bound} is the bound."
    )


def _signed(value: float) -> str:
    return f"{value:+,.1f}".replace("-", "\u2212")


def _rows(rows: Sequence[Row], first: str, second: str) -> Table:
    timed = any(row.cell.parts is not None for row in rows)
    body = []
    for row in rows:
        cell = row.cell
        rest = _shares(cell) if timed else (decimal(cell.rtt_us), whole(cell.calls))
        body.append(
            (row.names[0], whole(int(row.names[1])), _report(cell.run, decimal(cell.value)), *rest, _capture(cell.run))
        )
    more = SHARES if timed else numbers("Middle round trip (us)", "Calls")
    unit = rows[0].cell.unit if rows else "us"
    head = (Column(first, "word"), *numbers(second, f"Measured ({unit})"), *more, CAPTURE)
    return Table("", head, tuple(body))


def _faults(results: Results) -> Table:
    head = (
        *words("Fault", "Semantics", "Over"),
        *numbers("Calls", "Done", "Reported as failed", "Sent again", "Executed", "Lost", "Doubled"),
    )
    rows = tuple(
        (
            row.fault,
            row.semantics.replace("_", " "),
            row.transport,
            *(
                whole(value)
                for value in (row.calls, row.ok, row.failed, row.retransmissions, row.executed, row.lost, row.doubled)
            ),
            _report(row.run, "run"),
            _capture(row.run),
        )
        for row in results.faults
    )
    broken = frozenset(
        number
        for number, row in enumerate(results.faults)
        if row.semantics == "exactly_once" and (row.lost or row.doubled)
    )
    return Table("", (*head, *words("Behind it"), CAPTURE), rows, broken)


def _runs(results: Results) -> Table:
    rows = tuple(
        (
            _report(made.name, made.name),
            made.about,
            made.verdict,
            whole(made.calls),
            whole(made.mismatches),
            str(escape(made.said)),
        )
        for made in results.made
    )
    bad = frozenset(number for number, made in enumerate(results.made) if made.verdict != "pass")
    head = (
        *words("Run"),
        Column("What", "prose"),
        *words("Verdict"),
        *numbers("Calls", "Mismatches"),
        Column("", "prose"),
    )
    return Table("All runs", head, rows, bad)
