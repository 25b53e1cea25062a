# SPDX-License-Identifier: Apache-2.0
"""Figures over the argument size: latency and throughput, series spread, retransmissions.

Each function takes finished tables, writes one figure and returns it; None where there is nothing to show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from sundial.report import painting, palette, plotting, registry
from sundial.report.plotting import Drawing, EndLabel
from sundial.report.workload import BOTH_DIRECTIONS, Curve, Look

MOST_END_LABELS = 9
MARKED_SIZES = 60
"""Up to so many sizes each point of a curve gets a marker."""


@dataclass(frozen=True)
class WireMinimum:
    """Least round trip of a curve: (size, us), for every size where it changes."""

    sizes: list[int]
    us: list[float]


@dataclass(frozen=True)
class PacketLine:
    """Expected packets of one direction over size; `fewest` differs from `most` where TCP is free to choose."""

    sizes: list[int]
    fewest: list[int]
    most: list[int]


def of_curve(table: pl.DataFrame, curve: Curve) -> pl.DataFrame:
    """The rows of one curve, by size."""
    app, transport, procedure = curve
    return table.filter(pl.col("app") == app, pl.col("transport") == transport, pl.col("procedure") == procedure).sort(
        "size"
    )


def _spans(values: Sequence[float], factor: float) -> bool:
    positive = [value for value in values if value > 0]
    return bool(positive) and max(positive) > factor * min(positive)


def latency_throughput(
    curves: pl.DataFrame, looks: Mapping[Curve, Look], floors: Mapping[Curve, WireMinimum], caption: str, folder: Path
) -> Drawing | None:
    """Latency, throughput, and what latency has beyond the wire minimum (thin lines), every transport in each."""
    table = curves.filter(pl.col("rtt_median_us").is_not_null())
    if table.is_empty():
        return None
    height = 9.6 if floors else 6.9
    sizes = table["size"].unique().sort().to_list()
    log_x = plotting.geometric(sizes)
    direct = len(looks) <= MOST_END_LABELS

    def paint(figure: painting.Figure) -> None:
        names = [] if direct else [look.label for look in looks.values()] + ["wire minimum"] * bool(floors)
        columns, more = plotting.legend_rows(figure, names)
        place = plotting.margins(
            figure, left=0.72, right=1.55 if direct else 0.2, top=0.4 if direct else 0.75 + more, bottom=0.52
        )
        panels = list(figure.subplots(3 if floors else 2, 1, sharex=True, gridspec_kw={"hspace": 0.2, **place}))
        labels = [
            _latency(panels[0], table, looks, floors, log_x, direct),
            _throughput(panels[1], table, looks, floors, log_x),
        ]
        if floors:
            labels.append(_beyond(panels[2], table, looks, floors, log_x))
        plotting.size_axis(panels[-1], sizes, log=log_x)
        for axis in panels[:-1]:
            axis.tick_params(axis="x", labelbottom=False)
        if direct:
            for axis, words in zip(panels, labels, strict=True):
                plotting.end_labels(axis, words)
        else:
            handles, _ = panels[0].get_legend_handles_labels()
            plotting.legend(figure, handles, columns)

    title = "Latency and throughput over size"
    seen = "; ".join(_latency_seen(of_curve(table, curve), look) for curve, look in looks.items())
    return plotting.draw("latency-throughput", title, caption, folder, height, paint, seen=seen)


def _latency_seen(table: pl.DataFrame, look: Look) -> str:
    """A curve of `latency_throughput` in words."""
    if table.is_empty():
        return f"{look.label}: no calls"
    ends = [table.row(place, named=True) for place in (0, -1)]
    times = " to ".join(f"{end['rtt_median_us']:.0f} µs at {end['size']} B" for end in ends)
    most = plotting.greatest(table["throughput_kBps"])
    return f"{look.label}: median round trip {times}, throughput up to {most:.0f} kB/s"


def _latency(
    axis: painting.Axes, table: pl.DataFrame, looks: Mapping[Curve, Look], floors: Mapping[Curve, WireMinimum],
    log_x: bool, direct: bool,
) -> list[EndLabel]:  # fmt: skip
    unit, scale = plotting.time_unit(plotting.greatest(table["rtt_median_us"]))
    labels: list[EndLabel] = []
    lowest: list[float] = []
    for curve, look in looks.items():
        rows = of_curve(table, curve)
        if rows.is_empty():
            continue
        x = rows["size"].to_list()
        y = (rows["rtt_median_us"] / scale).to_list()
        axis.fill_between(
            x, rows["rtt_min_us"] / scale, rows["rtt_p95_us"] / scale, color=look.colour, alpha=0.16, linewidth=0
        )
        _line(axis, x, y, look)
        labels.append(EndLabel(y[-1], look.label, look.colour))
        lowest += [*y, *(rows["rtt_min_us"] / scale).to_list()]
    floor_end = 0.0
    for curve, floor in floors.items():
        y = [value / scale for value in floor.us]
        axis.plot(floor.sizes, y, color=looks[curve].colour, linewidth=0.8, dashes=(3, 2))
        lowest += y
        floor_end = max(floor_end, y[-1])
    if floors:
        labels.append(EndLabel(floor_end, "wire minimum", palette.MUTED))
        axis.plot([], [], color=palette.MUTED, linewidth=0.8, dashes=(3, 2), label=None if direct else "wire minimum")
    medians = (table["rtt_median_us"] / scale).to_list()
    top = max([*medians, plotting.greatest(table["rtt_p95_us"]) / scale])
    log_y = (
        (log_x and _spans(medians, 10))
        or top > 5 * max(medians)
        or _spans([float(value or 0) for value in _ends(table)], 40)
    )
    positive = [value for value in lowest if value > 0]
    plotting.value_axis(axis, f"round trip ({unit})", min(positive, default=0.1), top, log=log_y)
    plotting.panel_title(axis, "Latency")
    return labels


def _throughput(
    axis: painting.Axes,
    table: pl.DataFrame,
    looks: Mapping[Curve, Look],
    floors: Mapping[Curve, WireMinimum],
    log_x: bool,
) -> list[EndLabel]:
    labels: list[EndLabel] = []
    shown: list[float] = []
    for curve, look in looks.items():
        rows = of_curve(table, curve).drop_nulls("throughput_kBps")
        if log_x:
            rows = rows.filter(pl.col("throughput_kBps") > 0)
        if rows.is_empty():
            continue
        y = rows["throughput_kBps"].to_list()
        _line(axis, rows["size"].to_list(), y, look)
        labels.append(EndLabel(y[-1], look.label, look.colour))
        shown += y
    ceiling = 0.0
    for curve, floor in floors.items():
        points = [(size, 2e3 * size / us) for size, us in zip(floor.sizes, floor.us, strict=True) if us > 0]
        if not points or (log_x and not all(rate > 0 for _, rate in points)):
            points = [point for point in points if point[1] > 0]
        if points and _echoes(curve):
            axis.plot(
                [size for size, _ in points], [rate for _, rate in points],
                color=looks[curve].colour, linewidth=0.8, dashes=(3, 2),
            )  # fmt: skip
            ceiling = max(ceiling, points[-1][1])
            shown += [rate for _, rate in points]
    if ceiling:
        labels.append(EndLabel(ceiling, "wire minimum", palette.MUTED))
    positive = [value for value in shown if value > 0]
    log_y = log_x and _spans(positive, 10)
    plotting.value_axis(
        axis, "throughput (kB/s, both directions)", min(positive, default=1.0), max(shown, default=1.0), log=log_y
    )
    plotting.panel_title(axis, "Throughput")
    return labels


def _beyond(
    axis: painting.Axes,
    table: pl.DataFrame,
    looks: Mapping[Curve, Look],
    floors: Mapping[Curve, WireMinimum],
    log_x: bool,
) -> list[EndLabel]:
    """Median round trip less the wire minimum of the same size."""
    rests: dict[Curve, list[tuple[int, float]]] = {}
    for curve, floor in floors.items():
        least = dict(zip(floor.sizes, floor.us, strict=True))
        rows = of_curve(table, curve)
        medians = zip(rows["size"].to_list(), rows["rtt_median_us"].to_list(), strict=True)
        rests[curve] = [(size, us - least[size]) for size, us in medians if size in least]
    values = [value for points in rests.values() for _, value in points]
    unit, scale = plotting.time_unit(max(values, default=0.0))
    labels = []
    for curve, points in rests.items():
        if points:
            y = [value / scale for _, value in points]
            _line(axis, [size for size, _ in points], y, looks[curve])
            labels.append(EndLabel(y[-1], looks[curve].label, looks[curve].colour))
    shown = [value / scale for value in values]
    low = min([0.0, *shown])
    positive = [value for value in shown if value > 0]
    log_y = low >= 0 and log_x and _spans(positive, 40)
    top = max(shown, default=1.0)
    plotting.value_axis(axis, f"beyond the wire ({unit})", min(positive, default=1.0), top, log=log_y)
    if low < 0:
        axis.set_ylim(bottom=low * 1.07)
    plotting.panel_title(axis, "Round trip minus the wire's minimum")
    return labels


def _ends(table: pl.DataFrame) -> list[float | None]:
    """Median round trips at the greatest size of each curve: far apart only if not by size alone."""
    return (
        table.sort("size")
        .group_by(["app", "transport", "procedure"])
        .agg(pl.col("rtt_median_us").last())["rtt_median_us"]
        .to_list()
    )


def _echoes(curve: Curve) -> bool:
    return registry.moves(curve[0], curve[2]) == BOTH_DIRECTIONS


def _line(axis: painting.Axes, x: Sequence[float], y: Sequence[float], look: Look) -> None:
    axis.plot(
        x, y, color=look.colour, linestyle=look.dashes, label=look.label,
        marker=look.marker if len(x) <= MARKED_SIZES else None, markersize=3.8, markeredgewidth=0.6,
        markeredgecolor=palette.PAPER,
    )  # fmt: skip


def spread(curves: pl.DataFrame, looks: Mapping[Curve, Look], caption: str, folder: Path) -> Drawing | None:
    """Relative standard deviation of the series' throughputs over size."""
    table = curves.drop_nulls("throughput_stddev_pct")
    if table.is_empty():
        return None
    height = 3.0
    sizes = table["size"].unique().sort().to_list()
    log_x = plotting.geometric(sizes)

    def paint(figure: painting.Figure) -> None:
        columns, place = _room_for_labels(figure, looks, top=0.2)
        axis = figure.subplots(1, 1, gridspec_kw=place)
        labels = []
        for curve, look in looks.items():
            rows = of_curve(table, curve)
            if not rows.is_empty():
                y = rows["throughput_stddev_pct"].to_list()
                _line(axis, rows["size"].to_list(), y, look)
                labels.append(EndLabel(y[-1], look.label, look.colour))
        top = plotting.greatest(table["throughput_stddev_pct"])
        plotting.value_axis(axis, "std. deviation (% of mean)", 0.01, max(top, 0.01), log=False)
        if top > 2.5:
            axis.axhline(5, color=palette.MUTED, linewidth=0.8, dashes=(3, 2))
            labels.append(EndLabel(5, "5 %", palette.MUTED))
            axis.set_ylim(0, max(top * 1.07, 5.5))
        plotting.size_axis(axis, sizes, log=log_x)
        _put_labels(figure, [(axis, labels)], columns)

    seen = greatest_seen(table, "throughput_stddev_pct", "%", looks)
    return plotting.draw("series-spread", "Spread of the series", caption, folder, height, paint, seen=seen)


