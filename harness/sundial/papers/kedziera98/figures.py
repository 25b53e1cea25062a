# SPDX-License-Identifier: Apache-2.0
"""The figures of kedziera98, measured; beside each what the text prints, and nothing that it does not.

`drawings` has which there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sundial.papers.kedziera98.curves import Curve
from sundial.papers.kedziera98.names import ATM, ETHERNET, LINUX, PCS, RAW_TCP, RAW_UDP, SWAPPED, TCP, UDP
from sundial.report import palette, plotting
from sundial.report.plotting import Drawing
from sundial.reproduce.figures import legend_above, one_axis, xy
from sundial.workloads.raw.report import LINES as RAW
from sundial.workloads.sunrpc.report import LINES as RPC

COLOURS = {
    ATM: palette.SPARE[3], LINUX: palette.SPARE[2], SWAPPED: palette.SPARE[1], TCP: RPC["tcp"].paper,
    UDP: RPC["udp"].paper, ETHERNET: palette.SPARE[0], PCS: palette.SPARE[5], RAW_TCP: RAW["tcp"].paper,
    RAW_UDP: RAW["udp"].paper,
}  # fmt: skip
NOT_THERE = "The printed curve\nis not in the text\nof the paper."
MARKED = 60
"""Up to so many sizes each point gets a marker."""


@dataclass(frozen=True)
class Mark:
    """A value that the text prints, in the unit of the figure."""

    value: float
    text: str
    colour: str


@dataclass(frozen=True)
class Band:
    """A range that the text prints, relative to a curve."""

    sizes: Sequence[int]
    low: Sequence[float]
    high: Sequence[float]
    text: str
    colour: str


def draw_throughput(
    stem: str,
    title: str,
    caption: str,
    curves: Sequence[Curve],
    marks: Sequence[Mark],
    folder: Path,
    *,
    log: bool = False,
    band: Band | None = None,
) -> Drawing | None:
    """Throughput over size: measured (full), the wires' bound (dashed), and a panel with the printed values."""
    drawn = [curve for curve in curves if curve.rates_kBps]
    if not drawn:
        return None
    sizes = sorted({size for curve in drawn for size in curve.rates_kBps})
    bounds = [_bound(curve, sizes[0], sizes[-1]) for curve in drawn]
    most = max(*(rate for curve in drawn for rate in curve.rates_kBps.values()), *(mark.value for mark in marks), 0)
    values = [rate for each in bounds for rate in each.values()]
    top = max(most, *values) if values and max(values) < 3 * most else most

    def paint(figure: Figure) -> None:
        left, right = _with_panel(figure, 1)
        for curve, bound in zip(drawn, bounds, strict=True):
            _line(left[0], curve.rates_kBps, COLOURS[curve.key], curve.name)
            if bound:
                name = f"{curve.name}: the wires allow"
                left[0].plot(*xy(bound), color=COLOURS[curve.key], linestyle="--", linewidth=1.1, label=name)
        if band is not None:
            left[0].fill_between(
                band.sizes, band.low, band.high, color=band.colour, alpha=0.16, linewidth=0, label=band.text
            )
        least = min(rate for curve in drawn for rate in curve.rates_kBps.values())
        plotting.value_axis(left[0], "kB/s, both directions", least, top, log=log)
        plotting.size_axis(left[0], sizes, log=log)
        _printed(right, marks, log=log)
        legend_above(figure, 3, left=0.05)

    seen = "; ".join(f"{curve.name}: {_ends(curve)}" for curve in drawn)
    return plotting.draw(stem, title, caption, folder, 4.6, paint, seen=seen, narrow_height_in=5.2)


def _ends(curve: Curve) -> str:
    rates = curve.rates_kBps
    return f"{rates[min(rates)]:.0f} kB/s at {min(rates)} B to {rates[max(rates)]:.0f} kB/s at {max(rates)} B"


def _bound(curve: Curve, first: int, last: int) -> dict[int, float]:
    """Greatest throughput of the wires, where a size has bytes to carry."""
    return {size: 2000 * size / us for size, us in sorted(curve.bound_us.items()) if first <= size <= last and size}


