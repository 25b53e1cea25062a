# SPDX-License-Identifier: Apache-2.0
"""The page of a sweep: figures with confidence bands, a row a cell with links to its runs, and what went wrong."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from sundial.model.sweep import MeasureField, Sweep
from sundial.report import palette, plotting
from sundial.report.tables import DASH
from sundial.sweep.design import Axis, Cell, plain
from sundial.sweep.figures import METHOD, Spot, by_cell, draw, spot, unit_of
from sundial.sweep.plans import Interval
from sundial.sweep.tables import CALLS, RUNS, Row
from sundial.whole import whole

HERE = Path(__file__).parent
MEASURE = MeasureField()
REPORT = HERE.parent / "report"
PAGE, FIGURES = "index.html", "figures"


def write_page(
    folder: Path, sweep: Sweep, axes: Sequence[Axis], swept: Any, interval: Interval, command: Sequence[str]
) -> None:
    """index.html and its figures. Raises OSError."""
    (folder / FIGURES).mkdir(exist_ok=True)
    cells = by_cell(swept.rows)
    drawings = list(draw(sweep, axes, cells, interval, folder / FIGURES))
    style = (REPORT / "style.css").read_text(encoding="utf-8")
    style = style.replace("LIGHT-COLOURS", palette.css_variables(dark=False))
    style = style.replace("DARK-COLOURS", palette.css_variables(dark=True))
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    rows = [
        {
            "values": [plain(value) for value in cell],
            "metrics": [_words(spot(runs, name, interval)) for name in sweep.metrics],
            "runs": [_link(folder, run) for run in runs],
        }
        for cell, runs in cells.items()
    ]
    text = environment.get_template("page.html.j2").render(
        style=Markup(style),
        sweep=sweep,
        axes=axes,
        swept=swept,
        drawings=[(drawing, Markup(plotting.inline(drawing))) for drawing in drawings],
        rows=rows,
        metrics=[
            f"{name}: {bound.of}{bound.conditions}, {unit_of(bound) or 'a number'}"
            for name, bound in sweep.metrics.items()
        ],
        crossings=[_crossing(axes, each) for each in swept.crossings if each is not None],
        wrong=[(_link(folder, row), row) for row in swept.rows if row.verdict != "pass"],
        given_up=[(_named(axes, point.cell), point.seed, why) for point, why in swept.given_up.items()],
        method=METHOD,
        command=shlex.join(command),
        files=(RUNS, CALLS),
    )
    with whole(folder / PAGE) as beside:
        beside.write_text(text, encoding="utf-8")


def _words(found: Spot | None) -> str:
    return DASH if found is None else str(found)


def _named(axes: Sequence[Axis], cell: Cell) -> str:
    return ", ".join(f"{axis.name} {plain(value)}" for axis, value in zip(axes, cell, strict=True) if value)


def _crossing(axes: Sequence[Axis], crossing: Any) -> tuple[str, str]:
    return _named(axes, crossing.cell) or "all runs", crossing.words


def _link(folder: Path, row: Row) -> dict[str, Any]:
    """A run: its report where it has one, else its folder."""
    report = row.kept.run / "report.html"
    target = os.path.relpath(report if report.is_file() else row.kept.run, folder)
    return {"href": quote(target), "seed": row.point.seed, "verdict": row.verdict, "number": row.number}
