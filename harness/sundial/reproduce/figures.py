# SPDX-License-Identifier: Apache-2.0
"""Figures that reproductions share: a printed table against what was measured, and values by two names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from sundial.report import palette, plotting
from sundial.report.plotting import Drawing, EndLabel
from sundial.reproduce.cells import Cells, Row
from sundial.reproduce.paper import Table

HEIGHT_IN = 4.1
Points = Mapping[int, float]
_Line = tuple[str, str, list[tuple[int, float]]]
"""Label, colour, points."""


def one_axis(figure: Figure, *, left: float = 0.72, right: float = 0.2, top: float = 0.62) -> Axes:
    """The only axis of a figure; margins in inches."""
    axis: Axes = figure.subplots(
        1, 1, gridspec_kw=plotting.margins(figure, left=left, right=right, top=top, bottom=0.52)
    )
    return axis


def legend_above(figure: Figure, columns: int, *, narrow: int = 1, left: float = 0.04) -> None:
    """What the first axis shows, in at most so many columns."""
    handles, names = figure.axes[0].get_legend_handles_labels()
    columns = narrow if plotting.is_narrow(figure) else min(columns, len(names))
    figure.legend(handles, names, ncols=columns, fontsize=8, loc="upper left", bbox_to_anchor=(left, 1.0))


def xy(points: Points) -> tuple[list[int], list[float]]:
    """In the order of x."""
    return sorted(points), [points[each] for each in sorted(points)]


def plot_printed(axis: Axes, points: Points, label: str) -> None:
    """What a paper printed: hollow, dashed."""
    axis.plot(*xy(points), color=palette.MUTED, linestyle="--", marker="o", markersize=4.5,
              markerfacecolor=palette.PAPER, linewidth=1.0, label=label)  # fmt: skip


def draw_table(table: Table, cells: Cells, colours: Mapping[str, str], folder: Path) -> Drawing | None:
    """A table of the paper: printed (hollow, dashed) and measured (full), a colour for each column's key."""
    lines = list(_lines(table, cells, colours))
    values = [value for _, _, points in lines for _, value in points]
    if not values:
        return None

    def paint(figure: Figure) -> None:
        axis = one_axis(figure, right=1.9, top=0.3)
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


def _lines(table: Table, cells: Cells, colours: Mapping[str, str]) -> Iterator[_Line]:
    for column in table.columns:
        printed = [(size, value) for size in table.sizes if (value := table.printed(column, size)) is not None]
        measured = [
            (size, cell.value)
            for size in table.sizes
            if (cell := cells.get((table.number, column.key, size))) is not None and cell.value is not None
        ]
        colour = colours.get(column.key, palette.INK)
        if printed:
            yield f"{column.system}, printed", colour, printed
        if measured:
            yield column.here, colour, measured


def draw_rows(
    rows: Sequence[Row], colours: Mapping[str, str], stem: str, title: str, label: str, folder: Path
) -> Drawing | None:
    """Values over the second of their names, a line for each first name."""
    by_name: dict[str, list[tuple[int, float]]] = {}
    for row in rows:
        if row.cell.value is not None:
            by_name.setdefault(row.names[0], []).append((int(row.names[1]), row.cell.value))
    values = [value for points in by_name.values() for _, value in points]
    if not values:
        return None
    unit = rows[0].cell.unit

    def paint(figure: Figure) -> None:
        axis = one_axis(figure, left=0.82, right=1.1, top=0.3)
        labels = []
        for name, points in by_name.items():
            colour = colours.get(name, palette.INK)
            axis.plot(*zip(*points, strict=True), color=colour, marker="o", markersize=4)
            labels.append(EndLabel(points[-1][1], name, colour))
        plotting.value_axis(axis, unit, min(values), max(values), log=max(values) > 20 * min(values))
        _x_axis(axis, sorted({x for points in by_name.values() for x, _ in points}), label)
        plotting.end_labels(axis, labels)

    return plotting.draw(stem, title, f"{title}.", folder, HEIGHT_IN, paint)


def _x_axis(axis: Axes, values: Sequence[int], label: str) -> None:
    """Ticks at the values themselves, spaced by their ratios."""
    plotting.size_axis(axis, values, log=len(values) > 3, label=False)
    close = [later for earlier, later in pairwise(values) if later < 1.5 * earlier]
    axis.xaxis.set_major_locator(FixedLocator([value for value in values if value not in close]))
    axis.set_xlabel(label)