def _with_panel(figure: Figure, rows: int, *, legend: bool = True) -> tuple[list[Axes], Axes]:
    """Panels below one another, and a small one beside the first with its y axis."""
    narrow = plotting.is_narrow(figure)
    top = (1.0 if narrow else 0.62) if legend else 0.32
    place = plotting.margins(figure, left=0.72, right=0.12, top=top, bottom=0.52)
    ratios = (2.0, 1.0) if narrow else (5.2, 1.3)
    grid = figure.add_gridspec(rows, 2, width_ratios=ratios, wspace=0.04, hspace=0.2, **place)
    first = figure.add_subplot(grid[0, 0])
    left = [first, *(figure.add_subplot(grid[row, 0], sharex=first) for row in range(1, rows))]
    right = figure.add_subplot(grid[0, 1], sharey=first)
    right.tick_params(axis="y", labelleft=False)
    right.set_xticks([])
    right.set_xlim(0, 1)
    right.set_facecolor(palette.CARD)
    return left, right


def _printed(axis: Axes, marks: Sequence[Mark], *, log: bool) -> None:
    plotting.panel_title(axis, "Printed")
    for mark in marks:
        axis.axhline(mark.value, color=mark.colour, linewidth=1.6)
        axis.annotate(
            mark.text, (0.04, mark.value), (0, -3), textcoords="offset points", va="top", color=mark.colour, fontsize=8
        )
    # In the middle of the widest space between the marks.
    to_axis = axis.transData + axis.transAxes.inverted()
    edges = [0.0, *sorted(float(to_axis.transform((0, mark.value))[1]) for mark in marks), 1.0]
    low, high = max(pairwise(edges), key=lambda pair: pair[1] - pair[0])
    axis.text(
        0.05, (low + high) / 2, NOT_THERE, transform=axis.transAxes, va="center", fontsize=7.5, color=palette.MUTED,
        linespacing=1.35,
    )  # fmt: skip


def _line(axis: Axes, values: Mapping[int, float], colour: str, label: str = "", **more: Any) -> None:
    marker = {"marker": "o", "markersize": 3.5} if len(values) <= MARKED else {}
    axis.plot(*xy(values), color=colour, label=label, **{**marker, **more})


def draw_lines(
    stem: str,
    title: str,
    caption: str,
    label: str,
    lines: Sequence[tuple[str, str, Mapping[int, float]]],
    folder: Path,
    *,
    levels: Sequence[Mark] = (),
    limits: tuple[float, float] | None = None,
    log: bool = False,
    dots: bool = False,
) -> Drawing | None:
    """Values over size, each line with a name and a colour, as dots alone where they scatter.

    `levels`: what the text prints. What is beyond the limits is drawn at them.
    """
    there = [line for line in lines if line[2]]
    if not there:
        return None
    sizes = sorted({size for _, _, values in there for size in values})
    low, high = limits or (0.0, 1.05 * max(*(max(values.values()) for _, _, values in there), *_levels(levels)))

    def paint(figure: Figure) -> None:
        axis = one_axis(figure)
        for name, colour, values in there:
            more: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 2.6} if dots else {}
            _line(axis, {size: min(max(value, low), high) for size, value in values.items()}, colour, name, **more)
        for level in levels:
            axis.axhline(level.value, color=level.colour, linestyle=":", linewidth=1.2, label=level.text)
        axis.set_ylim(low, high)
        axis.set_ylabel(label)
        plotting.size_axis(axis, sizes, log=log)
        legend_above(figure, 3, left=0.05)

    seen = "; ".join(f"{name}: {min(values.values()):.2f} to {max(values.values()):.2f}" for name, _, values in there)
    return plotting.draw(stem, title, caption, folder, 3.6, paint, seen=seen, narrow_height_in=4.2)


def _levels(levels: Sequence[Mark]) -> list[float]:
    return [0.0, *(level.value for level in levels)]


Panel = tuple[str, Callable[[Axes], None]]
"""Label of y, and who paints it."""


def draw_panels(
    stem: str, title: str, caption: str, seen: str, sizes: Sequence[int], panels: Sequence[Panel], folder: Path
) -> Drawing:
    """Panels over the same sizes, with the words about the printed curve beside the first."""

    def paint(figure: Figure) -> None:
        left, right = _with_panel(figure, len(panels), legend=False)
        for axis, (label, fill) in zip(left, panels, strict=True):
            fill(axis)
            axis.set_ylabel(label, fontsize=8)
            axis.tick_params(axis="x", labelbottom=axis is left[-1])
        plotting.size_axis(left[-1], sizes, step=48)
        _printed(right, (), log=False)

    return plotting.draw(stem, title, caption, folder, 1.9 * len(panels) + 0.8, paint, seen=seen)
