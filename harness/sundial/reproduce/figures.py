# SPDX-License-Identifier: Apache-2.0
"""Figures of a reproduction: each table of the paper, printed (hollow, dashed) and measured (full)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from sundial.report import palette, plotting
from sundial.report.plotting import Drawing, EndLabel
from sundial.reproduce.paper import Table
from sundial.reproduce.results import Results, Row

HEIGHT_IN = 4.1
COLOURS = {
    "linux-udp": palette.SERIES["rpc", "udp"],
    "sss-udp": palette.SERIES["raw", "udp"],
    "sss-mbcf3": palette.SPARE[0],
    "sss-mbcf3-no-ack": palette.SPARE[2],
    "sss-mbcf3b": palette.SPARE[1],
    "write": palette.SPARE[0],
    "stream": palette.SPARE[0],
}
OF_TRANSPORT = {
    "udp": palette.SERIES["rpc", "udp"],
    "tcp": palette.SERIES["rpc", "tcp"],
    "mbcf3": palette.SPARE[0],
    "mbcf3b": palette.SPARE[1],
    "mbcf1": palette.SPARE[2],
    "mbcf2": palette.SPARE[3],
    "mbcf12": palette.SPARE[4],
    "mbcf3a": palette.SPARE[5],
}


def draw_all(results: Results, folder: Path) -> dict[str, Drawing]:
    """Every figure there are values for, by its stem."""
    folder.mkdir(exist_ok=True)
    drawings = [_table(results, table, folder) for table in results.paper.tables]
    drawings += [
        _rows(results.types, "types", "Round trip by transport and size", "argument size (bytes)", folder),
        _rows(results.depths, "depth", "Calls a second by calls under way", "calls under way", folder),
        _rows(results.clients, "clients", "Calls a second by clients", "clients", folder),
    ]
    return {drawing.stem: drawing for drawing in drawings if drawing is not None}


def _table(results: Results, table: Table, folder: Path) -> Drawing | None:
    lines = list(_lines(results, table))
    values = [value for _, _, points in lines for _, value in points]
    if not values:
        return None

    def paint(figure: Figure) -> None:
        place = plotting.margins(figure, HEIGHT_IN, left=0.72, right=1.9, top=0.3, bottom=0.52)
        axis = figure.subplots(1, 1, gridspec_kw=place)
        labels = []
        for name, colour, points in lines:
            printed = name.endswith("printed")
            axis.plot(
                *zip(*points, strict=True),
                color=colour,
                marker="o",
                markersize=4.5,
                linestyle="--" if printed else "-",
                markerfacecolor=palette.PAPER if printed else colour,
            )
            labels.append(EndLabel(points[-1][1], name, colour))
        plotting.value_axis(axis, table.unit, min(values), max(values), log=False)
        _x_axis(axis, table.sizes, "data size (bytes)")
        plotting.end_labels(axis, labels)

    title = f"Table {table.number}: {table.title}"
    caption = f"{title}. Dashed with hollow marks: printed. Full: measured."
    return plotting.draw(f"table-{table.number}", title, caption, folder, HEIGHT_IN, paint)


def _lines(results: Results, table: Table) -> Iterator[tuple[str, str, list[tuple[int, float]]]]:
    for column in table.columns:
        printed = [(size, value) for size in table.sizes if (value := table.printed(column, size)) is not None]
        measured = [
            (size, cell.value)
            for size in table.sizes
            if (cell := results.cells.get((table.number, column.key, size))) is not None and cell.value is not None
        ]
        colour = COLOURS.get(column.key, palette.INK)
        if printed:
            yield f"{column.system}, printed", colour, printed
        if measured:
            yield column.ours or column.system, colour, measured


def _rows(rows: Sequence[Row], stem: str, title: str, label: str, folder: Path) -> Drawing | None:
    by_transport: dict[str, list[tuple[int, float]]] = {}
    for row in rows:
        if row.cell.value is not None:
            by_transport.setdefault(row.names[0], []).append((int(row.names[1]), row.cell.value))
    values = [value for points in by_transport.values() for _, value in points]
    if not values:
        return None
    unit = rows[0].cell.unit

    def paint(figure: Figure) -> None:
        place = plotting.margins(figure, HEIGHT_IN, left=0.82, right=1.1, top=0.3, bottom=0.52)
        axis = figure.subplots(1, 1, gridspec_kw=place)
        labels = []
        for transport, points in by_transport.items():
            colour = OF_TRANSPORT.get(transport, palette.INK)
            axis.plot(*zip(*points, strict=True), color=colour, marker="o", markersize=4)
            labels.append(EndLabel(points[-1][1], transport, colour))
        plotting.value_axis(axis, unit, min(values), max(values), log=max(values) > 20 * min(values))
        _x_axis(axis, sorted({x for points in by_transport.values() for x, _ in points}), label)
        plotting.end_labels(axis, labels)

    return plotting.draw(stem, title, f"{title}.", folder, HEIGHT_IN, paint)


def _x_axis(axis: Axes, values: Sequence[int], label: str) -> None:
    """Ticks at the values themselves, spaced by their ratios."""
    plotting.size_axis(axis, values, log=len(values) > 3, label=False)
    close = [later for earlier, later in pairwise(values) if later < 1.5 * earlier]
    axis.xaxis.set_major_locator(FixedLocator([value for value in values if value not in close]))
    axis.set_xlabel(label)
