# SPDX-License-Identifier: Apache-2.0
"""What the report of kamesawa98 shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sundial.papers.kamesawa98.results import Results, header_difference_us
from sundial.report import palette
from sundial.report.plotting import Drawing
from sundial.report.tables import DASH, Column, Table, decimal, numbers, whole, words
from sundial.reproduce.cells import Cell, of_table
from sundial.reproduce.figures import draw_rows, draw_table
from sundial.reproduce.page import (
    CAPTURE,
    SHARES,
    Page,
    Section,
    capture_links,
    report_link,
    shares,
    table_of_rows,
)
from sundial.reproduce.paper import Column as PaperColumn
from sundial.reproduce.paper import Table as Printed
from sundial.workloads.raw.report import LINES as RAW
from sundial.workloads.sunrpc.report import LINES as RPC

RATES_BPS = {1: 100_000_000, 2: 100_000_000, 3: 10_000_000, 4: 100_000_000}
RPC_TABLES = (3, 4)
COLUMN_COLOURS = {
    "linux-udp": RPC["udp"].paper,
    "sss-udp": RAW["udp"].paper,
    "sss-mbcf3": palette.SPARE[0],
    "sss-mbcf3-no-ack": palette.SPARE[2],
    "sss-mbcf3b": palette.SPARE[1],
    "write": palette.SPARE[0],
    "stream": palette.SPARE[0],
}
TRANSPORT_COLOURS = {
    "udp": RPC["udp"].paper,
    "tcp": RPC["tcp"].paper,
    "mbcf3": palette.SPARE[0],
    "mbcf3b": palette.SPARE[1],
    "mbcf1": palette.SPARE[2],
    "mbcf2": palette.SPARE[3],
    "mbcf12": palette.SPARE[4],
    "mbcf3a": palette.SPARE[5],
}


def make_page(results: Results, figures: Path) -> Page:
    """The page; its figures are drawn into the folder."""
    paper = results.paper
    return Page(
        name=paper.name,
        reference=f"{paper.authors}: {paper.title}. {paper.published}.",
        key_figures=_key_figures(results),
        sections=[_model(results), *_paper_sections(results), *_beyond(results)],
        drawings=_drawings(results, figures),
        files=("summary.csv", "faults.csv"),
    )


def _drawings(results: Results, folder: Path) -> dict[str, Drawing]:
    drawings = [draw_table(table, results.cells, COLUMN_COLOURS, folder) for table in results.paper.tables]
    drawings += [
        draw_rows(rows, TRANSPORT_COLOURS, stem, title, label, folder)
        for rows, stem, title, label in (
            (results.types, "types", "Round trip by transport and size", "argument size (bytes)"),
            (results.depths, "depth", "Calls a second by calls under way", "calls under way"),
            (results.clients, "clients", "Calls a second by clients", "clients"),
        )
    ]
    return {drawing.stem: drawing for drawing in drawings if drawing is not None}


def _model(results: Results) -> Section:
    paper, mips = results.paper, results.best.mips
    prose = (
        f"The paper measured on {paper.machines}. Here an instruction takes {decimal(1000 / float(mips), 0)} ns of "
        f"virtual time, whatever it does: {mips:f} million instructions a second. Of the speeds that virtual time can "
        "have this is the one that puts Linux, Sun RPC over UDP, nearest to the paper's SunOS over both wires (least "
        "squares of the logarithm of measured by printed, tables 3 and 4). It is used for all that follows; nothing "
        "else is fitted."
    )
    if results.quick:
        prose += " This is a quick reproduction: fewer calls, fewer points."
    remarks = (
        "Wire: every instant in which a frame is on it, preamble, padding, FCS, acknowledgements, and the gaps that "
        "the next frame had to wait for. All other time is software of the end that acts next, so its instructions are "
        "exact; what an end computes while a frame is on the wire is hidden there. Measured values are those of the "
        "median call. MBCF frames of the paper are not known; the differences put the RPC headers that it names "
        f"({paper.rpc_header_bytes.request} and {paper.rpc_header_bytes.reply} bytes) beside ours (44 and 28), and "
        "call the rest software."
    )
    return Section(
        "model", "The machine model", "The machine model", prose, table=_candidates(results), remarks=remarks
    )


def _paper_sections(results: Results) -> Iterator[Section]:
    for table in results.paper.tables:
        stem = f"table-{table.number}"
        yield Section(
            stem,
            f"Table {table.number}: {table.title}",
            f"Table {table.number}",
            figure=stem,
            table=_paper_table(results, table),
            parts=_parts_table(results, table),
            reasons=_reasons(results, table),
            remarks=_growth(results, table),
        )


def _beyond(results: Results) -> Iterator[Section]:
    """What the paper did not measure."""
    yield Section(
        "types",
        "Beyond the paper: all transports",
        "All transports",
        "The same call on a 100Base-TX hub through every transport that SSS-CORE has; mbcf1 to mbcf3b are the types of "
        "server of the paper's section 4.1, of which it measured mbcf3.",
        "types",
        table_of_rows(results.types, "Transport", "Size"),
    )
    yield Section(
        "depth",
        "Asynchronous calls",
        "Asynchronous",
        "64 bytes, with so many calls under way at the same time; each call has its result.",
        "depth",
        table_of_rows(results.depths, "Transport", "Under way"),
    )
    yield Section(
        "clients",
        "One server, several clients",
        "Clients",
        "64 bytes, on a full-duplex 100 Mbit/s switch; calls a second of all clients together.",
        "clients",
        table_of_rows(results.clients, "Transport", "Clients"),
    )
    yield Section(
        "faults",
        "Semantics under faults",
        "Semantics under faults",
        "What the client believes beside what the server has counted. Lost: calls that the client takes for done and "
        "that were never executed. Doubled: executions beyond one for each call. Exactly once must have neither; a "
        "call that fails is reported, and may have been executed.",
        table=_fault_table(results),
    )


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
    for size, column, printed, cell in of_table(table, results.cells):
        value = None if cell is None else cell.value
        rows.append(
            (
                whole(size),
                _system(column),
                decimal(printed, digits),
                DASH if cell is None else report_link(cell.run, decimal(value, digits)),
                decimal(value / printed, 3) if value is not None and printed else DASH,
                *(_difference(results, table, printed, cell) if timed else _use(cell)),
                DASH if cell is None else capture_links(cell.run, cell.captures),
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
        (whole(size), column.ours or column.system, *shares(cell))
        for size, column, _, cell in of_table(table, results.cells)
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


def _use(cell: Cell | None) -> tuple[str, str, str]:
    if cell is None or cell.value is None or not cell.most or cell.used is None:
        return DASH, DASH, DASH
    return decimal(cell.most, 2), f"{cell.value / cell.most:.1%}", f"{cell.used:.1%}"


def _reasons(results: Results, table: Printed) -> list[str]:
    """Each difference in words: what the wire takes of the printed and of the measured time, and what is left."""
    said = []
    for size, column, printed, cell in of_table(table, results.cells):
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


def _growth(results: Results, table: Printed) -> str:
    """What a byte costs in software, printed and measured, and why they differ; empty for a table of rates."""
    key = "write" if table.number not in RPC_TABLES else "sss-mbcf3"
    column = next((column for column in table.columns if column.key == key), None)
    if column is None or table.unit != "us":
        return ""
    known = [
        (size, printed, cell)
        for size, of, printed, cell in of_table(table, results.cells)
        if of.key == key and printed is not None and cell is not None and cell.parts is not None
    ]
    if len(known) < 2:
        return ""
    (least, low, first), (most, high, last) = known[0], known[-1]
    assert first.parts is not None
    assert last.parts is not None
    assert first.instructions is not None
    assert last.instructions is not None
    wire_ns = last.parts.wire_ns - first.parts.wire_ns
    software_ns = last.parts.software_ns - first.parts.software_ns
    printed_ns, size = (high - low) * 1e3 - wire_ns, most - least
    return (
        f"From {least} to {most} B, {column.ours or column.system}, software grows by {printed_ns / size:.0f} ns a "
        f"byte as printed and by {software_ns / size:.1f} ns as measured, which is "
        f"{(last.instructions - first.instructions) / size:.2f} instructions: 0.12 for each copy, as one of "
        "its instructions moves 8 bytes and takes as long as any other. Caches that miss, and memory and adapters that "
        "are slower than the processor, are not modelled: the machine model has one parameter. So ratios at large "
        "sizes say more about the wire than about software."
    )


def _halves(cell: Cell) -> str:
    assert cell.parts is not None
    assert cell.instruction_ns is not None
    times = (cell.parts.client_ns, cell.parts.server_ns)
    client, server = (round(ns / each) for ns, each in zip(times, cell.instruction_ns, strict=True))
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


def _fault_table(results: Results) -> Table:
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
            report_link(row.run, "run"),
            capture_links(row.run, row.captures),
        )
        for row in results.faults
    )
    broken = frozenset(
        number
        for number, row in enumerate(results.faults)
        if row.semantics == "exactly_once" and (row.lost or row.doubled)
    )
    return Table("", (*head, *words("Behind it"), CAPTURE), rows, broken)
