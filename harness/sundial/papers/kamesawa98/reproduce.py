# SPDX-License-Identifier: Apache-2.0
"""kamesawa98 as `sundial reproduce` sees it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from sundial.papers.kamesawa98 import experiments, results, tables
from sundial.papers.kamesawa98.paper import Kamesawa98
from sundial.papers.kamesawa98.results import RPC_TABLES, Results
from sundial.report import palette
from sundial.report.plotting import Drawing
from sundial.report.tables import decimal, whole
from sundial.reproduce.declared import Declared
from sundial.reproduce.figures import draw_rows, draw_table
from sundial.reproduce.page import table_of_rows
from sundial.workloads.raw.report import LINES as RAW
from sundial.workloads.sunrpc.report import LINES as RPC

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
    **dict(zip(("mbcf3", "mbcf3b", "mbcf1", "mbcf2", "mbcf12", "mbcf3a"), palette.SPARE, strict=False)),
}


def _drawings(results: Results, folder: Path) -> Iterator[Drawing | None]:
    for table in results.paper.tables:
        yield draw_table(table, results.cells, COLUMN_COLOURS, folder)
    for rows, stem, title, label in (
        (results.types, "types", "Round trip by transport and size", "argument size (bytes)"),
        (results.depths, "depth", "Calls a second by calls under way", "calls under way"),
        (results.clients, "clients", "Calls a second by clients", "clients"),
    ):
        yield draw_rows(rows, TRANSPORT_COLOURS, stem, title, label, folder)


def _key_figures(results: Results) -> Iterator[tuple[str, str, str]]:
    """What the paper argues with: the ratios, printed beside measured."""
    for number, wire in zip(RPC_TABLES, ("10Base-T", "100Base-TX"), strict=True):
        table = results.paper.table(number)
        (ours, linux), cells = (
            [table.printed(table.column(key), 0) for key in ("sss-mbcf3", "linux-udp")],
            [results.cells.get((number, key, 0)) for key in ("sss-mbcf3", "linux-udp")],
        )
        values = [cell.value for cell in cells if cell is not None and cell.value]
        if len(values) == 2 and ours and linux:
            printed = f"printed {decimal(ours / linux, 3)}"
            yield f"MBCF by UDP, 0 B, {wire}", decimal(values[0] / values[1], 3), printed
    null, write = results.cells.get((4, "sss-mbcf3", 0)), results.cells.get((1, "write", 4))
    for name, cell in (("string RPC of 0 B over MBCF", null), ("remote WRITE with ACK", write)):
        if cell is not None and cell.instructions is not None:
            yield name, whole(cell.instructions), "instructions, both ends"
    stream = results.cells.get((2, "stream", 1408))
    if stream is not None and stream.value and stream.most:
        yield "streaming WRITE, 1408 B", f"{stream.value / stream.most:.1%}", "of what the wire carries"


KIND = Declared(
    folder=Path(__file__).parent,
    model=Kamesawa98,
    experiments=experiments.perform,
    fields=lambda results: {"mips": f"{results.best.mips:f}"},
    facts=lambda results: [("machine", f"{results.best.mips:f} mips put Linux nearest to the paper's reference")],
    files={"summary.csv": results.summary_table, "faults.csv": results.faults_table},
    tables={
        "candidates": tables.candidates_table,
        **{f"table {number}": partial(tables.printed_table, number=number) for number in range(1, 5)},
        **{f"parts of {number}": partial(tables.parts_table, number=number) for number in range(1, 5)},
        "types": lambda results: table_of_rows(results.types, "Transport", "Size"),
        "depth": lambda results: table_of_rows(results.depths, "Transport", "Under way"),
        "clients": lambda results: table_of_rows(results.clients, "Transport", "Clients"),
        "faults": tables.faults_table,
    },
    drawings=_drawings,
    key_figures=_key_figures,
)
