# SPDX-License-Identifier: Apache-2.0
"""A comparison as one HTML page in the style of the reports: figures, tables, no script, nothing from elsewhere."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sundial import report
from sundial.compare import words
from sundial.report import palette, plotting
from sundial.report.headline import Figure as KeyNumber
from sundial.report.plotting import Drawing
from sundial.report.tables import Column, Table, numbers
from sundial.seams.compare import Comparison, Figures
from sundial.units import counted
from sundial.whole import whole

STYLE = Path(report.__file__).parent
COLOURS = (palette.INK, *palette.SPARE)
MARKERS = ("o", *palette.SPARE_MARKERS)
MOST_PANELS = 12
_PANEL_IN = 2.5
_COLUMNS = 3

Curve = tuple[Any, ...]
Points = dict[Curve, list[list[tuple[int, Figures]]]]
"""By what a curve shows: for each run its sizes with their figures."""


def write_page(found: Comparison, path: Path) -> None:
    """Write the page; whole or not at all. Raises OSError."""
    text = page(found)
    with whole(path) as beside:
        beside.write_text(text, encoding="utf-8")


def page(found: Comparison) -> str:
    """The page as text."""
    environment = Environment(
        loader=FileSystemLoader([Path(__file__).parent, STYLE]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = (STYLE / "style.css").read_text(encoding="utf-8")
    style = style.replace("LIGHT-COLOURS", palette.css_variables(dark=False))
    style = style.replace("DARK-COLOURS", palette.css_variables(dark=True))
    drawings = _drawings(found)
    state, badge, sentence = _verdict(found)
    return environment.get_template("page.html.j2").render(
        style=Markup(style),
        state=state,
        badge=badge,
        sentence=sentence,
        key_numbers=_key_numbers(found),
        runs=_table("Runs", words.run_rows(found), words_until=5),
        inputs=_table("Inputs that differ", words.input_rows(found), words_until=99),
        captures=list(words.capture_lines(found)),
        files={label: names for label, names in found.files.items() if names},
        figures=_table("Figures", words.figure_rows(found, found.groups), words_until=len(found.by) + 1),
        drawings=[(each, Markup(plotting.inline(each))) for each in drawings],
        found=found,
    )


def _verdict(found: Comparison) -> tuple[str, str, str]:
    """(class, badge, sentence)."""
    if found.alarms:
        return "fail", "alarm", "; ".join(found.alarms)
    if found.exceeded:
        return "fail", "above", f"{counted(len(found.exceeded), 'figure')} above what --fail-above allows"
    if found.captures and all(pair.equal for pair in found.captures):
        return "pass", "equal", "All captures are equal to the byte"
    many = sum(each.wire for each in found.inputs)
    inputs = f"Inputs that may change a capture and differ: {many}" if many else "The inputs are equal"
    return "unverified", "different", inputs


def _key_numbers(found: Comparison) -> list[KeyNumber]:
    unequal = sum(not pair.equal for pair in found.captures)
    ratios = [figures.p50_ratio for group in found.groups for figures in group.runs[1:] if figures is not None]
    known = sorted(ratio for ratio in ratios if ratio is not None)
    spread = f"{known[0]:.3f} to {known[-1]:.3f}" if known else words.DASH
    return [
        KeyNumber("runs", str(len(found.runs))),
        KeyNumber("inputs that differ", str(len(found.inputs))),
        KeyNumber("captures that differ", str(unequal), f"of {len(found.captures)}", bool(found.alarms)),
        KeyNumber("groups of calls", str(len(found.groups))),
        KeyNumber("ratio of medians", spread, "to the first run"),
    ]


def _table(title: str, rows: words.Rows, words_until: int) -> Table:
    head, *rest = rows
    columns = tuple(
        Column(_title(name), "word") if place < words_until else numbers(_title(name))[0]
        for place, name in enumerate(head)
    )
    return Table(title, columns, tuple(map(tuple, rest)))


def _title(name: str) -> str:
    """A run's letter stays a capital."""
    return name if len(name) == 1 else name.lower()


def _drawings(found: Comparison) -> list[Drawing]:
    """Medians and ratios over size; none if calls are not grouped by size."""
    curves = dict(itertools.islice(_curves(found).items(), MOST_PANELS))
    if not curves:
        return []
    labels = [f"{run.label}  {run.run}" for run in found.runs]
    left_out = len(_curves(found)) - len(curves)
    more = f" {left_out} further curves are in the table." if left_out else ""
    caption = "Median round trip of the calls that succeeded, warm-up calls left out; shaded: 99th percentile."
    ratio = "Median round trip as a share of the first run's at the same size."
    with TemporaryDirectory(prefix="sundial-") as folder, plotting.pictures(plotting.Pictures(png=False)):
        return [
            _panels("medians", "Median round trip over size", caption + more, Path(folder), curves, labels, _medians),
            _panels("ratios", "Ratio to the first run", ratio + more, Path(folder), curves, labels, _ratios),
        ]


