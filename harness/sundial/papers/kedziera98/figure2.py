# SPDX-License-Identifier: Apache-2.0
"""Figure 2: an enlargement of the ATM curve, by what was measured on the wire; windows of 512 bytes, and the fold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from sundial.papers.kedziera98 import names
from sundial.papers.kedziera98.arithmetic import beside_line, fold, neighbours
from sundial.papers.kedziera98.curves import Curve
from sundial.papers.kedziera98.figures import COLOURS, Panel, draw_panels
from sundial.papers.kedziera98.names import GRID, WINDOW
from sundial.papers.kedziera98.statements_cells import PERIOD, cells_of, packets_of, teeth, tooth_us, wire_times_us
from sundial.report import palette, plotting
from sundial.report.plotting import Drawing
from sundial.report.tables import DASH, Table, decimal, numbers, whole, words

WIDTH = WINDOW[1] - WINDOW[0]
LEAST = 4
"""Sizes without which a window says nothing."""
COLOUR = COLOURS[names.ATM]
PHASES = {0, 16, 32}
"""Of sizes of the grid modulo 48."""


def windows(curve: Curve) -> list[list[int]]:
    """Sizes of the grid in each 512 bytes, where enough were measured."""
    sizes = sorted(curve.rates_kBps)
    found = [[size for size in sizes if first <= size <= first + WIDTH] for first in range(0, max(sizes), WIDTH)]
    return [window for window in found if len(window) >= LEAST]


def draw_window(curve: Curve, folder: Path) -> Drawing | None:
    """Throughput, least round trip, wire time and cells, in the window that every scale has by 16 bytes."""
    sizes = [size for size in sorted(curve.rates_kBps) if WINDOW[0] <= size <= WINDOW[1]]
    wire, cells = wire_times_us(curve), cells_of(curve)
    if len(sizes) < LEAST or not all(size in wire and size in cells for size in sizes):
        return None
    rates = {size: curve.rates_kBps[size] for size in sizes}
    packets = packets_of(curve)
    least = [beside_line({size: curve.points[size].least_us for size in part}) for part in _alike(sizes, packets)]
    carried = [beside_line({size: wire[size] for size in part}) for part in _alike(sizes, packets)]
    gained = {high: cells[high] - cells[low] for low, high in pairwise(sizes) if high - low == GRID}
    panels: list[Panel] = [
        ("kB/s", lambda axis: _points(axis, [rates])),
        ("least T beside\nits line (us)", lambda axis: _points(axis, least)),
        ("wire time beside\nits line (us)", lambda axis: _points(axis, carried)),
        ("cells gained", lambda axis: _bars(axis, gained)),
    ]
    title = f"Figure 2: {WINDOW[0]} to {WINDOW[1]} bytes of SUN-SUN-ATM"
    caption = (
        f"{title}. From above: throughput by the paper's statistic; least round trip, and time of the frames that "
        "carry data (from the first bit that leaves to the last that arrives, summed up), each beside the straight "
        "line through the sizes with as many packets; cells that a round trip gains from one size to the next. The "
        "paper does not say which part of figure 1 it enlarged."
    )
    seen = f"cells gained by step: {', '.join(map(str, gained.values()))}"
    return draw_panels("figure-2", title, caption, seen, sizes, panels, folder)


def _alike(sizes: Sequence[int], packets: Mapping[int, int]) -> list[list[int]]:
    """Sizes one after another with as many packets; stretches that are too short for a line are left out."""
    parts = [list(group) for _, group in groupby(sizes, key=lambda size: packets[size])]
    return [part for part in parts if len(part) >= LEAST]


def _points(axis: Axes, parts: Sequence[Mapping[int, float]]) -> None:
    for values in parts:
        axis.plot(list(values), list(values.values()), color=COLOUR, marker="o", markersize=3.5)
    axis.yaxis.set_major_locator(MaxNLocator(4))


def _bars(axis: Axes, values: Mapping[int, int]) -> None:
    axis.bar(list(values), list(values.values()), width=9, color=COLOUR)
    axis.yaxis.set_major_locator(MaxNLocator(4, integer=True))


def of_one_packet(curve: Curve) -> list[int]:
    """Sizes of the grid with one packet each way."""
    return [size for size, count in packets_of(curve).items() if count == 2]


FoldPart = tuple[str, str, Mapping[int, float]]
"""What is folded: its name, its colour, its values by size."""


def fold_parts(curve: Curve) -> list[FoldPart]:
    """By the cells, on the wire, of round trips: over all sizes with one packet each way; empty without cells."""
    cell, cells, wire = curve.cell_us, cells_of(curve), wire_times_us(curve)
    sizes = [size for size in of_one_packet(curve) if size in cells and size in wire]
    if cell is None or {size % PERIOD for size in sizes} != PHASES or len(sizes) < 2 * len(PHASES):
        return []
    return [
        ("by the cells", palette.MUTED, {size: cells[size] * cell for size in sizes}),
        ("wire time", COLOUR, {size: wire[size] for size in sizes}),
        ("least round trips", palette.SPARE[1], {size: curve.points[size].least_us for size in sizes}),
        ("the paper's T", palette.SPARE[2], {size: curve.points[size].time_us for size in sizes}),
    ]


def draw_fold(curve: Curve, folder: Path) -> Drawing | None:
    """What is beside a straight line, by size modulo 48."""
    parts = fold_parts(curve)
    if not parts:
        return None

    def paint(figure: Figure) -> None:
        place = plotting.margins(figure, left=0.72, right=0.15, top=0.4, bottom=0.52)
        panels = figure.subplots(1, len(parts), sharey=False, gridspec_kw={"wspace": 0.45, **place})
        for axis, (name, colour, values) in zip(np.atleast_1d(panels), parts, strict=True):
            folded = fold(values, PERIOD)
            means, deviations = ([pair[part] for pair in folded.values()] for part in (0, 1))
            axis.errorbar(list(folded), means, yerr=deviations, color=colour, marker="o", linestyle="none", capsize=3)
            axis.axhline(0, color=palette.AXIS, linewidth=0.8)
            axis.set_xticks(sorted(folded))
            axis.set_xlim(-8, PERIOD)
            axis.set_title(name, fontsize=8 if plotting.is_narrow(figure) else 9, loc="left")
        np.atleast_1d(panels)[0].set_ylabel("us beside the line")
        figure.supxlabel(f"size modulo {PERIOD} (bytes)", fontsize=8.5, color=palette.MUTED)

    title = f"Fold by {PERIOD} bytes"
    caption = (
        f"{title}: mean and standard deviation of what is beside the straight line through all {len(parts[0][2])} "
        "sizes with one packet each way. Scales differ: what goes by cells is within a cell time, noise of software is "
        "not."
    )
    seen = "; ".join(f"{name}: {_said(fold(values, PERIOD))}" for name, _, values in parts)
    return plotting.draw("figure-2-fold", title, caption, folder, 3.0, paint, seen=seen)


def _said(folded: Mapping[int, tuple[float, float]]) -> str:
    return ", ".join(f"{phase} {mean:+.3f} us" for phase, (mean, _) in folded.items())


def windows_table(curve: Curve) -> Table:
    """T, wire time, cells, and steps, in each window."""
    wire, cells, cell = wire_times_us(curve), cells_of(curve), curve.cell_us or 0.0
    fallen, expected = teeth(curve) if cell else ([], [])
    rows = []
    for sizes in windows(curve):
        first, last = sizes[0], sizes[-1]
        pairs = [(low, high) for low, high in neighbours(sizes, GRID) if low in cells and high in cells]
        gained = [cells[high] - cells[low] for low, high in pairs]
        steps = [sum(count == each for count in gained) for each in (0, 1)]
        inside = {high for _, high in pairs}
        rows.append(
            (
                f"{whole(first)} to {whole(last)}",
                whole(len(sizes)),
                f"{decimal(curve.points[first].time_us)} to {decimal(curve.points[last].time_us)}",
                f"{decimal(wire.get(first))} to {decimal(wire.get(last))}",
                f"{whole(cells.get(first))} to {whole(cells.get(last))}",
                *((whole(steps[0]), whole(steps[1]), whole(len(gained) - sum(steps))) if gained else (DASH,) * 3),
                decimal(tooth_us(curve, last), 2),
                *((whole(len(inside & set(fallen))), whole(len(inside & set(expected)))) if pairs else (DASH,) * 2),
            )
        )
    head = numbers(
        "Window (B)", "Sizes", "T (us)", "Wire time (us)", "Cells", "Steps of 0 cells", "of 1", "of more",
        "A tooth needs (us)", "Teeth", "By the wire",
    )  # fmt: skip
    return Table("Windows of 512 bytes", head, tuple(rows))


def fold_table(curve: Curve) -> Table:
    """The fold in numbers."""
    rows = tuple(
        (name, *(f"{mean:+.3f} \u00b1 {spread:.3f}" for mean, spread in fold(values, PERIOD).values()))
        for name, _, values in fold_parts(curve)
    )
    head = (*words("us beside the line"), *numbers("0 modulo 48", "16", "32"))
    return Table("Fold by 48 bytes", head, rows)
