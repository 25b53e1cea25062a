# SPDX-License-Identifier: Apache-2.0
"""Wall time and memory by the number of machines, as one figure of two panels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from sundial.report import palette
from sundial.report.plotting import draw, value_axis

HEIGHT_IN = 3.8


@dataclass(frozen=True)
class Point:
    """Medians of one number of machines."""

    machines: int
    wall_s: float
    start_s: float
    run_s: float
    after_s: float
    pss_mb: float


def draw_width(folder: Path, stem: str, points: Sequence[Point], where: str) -> None:
    """Writes STEM.svg and STEM.png; `where` is the host and the day."""

    def paint(figure: Any) -> None:
        wall, memory = figure.subplots(1, 2)
        figure.subplots_adjust(left=0.08, right=0.985, top=0.86, bottom=0.26, wspace=0.22)
        walls = (
            ("the whole command", [each.wall_s for each in points], palette.INK, "o"),
            ("until they run", [each.start_s for each in points], palette.SPARE[0], "s"),
            ("the run", [each.run_s for each in points], palette.SPARE[3], "^"),
            ("verification and report", [each.after_s for each in points], palette.SPARE[1], "D"),
        )
        _panel(wall, points, walls, "wall time (s)", "Wall time by machines")
        weights = [each.pss_mb for each in points]
        each = [weight / point.machines for weight, point in zip(weights, points, strict=True)]
        pss = (
            ("all QEMUs", weights, palette.INK, "o"),
            ("a machine", each, palette.SPARE[0], "s"),
        )
        _panel(memory, points, pss, "Pss (MB)", "Memory by machines")
        figure.text(0.01, 0.02, where, fontsize=7.5, color=palette.MUTED)

    title = "Wall time and memory by the number of machines"
    draw(stem, title, where, folder, HEIGHT_IN, paint)


def _panel(
    axis: Axes,
    points: Sequence[Point],
    curves: Sequence[tuple[str, Sequence[float], str, str]],
    label: str,
    title: str,
) -> None:
    machines = [point.machines for point in points]
    for name, values, colour, marker in curves:
        axis.plot(machines, values, color=colour, marker=marker, markersize=4.5, label=name)
    every = [value for _, values, _, _ in curves for value in values]
    axis.set_xscale("log", base=2)
    axis.xaxis.set_major_locator(FixedLocator(machines))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))
    axis.set_xlabel("machines")
    value_axis(axis, label, min(every), max(every), log=True)
    axis.set_title(title)
    axis.legend(loc="upper left", fontsize=8)
