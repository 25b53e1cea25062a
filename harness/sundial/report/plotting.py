# SPDX-License-Identifier: Apache-2.0
"""What every figure shares: type, frame, ticks, labels at the end of lines, and files that repeat byte for byte."""

from __future__ import annotations

import gc
import io
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sundial.report import painting, palette
from sundial.whole import whole

WIDTH_IN = 9.6
NARROW_IN = 4.4
"""Of the same figure for screens on which the other's letters would be too small to read."""
PNG_DPI = 150
MOST_LEGEND_COLUMNS = 5
SIZE = "argument size (bytes)"
GEOMETRIC_RATIO = 1.4
"""Sizes that grow by this factor or more from one to the next are drawn on a logarithmic axis."""

STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 7.0,
    # Where it would be found to be, as no axis has anything above it: looking for that takes a quarter of the drawing.
    "axes.titley": 1.0,
    "axes.labelsize": 9.0,
    "axes.labelcolor": palette.MUTED,
    "axes.titlecolor": palette.INK,
    "axes.edgecolor": palette.AXIS,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": palette.PAPER,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": palette.GRID,
    "grid.linewidth": 0.8,
    "xtick.color": palette.AXIS,
    "ytick.color": palette.AXIS,
    "xtick.labelcolor": palette.MUTED,
    "ytick.labelcolor": palette.MUTED,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "ytick.major.size": 0.0,
    "ytick.minor.size": 0.0,
    "text.color": palette.INK,
    "figure.facecolor": palette.PAPER,
    "savefig.facecolor": palette.PAPER,
    "lines.linewidth": 1.7,
    "lines.solid_capstyle": "round",
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "sundial",
    "path.simplify": True,
    "path.simplify_threshold": 0.2,
}


@dataclass(frozen=True)
class Drawing:
    """One finished figure: its file stem, heading, caption, and SVG text in paper colours, wide and narrow."""

    stem: str
    title: str
    caption: str
    seen: str
    """What is to be seen in it, for those who do not see it."""
    svg: str
    """Empty, as `narrow` is, where figures are not painted."""
    narrow: str


@dataclass(frozen=True)
class Pictures:
    """What is made of a figure."""

    png: bool = True
    """Whether it is written as PNG, too: that takes a third of the time of them all."""
    painted: bool = True
    """Otherwise it is said in words alone."""


ALL = Pictures()
_pictures = ContextVar("pictures", default=ALL)


@contextmanager
def pictures(made: Pictures) -> Iterator[None]:
    """What becomes of the figures that are drawn meanwhile."""
    token = _pictures.set(made)
    try:
        yield
    finally:
        _pictures.reset(token)


def draw(
    stem: str,
    title: str,
    caption: str,
    folder: Path,
    height_in: float,
    paint: Callable[[painting.Figure], None],
    *,
    seen: str = "",
    narrow_height_in: float | None = None,
) -> Drawing:
    """Paints a figure in the house style, wide and narrow, and writes STEM.svg of the wide one, and STEM.png; unless
    `pictures` says otherwise."""
    made = _pictures.get()
    svg = narrow = ""
    if made.painted:
        with painting.rc_context(STYLE), _uncollected():  # type: ignore[arg-type]
            figure, svg = _painted(WIDTH_IN, height_in, paint)
            if made.png:
                with whole(folder / f"{stem}.png") as beside:
                    figure.savefig(beside, format="png", dpi=PNG_DPI, metadata={"Software": None})
            _, narrow = _painted(NARROW_IN, narrow_height_in or height_in, paint)
        with whole(folder / f"{stem}.svg") as beside:
            beside.write_text(svg, encoding="utf-8")
    return Drawing(stem, title, caption, seen or caption, svg, narrow)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without looking for garbage: a figure's many objects live until it is painted, so there is none."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _painted(
    width_in: float, height_in: float, paint: Callable[[painting.Figure], None]
) -> tuple[painting.Figure, str]:
    figure = painting.Figure(figsize=(width_in, height_in))
    painting.FigureCanvasAgg(figure)
    paint(figure)
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return figure, text.getvalue()


def inline(drawing: Drawing) -> str:
    """A figure for the page: wide, and narrow for small screens."""
    label = f"{drawing.title}. {drawing.seen}"
    wide = palette.themed(drawing.svg, drawing.stem, label)
    narrow = palette.themed(drawing.narrow, f"narrow-{drawing.stem}", label)
    return f'<div class="canvas wide">{wide}</div><div class="canvas narrow">{narrow}</div>'