def _curves(found: Comparison) -> Points:
    """Curves that the first run has, with at least one other run beside it."""
    if "size" not in found.by:
        return {}
    curves: Points = {}
    for group in found.groups:
        curve = tuple(value for name, value in group.key.items() if name != "size")
        runs = curves.setdefault(curve, [[] for _ in found.runs])
        for points, figures in zip(runs, group.runs, strict=True):
            if figures is not None and figures.p50_us is not None:
                points.append((int(group.key["size"]), figures))
    return {curve: runs for curve, runs in curves.items() if runs[0] and any(runs[1:])}


Paint = Callable[[Axes, Sequence[Sequence[tuple[int, Figures]]]], None]


def _panels(
    stem: str,
    title: str,
    caption: str,
    folder: Path,
    curves: Mapping[Curve, Sequence[Sequence[tuple[int, Figures]]]],
    labels: Sequence[str],
    paint_one: Paint,
) -> Drawing:
    def shape(narrow: bool) -> tuple[int, int]:
        return plotting.grid_shape(len(curves), 1 if narrow else min(_COLUMNS, len(curves)))

    def paint(figure: Figure) -> None:
        rows, columns = shape(plotting.is_narrow(figure))
        handles = [
            Line2D([], [], color=_colour(place), marker=_marker(place), label=label)
            for place, label in enumerate(labels)
        ]
        legend_columns, more = plotting.legend_rows(figure, labels)
        space = plotting.margins(figure, left=0.72, right=0.15, top=0.75 + more, bottom=0.52)
        grid = figure.subplots(rows, columns, squeeze=False, gridspec_kw={"hspace": 0.5, "wspace": 0.3, **space})
        axes = [axis for line in grid for axis in line]
        for axis, (curve, runs) in zip(axes, curves.items(), strict=False):
            sizes = sorted({size for points in runs for size, _ in points})
            paint_one(axis, runs)
            plotting.panel_title(axis, " ".join(map(str, curve)))
            plotting.size_axis(axis, sizes, log=plotting.geometric(sizes), most=5)
        for axis in axes[len(curves) :]:
            axis.set_axis_off()
        plotting.legend(figure, handles, legend_columns)

    seen = "; ".join(_in_words(curve, runs, labels) for curve, runs in curves.items())
    wide, narrow = (shape(each)[0] * _PANEL_IN + 1.2 for each in (False, True))
    return plotting.draw(stem, title, caption, folder, wide, paint, seen=seen, narrow_height_in=narrow)


def _in_words(curve: Curve, runs: Sequence[Sequence[tuple[int, Figures]]], labels: Sequence[str]) -> str:
    parts = [
        f"{label} {points[0][1].p50_us:.0f} to {points[-1][1].p50_us:.0f} µs"
        for label, points in zip(labels, runs, strict=True)
        if points
    ]
    return f"{' '.join(map(str, curve))}: {', '.join(parts)}"


def _medians(axis: Axes, runs: Sequence[Sequence[tuple[int, Figures]]]) -> None:
    values = [value for points in runs for _, each in points for value in (each.p50_us, each.p99_us) if value]
    unit, scale = plotting.time_unit(max(values, default=1.0))
    for place, points in enumerate(runs):
        sizes = [size for size, _ in points]
        median = [(each.p50_us or 0) / scale for _, each in points]
        late = [(each.p99_us or 0) / scale for _, each in points]
        axis.fill_between(sizes, median, late, color=_colour(place), alpha=0.13, linewidth=0)
        _line(axis, place, sizes, median)
    low, high = min(values, default=0.1) / scale, max(values, default=1.0) / scale
    plotting.value_axis(axis, f"round trip ({unit})", low, high, log=high > 40 * low)


def _ratios(axis: Axes, runs: Sequence[Sequence[tuple[int, Figures]]]) -> None:
    found = [1.0]
    axis.axhline(1.0, color=_colour(0), linewidth=1.2)
    for place, points in enumerate(runs):
        pairs = list(_known(points)) if place else []
        _line(axis, place, [size for size, _ in pairs], [ratio for _, ratio in pairs])
        found += [ratio for _, ratio in pairs]
    low, high = min(found), max(found)
    room = max(0.02, 0.15 * (high - low))
    axis.set_ylim(low - room, high + room)
    axis.set_ylabel("ratio of medians")


def _known(points: Sequence[tuple[int, Figures]]) -> Iterator[tuple[int, float]]:
    return ((size, each.p50_ratio) for size, each in points if each.p50_ratio is not None)


def _line(axis: Axes, place: int, x: Sequence[int], y: Sequence[float]) -> None:
    axis.plot(x, y, color=_colour(place), marker=_marker(place), markersize=4, linestyle="-" if place else "--")


def _colour(place: int) -> str:
    return COLOURS[place % len(COLOURS)]


def _marker(place: int) -> str:
    return MARKERS[place % len(MARKERS)]