def _room_for_labels(
    figure: painting.Figure, looks: Mapping[Curve, Look], *, top: float
) -> tuple[int, dict[str, float]]:
    """Columns of the legend (0: names stand at the ends of their curves) and the margins that leave room for it."""
    if len(looks) <= MOST_END_LABELS:
        return 0, plotting.margins(figure, left=0.72, right=1.55, top=top, bottom=0.52)
    columns, more = plotting.legend_rows(figure, [look.label for look in looks.values()])
    figure.set_figheight(figure.get_figheight() + 0.35)
    return columns, plotting.margins(figure, left=0.72, right=0.4, top=top + 0.35 + more, bottom=0.52)


def _put_labels(figure: painting.Figure, panels: Sequence[tuple[painting.Axes, list[EndLabel]]], columns: int) -> None:
    """The names of the curves, where `_room_for_labels` left room for them; those without a curve stay at the edge."""
    if not columns:
        for axis, labels in panels:
            plotting.end_labels(axis, labels)
        return
    handles: dict[str, painting.Artist] = {}
    for axis, labels in panels:
        for handle, name in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, handle)
        plotting.end_labels(axis, [label for label in labels if label.text not in handles])
    plotting.legend(figure, list(handles.values()), columns)


def greatest_seen(table: pl.DataFrame, column: str, unit: str, looks: Mapping[Curve, Look]) -> str:
    """The greatest value of each curve in words."""
    parts = [(look.label, of_curve(table, curve)[column]) for curve, look in looks.items()]
    return "; ".join(f"{label}: at most {plotting.greatest(part):.3g} {unit}" for label, part in parts if len(part))


