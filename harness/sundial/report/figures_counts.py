# SPDX-License-Identifier: Apache-2.0
"""Packets and cells of calls over the argument size."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import polars as pl

from sundial.expect.atm import CELL_PAYLOAD
from sundial.report import painting, palette, plotting, registry
from sundial.report.figures import MARKED_SIZES, PacketLine, of_curve
from sundial.report.plotting import Drawing
from sundial.report.workload import BOTH_DIRECTIONS, Curve, Look

DIRECTIONS = ("request", "reply")


def packets(
    seen: pl.DataFrame, lines: Mapping[tuple[Curve, str], PacketLine], looks: Mapping[Curve, Look], caption: str,
    folder: Path, unit: Literal["packets", "cells"] = "packets", *, log_x: bool,
) -> Drawing | None:  # fmt: skip
    """Packets or cells a call over size: expected as a line, seen as points; request left, reply right, a row a curve.

    `seen`: app, transport, procedure, size, direction (request, reply), `unit`, calls, wrong (calls that differ).
    """
    present = [curve for curve in looks if not of_curve(seen, curve).is_empty() or (curve, "request") in lines]
    if not present:
        return None
    height = 0.75 + 1.5 * len(present)
    sizes = sorted({*seen["size"].to_list(), *(size for line in lines.values() for size in line.sizes)})
    counts = [*seen[unit].to_list(), *(most for line in lines.values() for most in line.most)]

    def paint(figure: painting.Figure) -> None:
        place = plotting.margins(figure, left=0.5, right=0.15, top=0.32, bottom=0.52)
        columns = 1 if plotting.is_narrow(figure) else 2
        grid = figure.subplots(
            2 * len(present) // columns,
            columns,
            sharex=True,
            sharey=True,
            squeeze=False,
            gridspec_kw={"hspace": 0.42, "wspace": 0.07, **place},
        )
        # All share both axes: what is set on one of them holds for all.
        grid.flat[0].set_ylim(0, max(counts, default=1) * 1.12 + 0.3)
        grid.flat[0].yaxis.set_major_locator(painting.MaxNLocator(4, integer=True))
        step = 1480 if max(sizes) >= 2 * 1480 else None
        plotting.size_axis(grid.flat[0], sizes, step=step, label=False, log=log_x)
        for row, curve in enumerate(present):
            for column, direction in enumerate(DIRECTIONS):
                axis = grid.flat[2 * row + column]
                _packet_panel(axis, of_curve(seen, curve).filter(pl.col("direction") == direction),
                              lines.get((curve, direction)), looks[curve], unit)  # fmt: skip
                plotting.panel_title(axis, f"{looks[curve].label}: {direction}")
                if 2 * row + column >= 2 * len(present) - columns:
                    axis.set_xlabel(plotting.SIZE)
                if column % columns == 0:
                    axis.set_ylabel(unit)

    title, narrow = f"{unit.capitalize()} per call over size", 0.75 + 3.0 * len(present)
    said = "; ".join(_packets_seen(of_curve(seen, curve), looks[curve], unit) for curve in present)
    return plotting.draw(unit, title, caption, folder, height, paint, seen=said, narrow_height_in=narrow)


def _packets_seen(table: pl.DataFrame, look: Look, unit: str) -> str:
    """A curve of `packets` in words."""
    if table.is_empty():
        return f"{look.label}: none observed"
    wrong = table.filter(pl.col("wrong") > 0)["size"].n_unique()
    fewest, most = plotting.least(table[unit]), plotting.greatest(table[unit])
    said = f"{look.label}: {fewest:.0f} to {most:.0f} {unit} a direction"
    return said + (f", not as expected at {wrong} sizes" if wrong else ", as expected at every size")


def _packet_panel(axis: painting.Axes, seen: pl.DataFrame, line: PacketLine | None, look: Look, unit: str) -> None:
    if line:
        axis.step(line.sizes, line.most, where="post", color=palette.WIRE, linewidth=1.0)
        if line.fewest != line.most:
            axis.fill_between(
                line.sizes, line.fewest, line.most, step="post", color=palette.WIRE, alpha=0.25, linewidth=0
            )
    right = seen.filter(pl.col("wrong") == 0)
    wrong = seen.filter(pl.col("wrong") > 0)
    size = 3.6 if seen["size"].n_unique() <= MARKED_SIZES else 1.9
    axis.plot(right["size"], right[unit], look.marker, color=look.colour, markersize=size, markeredgewidth=0)
    ring: dict[str, Any] = {"markersize": 7, "markerfacecolor": "none", "markeredgewidth": 1.6}
    axis.plot(wrong["size"], wrong[unit], "o", color=palette.ALARM, **ring)


def saw(
    seen: pl.DataFrame, lines: Mapping[tuple[Curve, str], PacketLine], looks: Mapping[Curve, Look], caption: str,
    folder: Path, *, log_x: bool,
) -> Drawing | None:  # fmt: skip
    """Cells of a direction less N/48 of the argument alone: expected as a line, seen as points; a row a curve.

    Only of calls that carry their argument both ways. `seen` as `cells.seen` gives it.
    """
    present = [
        curve
        for curve in looks
        if (curve, "request") in lines and registry.moves(curve[0], curve[2]) == BOTH_DIRECTIONS
    ]
    sizes = sorted({size for curve in present for size in lines[curve, "request"].sizes})
    if not present or sizes[-1] - sizes[0] < 2 * CELL_PAYLOAD:
        return None
    height = 0.75 + 1.5 * len(present)

    def paint(figure: painting.Figure) -> None:
        place = plotting.margins(figure, left=0.5, right=0.15, top=0.32, bottom=0.52)
        columns = 1 if plotting.is_narrow(figure) else 2
        grid = figure.subplots(
            2 * len(present) // columns, columns, sharex=True, sharey=True, squeeze=False,
            gridspec_kw={"hspace": 0.42, "wspace": 0.07, **place},
        )  # fmt: skip
        panels = [(curve, direction) for curve in present for direction in DIRECTIONS]
        plotting.size_axis(grid.flat[0], sizes, label=False, log=log_x)
        for index, (axis, (curve, direction)) in enumerate(zip(grid.flat, panels, strict=True)):
            points = of_curve(seen, curve).filter(pl.col("direction") == direction)
            _saw_panel(axis, points, lines.get((curve, direction)), looks[curve])
            plotting.panel_title(axis, f"{looks[curve].label}: {direction}")
            if index >= len(panels) - columns:
                axis.set_xlabel(plotting.SIZE)
            if index % columns == 0:
                axis.set_ylabel("cells")
        grid.flat[0].set_ylim(bottom=0)
        grid.flat[0].yaxis.set_major_locator(painting.MaxNLocator(4, integer=True))

    said = "; ".join(f"{looks[curve].label}: {_saw_seen(lines[curve, 'request'])}" for curve in present)
    return plotting.draw(
        "cells-saw", "Cells beyond those of the argument alone", caption, folder, height, paint, seen=said,
        narrow_height_in=0.75 + 3.0 * len(present),
    )  # fmt: skip


def _beyond(size: int, count: int) -> float:
    return count - size / CELL_PAYLOAD


def _saw_panel(axis: painting.Axes, seen: pl.DataFrame, line: PacketLine | None, look: Look) -> None:
    if line:
        beyond = [_beyond(size, count) for size, count in zip(line.sizes, line.most, strict=True)]
        axis.plot(line.sizes, beyond, color=palette.WIRE, linewidth=0.8)
    points = [(size, _beyond(size, count)) for size, count in seen.select("size", "cells").iter_rows()]
    marker_px = 3.6 if seen["size"].n_unique() <= MARKED_SIZES else 1.3
    axis.plot([size for size, _ in points], [value for _, value in points], look.marker, color=look.colour,
              markersize=marker_px, markeredgewidth=0)  # fmt: skip


def _saw_seen(line: PacketLine) -> str:
    """A curve in words."""
    beyond = [_beyond(size, count) for size, count in zip(line.sizes, line.most, strict=True)]
    return f"requests have {min(beyond):.1f} to {max(beyond):.1f} cells more than their arguments fill"
