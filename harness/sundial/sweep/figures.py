# SPDX-License-Identifier: Apache-2.0
"""Figures of a sweep: metrics over an axis, a line for each metric, a panel for each value of the other axes."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sundial.model.bounds import Bound, resolve
from sundial.model.sweep import Sweep
from sundial.report import palette, plotting
from sundial.report.plotting import Drawing
from sundial.sweep.design import Axis, Cell, number_of, plain
from sundial.sweep.plans import Interval
from sundial.sweep.tables import Row

PANELS_MOST, LINES_MOST = 12, len(palette.SPARE)
ACROSS = 3
PANEL_IN, ONE_PANEL_IN, REST_IN = 2.4, 3.4, 1.0
"""Heights: of one of several panels, of a panel alone, and of what is around them."""
METHOD = (
    "The unit of repetition is the run: each run gives one value of a metric. Lines join medians over runs, bands are "
    "95 % intervals of the median by the percentile bootstrap over runs"
)


@dataclass(frozen=True)
class Spot:
    """A metric of a cell: its median over runs, and the interval where there are two runs or more."""

    median: float
    low: float
    high: float
    count: int

    def __str__(self) -> str:
        between = f" ({shown(self.low)} to {shown(self.high)})" if self.count > 1 else ""
        return f"{shown(self.median)}{between}"


Line = tuple[str, Cell]
"""A metric, and the value of the axis that has a line for each."""
Panel = dict[Line, list[tuple[float, Spot]]]
"""Spots by their place on the axis."""


def shown(value: float) -> str:
    """A number in four digits, or whole."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def unit_of(bound: Bound) -> str:
    """The unit of a metric; empty of a plain number."""
    return resolve(bound).unit


def spot(rows: Sequence[Row], metric: str, interval: Interval) -> Spot | None:
    """A metric of the runs of one cell."""
    values = [value for row in rows if (value := row.metrics.get(metric)) is not None]
    if not values:
        return None
    middle = statistics.median(values)
    low, high = interval(values, rows[0].point.cell) if len(values) > 1 else (middle, middle)
    return Spot(middle, low, high, len(values))


def by_cell(rows: Sequence[Row]) -> dict[Cell, list[Row]]:
    """The runs of each cell, in their order."""
    found: dict[Cell, list[Row]] = {}
    for row in rows:
        found.setdefault(row.point.cell, []).append(row)
    return found


def draw(
    sweep: Sweep, axes: Sequence[Axis], cells: Mapping[Cell, list[Row]], interval: Interval, folder: Path
) -> Iterator[Drawing]:
    """A figure for each unit that metrics have, over the first axis whose values are numbers."""
    varied = [place for place in range(len(axes)) if len({cell[place] for cell in cells}) > 1]
    numeric = [place for place in varied if all(number_of(cell[place]) is not None for cell in cells)]
    if not numeric:
        return
    across = numeric[0]
    others = [place for place in varied if place != across]
    for unit in dict.fromkeys(map(unit_of, sweep.metrics.values())):
        panels: dict[Cell, Panel] = {}
        for cell, runs in cells.items():
            facet, line = (tuple(cell[place] for place in places) for places in (others[1:], others[:1]))
            for metric, bound in sweep.metrics.items():
                found, x = spot(runs, metric, interval), number_of(cell[across])
                if unit_of(bound) == unit and found is not None and x is not None:
                    panels.setdefault(facet, {}).setdefault((metric, line), []).append((x, found))
        if panels:
            yield _Figure(axes[across], unit, [axes[place].name for place in others[1:]], panels).draw(folder)


class _Figure:
    """One figure."""

    def __init__(self, axis: Axis, unit: str, facets: Sequence[str], panels: Mapping[Cell, Panel]) -> None:
        self._axis = axis
        self._unit = unit
        self._facets = facets
        self._count = len(panels)
        self._panels = {
            facet: {line: sorted(spots, key=lambda each: each[0]) for line, spots in panel.items()}
            for facet, panel in list(panels.items())[:PANELS_MOST]
        }
        lines = dict.fromkeys(line for panel in self._panels.values() for line in panel)
        self._words = {line: " ".join([line[0], *map(plain, line[1])]) for line in list(lines)[:LINES_MOST]}
        self._scale, self._label = _scale(axis)

    def draw(self, folder: Path) -> Drawing:
        name = f"by-{self._axis.name}-{self._unit or 'number'}".replace("/", "-a-").replace(" ", "-")
        title = f"Metrics by {self._axis.name}, in {self._unit or 'numbers'}"
        more = f". The first {len(self._panels)} of {self._count} panels" if self._count > len(self._panels) else ""
        heights = [self._height(across) for across in (ACROSS, 1)]
        return plotting.draw(
            name, title, METHOD + more, folder, heights[0], self._paint, seen=self._seen(), narrow_height_in=heights[1]
        )

    def _height(self, across: int) -> float:
        rows = -(-len(self._panels) // across)
        return REST_IN + (ONE_PANEL_IN if len(self._panels) == 1 else PANEL_IN * rows)

    def _seen(self) -> str:
        parts = []
        for facet, panel in self._panels.items():
            where = "".join(f", {each}" for each in self._titles(facet))
            for line, spots in panel.items():
                ends = " to ".join(
                    f"{shown(found.median)} at {x / self._scale:g}" for x, found in (spots[0], spots[-1])
                )
                parts.append(f"{self._words.get(line, line[0])}{where}: {ends}")
        return "; ".join(parts)

    def _titles(self, facet: Cell) -> list[str]:
        return [f"{name} {plain(value)}" for name, value in zip(self._facets, facet, strict=True)]

    def _paint(self, figure: Figure) -> None:
        across = 1 if len(self._panels) == 1 or plotting.is_narrow(figure) else ACROSS
        columns, more = plotting.legend_rows(figure, list(self._words.values()))
        place = plotting.margins(figure, left=0.72, right=0.2, top=0.75 + more, bottom=0.55)
        shape = (-(-len(self._panels) // across), across)
        grid = figure.subplots(*shape, squeeze=False, gridspec_kw={"hspace": 0.55, "wspace": 0.3, **place})
        top = max(found.high for panel in self._panels.values() for spots in panel.values() for _, found in spots)
        axes = list(grid.flat)
        for one, (facet, panel) in zip(axes, self._panels.items(), strict=False):
            self._paint_panel(one, panel)
            plotting.value_axis(one, self._unit, 0.0, top, log=False)
            one.set_xlabel(self._label)
            plotting.panel_title(one, ", ".join(self._titles(facet)))
        for unused in axes[len(self._panels) :]:
            unused.set_visible(False)
        plotting.legend(figure, axes[0].get_legend_handles_labels()[0], columns)

    def _paint_panel(self, axis: Axes, panel: Panel) -> None:
        for (line, words), colour in zip(self._words.items(), palette.SPARE, strict=False):
            spots = panel.get(line, [])
            x = [each / self._scale for each, _ in spots]
            low, high = [each.low for _, each in spots], [each.high for _, each in spots]
            axis.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)
            axis.plot(x, [each.median for _, each in spots], color=colour, marker="o", markersize=3.5, label=words)
        if self._axis.log:
            axis.set_xscale("log")


def _scale(axis: Axis) -> tuple[float, str]:
    """What numbers on an axis are divided by, and its label with the unit of the first value."""
    text = next((plain(value) for value in (*axis.values, *(axis.ends or ())) if number_of(value) is not None), "")
    unit = text.lstrip("+-0123456789. ")
    factor = number_of(f"1 {unit}") if unit else 1.0
    return factor or 1.0, f"{axis.name} ({unit})" if unit else axis.name