def is_narrow(figure: Any) -> bool:
    """Whether a figure is the narrow one of the two."""
    return bool(figure.get_figwidth() < WIDTH_IN)


def geometric(sizes: Sequence[int]) -> bool:
    """Whether sizes were chosen on a logarithmic scale (their median step is a factor)."""
    positive = sorted({size for size in sizes if size > 0})
    if len(positive) < 4 or positive[-1] < 16 * positive[0]:
        return False
    ratios = sorted(high / low for low, high in itertools.pairwise(positive))
    return ratios[len(ratios) // 2] >= GEOMETRIC_RATIO


def size_ticks(low: int, high: int, step: int | None = None, most: int = 9) -> list[int]:
    """Ticks for bytes on a linear axis: multiples of a power of two, or of `step` (and of its doublings)."""
    width = step or 1
    while (high - low) / width > most:
        width *= 2
    return list(range(math.ceil(low / width) * width, high + 1, width))


def size_axis(
    axis: painting.Axes,
    sizes: Sequence[int],
    *,
    step: int | None = None,
    label: bool = True,
    most: int = 9,
    log: bool = False,
) -> None:
    """Sets up x as the argument size in bytes."""
    low, high = min(sizes), max(sizes)
    most = min(most, 5) if is_narrow(axis.get_figure()) else most
    if log:
        axis.set_xscale("symlog", base=2, linthresh=max(1, min([size for size in sizes if size > 0], default=1)))
        ticks = [0] if low == 0 else []
        powers = [2**k for k in range(1, 40) if low <= 2**k <= high]
        axis.xaxis.set_major_locator(painting.FixedLocator(ticks + powers[:: max(1, math.ceil(len(powers) / most))]))
        axis.xaxis.set_minor_locator(painting.FixedLocator([]))
        axis.set_xlim(low if low == 0 else low * 0.9, high * 1.02)
    else:
        low = 0 if low <= 0.03 * high else low
        axis.xaxis.set_major_locator(painting.FixedLocator(size_ticks(low, high, step, most)))
        pad = 0.012 * (high - low) or 8
        axis.set_xlim(low - pad, high + pad)
    axis.xaxis.set_major_formatter(
        painting.FuncFormatter(lambda value, _: f"{value:g}" if value < 1e5 else f"{value:.0f}")
    )
    if label:
        axis.set_xlabel(SIZE)


def greatest(values: pl.Series) -> float:
    """The largest value of a column; 0 for an empty one."""
    found = values.max()
    return float(found) if isinstance(found, int | float) else 0.0


def least(values: pl.Series) -> float:
    """The smallest value of a column; 0 for an empty one."""
    found = values.min()
    return float(found) if isinstance(found, int | float) else 0.0


def time_unit(largest_us: float) -> tuple[str, float]:
    """A unit for times up to `largest_us` and how many us it has."""
    if largest_us >= 2_000_000:
        return "s", 1e6
    return ("ms", 1e3) if largest_us >= 2_000 else ("µs", 1.0)


def value_axis(axis: painting.Axes, label: str, low: float, high: float, *, log: bool) -> None:
    """Sets up y from zero (linear) or from just under the least value (logarithmic)."""
    if log:
        axis.set_yscale("log")
        axis.set_ylim(low / 1.25, high * 1.35)
        axis.yaxis.set_major_locator(painting.LogLocator(base=10, subs=(1.0, 2.0, 5.0), numticks=12))
        axis.yaxis.set_minor_formatter(painting.NullFormatter())
    else:
        axis.set_ylim(0, high * 1.07 if high > 0 else 1.0)
        axis.yaxis.set_major_locator(painting.MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    axis.yaxis.set_major_formatter(painting.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_ylabel(label)


@dataclass(frozen=True)
class EndLabel:
    """Words beside the right end of a line; y in data units."""

    y: float
    text: str
    colour: str


def end_labels(axis: painting.Axes, labels: Sequence[EndLabel], gap_pt: float = 12.0) -> None:
    """Writes labels right of the axes at their lines' ends, moved apart where they would touch.

    Limits and place of the axes must be final.
    """
    if not labels:
        return
    figure = axis.get_figure()
    assert figure is not None, "axes belong to a figure"
    points = 72.0 / figure.dpi
    box = axis.get_window_extent()
    order = sorted(labels, key=lambda label: label.y)
    wanted = [float(axis.transData.transform((0, label.y))[1]) * points for label in order]
    placed = spread(wanted, gap_pt, box.y0 * points + 2, box.y1 * points - 2)
    for label, want, got in zip(order, wanted, placed, strict=True):
        offset = got - want
        axis.annotate(
            label.text,
            xy=(1.0, label.y),
            xycoords=("axes fraction", "data"),
            xytext=(16, offset),
            textcoords="offset points",
            color=palette.WORDS.get(label.colour, label.colour),
            fontsize=8.5,
            fontweight="bold",
            va="center",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-", "color": label.colour, "linewidth": 0.8, "alpha": 0.7, "shrinkA": 1, "shrinkB": 0,
                "relpos": (0.0, 0.5),
            },
        )  # fmt: skip


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions at least `gap` apart, in the order of `wanted` (ascending), near it, within low..high if they fit."""
    groups: list[list[float]] = []  # [sum of (wanted - own offset), count, position of the first]
    for want in wanted:
        groups.append([want, 1, want])
        while len(groups) > 1 and groups[-2][2] + groups[-2][1] * gap > groups[-1][2]:
            total, count, _ = groups.pop()
            groups[-1][0] += total - count * groups[-1][1] * gap
            groups[-1][1] += count
            groups[-1][2] = groups[-1][0] / groups[-1][1]
    result = [first + k * gap for _, count, first in groups for k in range(int(count))]
    if result and result[-1] > high:
        ceiling = high
        for index in range(len(result) - 1, -1, -1):
            result[index] = min(result[index], ceiling)
            ceiling = result[index] - gap
    floor = low
    for index in range(len(result)):
        result[index] = max(result[index], floor)
        floor = result[index] + gap
    return result


def panel_title(axis: painting.Axes, text: str) -> None:
    """A small heading above one panel."""
    axis.set_title(text, loc="left")


def grid_shape(panels: int, most_columns: int) -> tuple[int, int]:
    """Rows and columns for a number of small panels."""
    columns = min(most_columns, max(1, panels))
    if panels == 4 and most_columns == 3:
        columns = 2
    return math.ceil(panels / columns), columns


LEGEND: dict[str, Any] = {"loc": "upper left", "fontsize": 8.5, "handlelength": 1.6, "columnspacing": 1.8}


def legend_rows(figure: painting.Figure, labels: Sequence[str], *, left_in: float = 0.6) -> tuple[int, float]:
    """Columns of a legend `left_in` inches from the left, as many as fit, and by how many inches it is higher than one
    row; the figure grows by as many."""
    if not labels:
        return 1, 0.0
    room = figure.get_figwidth() - left_in - 0.1
    handles = [painting.Line2D([], [], label=label) for label in labels]
    one_row = _legend_size(figure, handles[:1], 1)[1]
    for columns in range(min(len(labels), MOST_LEGEND_COLUMNS), 0, -1):
        width, height = _legend_size(figure, handles, columns)
        if width <= room:
            break
    more = height - one_row
    figure.set_figheight(figure.get_figheight() + more)
    return columns, more


def _legend_size(figure: painting.Figure, handles: Sequence[painting.Line2D], columns: int) -> tuple[float, float]:
    """Width and height of a legend, in inches."""
    trial = figure.legend(handles=list(handles), ncols=columns, **LEGEND)
    box = trial.get_window_extent()
    trial.remove()
    return box.width / figure.dpi, box.height / figure.dpi


def legend(
    figure: painting.Figure, handles: Sequence[painting.Artist], columns: int, *, left_in: float = 0.6, **style: Any
) -> None:
    """The legend above all panels, for which `legend_rows` found the columns."""
    anchor = (left_in / figure.get_figwidth(), 1.0)
    figure.legend(handles=list(handles), bbox_to_anchor=anchor, ncols=columns, **LEGEND, **style)


def margins(figure: painting.Figure, *, left: float, right: float, top: float, bottom: float) -> dict[str, float]:
    """Fractions for a grid of axes from margins in inches."""
    return {
        "left": left / figure.get_figwidth(),
        "right": 1 - right / figure.get_figwidth(),
        "top": 1 - top / figure.get_figheight(),
        "bottom": bottom / figure.get_figheight(),
    }
