# SPDX-License-Identifier: Apache-2.0
"""The figures of khandker: measured (full), printed (hollow, dashed)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sundial.papers.khandker.results import NULL, Rate, Results
from sundial.papers.khandker.sizes import HUB, LARGE, LINK
from sundial.report import palette, plotting, steps
from sundial.report.plotting import Drawing
from sundial.reproduce.figures import Points, legend_above, one_axis, plot_printed, xy

LATER, FIRST = palette.SPARE[0], palette.SPARE[3]
OF_WIRE = {HUB: (palette.SPARE[0], "hub"), LINK: (palette.SPARE[3], "full-duplex link")}
INSETS = (1393, 4017)
SUM, REPLAY = palette.SPARE[1], palette.SPARE[4]


def draw_all(results: Results, folder: Path) -> Iterator[Drawing | None]:
    """None for one that nothing was measured for."""
    return (draw(results, folder) for draw in (draw_latency, draw_threads, draw_path, draw_errors))


def draw_latency(results: Results, folder: Path) -> Drawing | None:
    """Figure 3, with the two jumps that it enlarges."""
    if "window" not in results.latency:
        return None
    paper, sizes = results.paper, results.latency["window"].sizes
    later = {size: seen.mean_us / 1e3 for size, seen in sizes.items() if size >= 0}
    first = {size: us / 1e3 for size, us in results.first_us.items() if size >= 0}
    printed = {size: us / 1e3 for size, us in zip(paper.sizes, paper.measured, strict=True)}
    printed[paper.text.most_size] = paper.text.most_us / 1e3

    def paint(figure: Figure) -> None:
        narrow = plotting.is_narrow(figure)
        place = plotting.margins(figure, left=0.72, right=0.2, top=0.66, bottom=0.52)
        grid = figure.add_gridspec(
            1 if not narrow else 2, 3 if not narrow else 2, wspace=0.32, hspace=0.45,
            width_ratios=(3.2, 1, 1) if not narrow else (1, 1), **place,
        )  # fmt: skip
        main = figure.add_subplot(grid[0, 0] if not narrow else grid[0, :])
        insets = [figure.add_subplot(grid[-1, number + (0 if narrow else 1)]) for number in range(2)]
        _measured(main, first, FIRST, "first call")
        _measured(main, later, LATER, "later calls, mean")
        plot_printed(main, printed, "later calls, printed")
        main.plot([0], [paper.text.first_null_us / 1e3], color=FIRST, marker="o", markersize=5, linestyle="none",
                  markerfacecolor=palette.PAPER, label="first null call, printed")  # fmt: skip
        main.plot([0], [sizes[NULL].mean_us / 1e3], color=LATER, marker="x", linestyle="none", label="null, later")
        plotting.value_axis(main, "ms", 0, max([*later.values(), *first.values(), *printed.values()]), log=False)
        plotting.size_axis(main, sorted(later), step=8032, most=9)
        for axis, jump in zip(insets, INSETS, strict=True):
            _inset(axis, jump, {size: value for size, value in later.items() if abs(size - jump) <= 1})
        legend_above(figure, 5, narrow=2)

    title = "Figure 3: round trips by size"
    caption = (
        f"{title}. Hollow: printed, where a number is. Right: the jumps at 1393 and 4017 bytes (mean of later calls)."
    )
    ends = (min(later), max(later))
    seen = "; ".join(f"{size} B: {later[size]:.2f} ms" for size in ends)
    return plotting.draw("figure-3", title, caption, folder, 4.4, paint, seen=seen, narrow_height_in=5.6)


def _inset(axis: Axes, jump: int, points: Points) -> None:
    _measured(axis, points, LATER, "")
    plotting.panel_title(axis, f"{jump}")
    axis.set_xticks(sorted(points), [f"{size:g}" for size in sorted(points)], fontsize=7)
    axis.set_xlim(jump - 1.6, jump + 0.6)
    if len(points) == 2:
        low, high = (points[size] for size in sorted(points))
        axis.annotate(f"{high - low:+.2f} ms", (jump - 0.5, (low + high) / 2), ha="right", fontsize=8)
    axis.set_ylabel("ms")


def _measured(axis: Axes, points: Points, colour: str, label: str) -> None:
    axis.plot(*xy(points), color=colour, marker="o", markersize=3.5, label=label)


def draw_threads(results: Results, folder: Path) -> Drawing | None:
    """Figure 4: rates by threads."""
    if not results.rates:
        return None
    paper = results.paper.threads
    panels: Sequence[tuple[str, str, Sequence[float]]] = (
        ("null", "null calls a second", paper.null_calls_per_s), ("put", f"Mb/s, {LARGE} bytes a call", paper.put_mbps)
    )  # fmt: skip

    def value(procedure: str, rate: Rate) -> float:
        return rate.per_s if procedure == "null" else rate.mbps(LARGE)

    def paint(figure: Figure) -> None:
        place = plotting.margins(figure, left=0.72, right=0.2, top=0.62, bottom=0.52)
        rows, columns = (2, 1) if plotting.is_narrow(figure) else (1, 2)
        axes = figure.subplots(rows, columns, gridspec_kw={**place, "wspace": 0.25, "hspace": 0.35}).ravel()
        for axis, (procedure, label, printed) in zip(axes, panels, strict=True):
            most = max(printed)
            for wire, (colour, name) in OF_WIRE.items():
                points = {n: value(procedure, rate) for (of, what, n), rate in results.rates.items()
                          if (of, what) == (wire, procedure)}  # fmt: skip
                if points:
                    _measured(axis, points, colour, name)
                    most = max(most, *points.values())
            plot_printed(axis, dict(enumerate(printed, 1)), "printed")
            plotting.value_axis(axis, label, 0, most, log=False)
            axis.set_xticks(range(1, len(printed) + 1))
            axis.set_xlabel("threads")
        legend_above(figure, 3, narrow=3)

    title = "Figure 4: throughput by caller threads"
    best = {procedure: max(value(procedure, rate) for (_, what, _), rate in results.rates.items() if what == procedure)
            for procedure in {what for _, what, _ in results.rates}}  # fmt: skip
    seen = ", ".join(f"{procedure}: up to {most:.1f}" for procedure, most in sorted(best.items()))
    caption = f"{title}. Dashed with hollow marks: printed (table 1). Full: measured."
    return plotting.draw("figure-4", title, caption, folder, 3.6, paint, seen=seen, narrow_height_in=5.4)


def draw_path(results: Results, folder: Path) -> Drawing | None:
    """Figure 5: the path of one call."""
    shown = results.picture
    if shown is None:
        return None
    call = shown.pieces.with_columns(
        client=pl.lit(shown.client), rtt_ns=pl.lit(shown.rtt_ns), took_ns=pl.col("end_ns") - pl.col("start_ns")
    )
    caption = (
        "Figure 5: the call of 24096 bytes whose length is the median. Solid: the round trip path, step by step, "
        "under the paper's names. Light: waiting in an adapter for the wire. Dotted: what a machine did besides."
    )
    return steps.picture(call, "figure-5", "Figure 5: the path of 24096 bytes", folder, caption)


def draw_errors(results: Results, folder: Path) -> Drawing | None:
    """Errors of both predictors by size."""
    if not results.latency or results.costs is None:
        return None
    lines: list[tuple[str, str, str, Points]] = []
    for policy, dashes in zip(results.latency, ("-", ":"), strict=False):
        predicted = results.predicted(policy)
        lines += [
            (f"sum, {policy}", SUM, dashes, {each.size: each.sum_error for each in predicted}),
            (f"replay, {policy}", REPLAY, dashes, {each.size: each.replay_error for each in predicted}),
        ]
    paper = results.paper
    printed = dict(zip(paper.sizes, paper.error_pct, strict=True))

    def paint(figure: Figure) -> None:
        axis = one_axis(figure)
        axis.axhspan(-2, 2, color=palette.GRID, alpha=0.6, linewidth=0)
        for name, colour, dashes, points in lines:
            axis.plot(*xy(points), color=colour, linestyle=dashes, marker="o", markersize=3.5, label=name)
        plot_printed(axis, printed, "the paper's sum, printed")
        most = max(9.0, *(abs(value) for _, _, _, points in lines for value in points.values()))
        axis.set_ylim(-1.1 * most, 1.1 * most)
        axis.set_ylabel("error (%)")
        plotting.size_axis(axis, sorted({size for _, _, _, points in lines for size in points}), step=8032)
        legend_above(figure, 5, narrow=2)

    title = "Errors of the predictors"
    caption = f"{title}: (measured - calculated) / measured. Unit costs are of 0, 1392, 4016 and 4017 bytes. Band: 2 %."
    seen = "; ".join(
        f"{name}: {min(points.values()):+.1f} to {max(points.values()):+.1f} %" for name, _, _, points in lines
    )
    return plotting.draw("errors", title, caption, folder, 3.4, paint, seen=seen, narrow_height_in=4.2)
