# SPDX-License-Identifier: Apache-2.0
"""bilas97 as `sundial reproduce` sees it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from sundial.papers.bilas97 import experiments, results, tables
from sundial.papers.bilas97.paper import Bilas97
from sundial.papers.bilas97.results import Results
from sundial.papers.bilas97.statements import STATEMENTS
from sundial.report import palette
from sundial.report.plotting import Drawing
from sundial.report.tables import decimal, numbers, whole, words
from sundial.reproduce.cells import Row
from sundial.reproduce.declared import Declared
from sundial.reproduce.figures import draw_rows


def _drawings(results: Results, folder: Path) -> Iterator[Drawing | None]:
    yield _by_size(results.sizes, "sizes", "Round trip by size", folder)
    yield _by_size(results.streams, "streams", "Bandwidth by size", folder)


def _by_size(rows: Sequence[Row], stem: str, title: str, folder: Path) -> Drawing | None:
    """With short names."""
    named = [Row((tables.SHORT.get(row.names[0], row.names[0]), row.names[1]), row.cell) for row in rows]
    named.sort(key=lambda row: int(row.names[1]))
    colours = dict(zip(dict.fromkeys(row.names[0] for row in named), palette.SPARE, strict=False))
    return draw_rows(named, colours, stem, title, "data size (bytes)", folder)


def _key_figures(results: Results) -> Iterator[tuple[str, str, str]]:
    null = results.paper.null_us
    for system, name, printed in (("shrimprpc", "ShrimpRPC", null.shrimprpc), ("vrpc", "vRPC", null.vrpc)):
        cell = results.null.get(system)
        if cell is not None and cell.value is not None:
            yield f"null call, {name}", f"{decimal(cell.value, 2)} us", f"printed {printed:g} us"
        if cell is not None and cell.instructions is not None:
            yield f"software of it, {name}", whole(cell.instructions), "instructions of both ends"


KIND = Declared(
    folder=Path(__file__).parent,
    model=Bilas97,
    experiments=experiments.perform,
    fields=lambda results: {"mips": f"{results.mips.normalize():f}"},
    files={
        "summary.csv": results.summary_table,
        "steps.csv": results.steps_table,
        "packets.csv": results.packets_table,
    },
    tables={
        "null": tables.null_table,
        "sizes": lambda results: tables.grid_table(results.sizes, "Round trips (us)", "Size (B)", 1),
        "parts of sizes": tables.sizes_table,
        "streams": lambda results: tables.grid_table(results.streams, "MB/s", "Size (B)", 2),
        "latencies": lambda results: tables.rows_table(results.latencies, "", *numbers("Word latency (ns)")),
        "waits": lambda results: tables.rows_table(results.waits, "", *words("Wait")),
        "steps": tables.traced_table,
        "steps by packets": tables.steps_table,
        "packets": tables.packets_table,
    },
    drawings=_drawings,
    key_figures=_key_figures,
    statements=STATEMENTS,
)