def troubles(curves: pl.DataFrame, looks: Mapping[Curve, Look], caption: str, folder: Path) -> Drawing | None:
    """Retransmissions and errors a hundred calls over size, if there were any."""
    if curves.is_empty() or (not (curves["retransmissions"] > 0).any() and not (curves["errors"] > 0).any()):
        return None
    height = 4.4
    table = curves.with_columns(
        again=100 * pl.col("retransmissions") / pl.col("calls"), failed=100 * pl.col("errors") / pl.col("calls")
    )
    sizes = table["size"].unique().sort().to_list()
    log_x = plotting.geometric(sizes)

    def paint(figure: painting.Figure) -> None:
        columns, place = _room_for_labels(figure, looks, top=0.35)
        axes = figure.subplots(2, 1, sharex=True, gridspec_kw={"hspace": 0.3, **place})
        found = []
        for axis, column, name in ((axes[0], "again", "Retransmissions"), (axes[1], "failed", "Failed calls")):
            labels = []
            for curve, look in looks.items():
                rows = of_curve(table, curve)
                if rows.is_empty() or rows[column].sum() == 0:
                    continue
                y = rows[column].to_list()
                _line(axis, rows["size"].to_list(), y, look)
                labels.append(EndLabel(y[-1], look.label, look.colour))
            plotting.value_axis(axis, "per 100 calls", 0.1, plotting.greatest(table[column]), log=False)
            plotting.panel_title(axis, name)
            if not labels:
                axis.text(0.5, 0.5, "none", transform=axis.transAxes, ha="center", va="center", color=palette.MUTED)
                axis.yaxis.set_major_locator(painting.FixedLocator([0]))
            found.append((axis, labels))
        _put_labels(figure, found, columns)
        plotting.size_axis(axes[1], sizes, log=log_x)
        axes[0].tick_params(axis="x", labelbottom=False)

    seen = (
        f"Retransmissions: {greatest_seen(table, 'again', 'per 100 calls', looks)}. "
        f"Failed calls: {greatest_seen(table, 'failed', 'per 100 calls', looks)}"
    )
    return plotting.draw("retransmissions", "Retransmissions and errors", caption, folder, height, paint, seen=seen)
