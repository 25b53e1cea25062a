# SPDX-License-Identifier: Apache-2.0
"""Figures of time: where one call spends it, how round trips are distributed, how clients compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from sundial.report import painting, palette, plotting
from sundial.report.figures import greatest_seen, of_curve
from sundial.report.plotting import Drawing
from sundial.report.stats import ecdf
from sundial.report.workload import Curve, Look

FIVE_STAGES = (
    ("client_call", "client: call", palette.CLIENT),
    ("wire_out", "wire out", palette.LINE_OUT),
    ("server", "server", palette.SERVER),
    ("wire_back", "wire back", palette.LINE_BACK),
    ("client_return", "client: return", palette.CLIENT_BACK),
)
FOUR_STAGES = (("client", "client", palette.CLIENT), *FIVE_STAGES[1:4])
FEW_SIZES = 5
"""Up to so many sizes are drawn as bars, more as areas."""


def stages(
    table: pl.DataFrame, looks: Mapping[Curve, Look], common_axis: bool, caption: str, folder: Path
) -> Drawing | None:
    """Where the time goes, stacked over size, one panel a curve."""
    present = [curve for curve in looks if not of_curve(table, curve).is_empty()]
    if not present:
        return None
    names = FIVE_STAGES if common_axis else FOUR_STAGES
    height = 0.95 + 2.35 * plotting.grid_shape(len(present), 2)[0]
    unit, scale = plotting.time_unit(plotting.greatest(table["rtt"]))
    sizes = table["size"].unique().sort().to_list()
    log_x = plotting.geometric(sizes)

    def paint(figure: painting.Figure) -> None:
        rows, columns = plotting.grid_shape(len(present), 1 if plotting.is_narrow(figure) else 2)
        ncols, more = plotting.legend_rows(figure, [name for _, name, _ in names])
        place = plotting.margins(figure, left=0.6, right=0.25, top=0.72 + more, bottom=0.52)
        grid = figure.subplots(
            rows,
            columns,
            sharex=True,
            sharey=True,
            squeeze=False,
            gridspec_kw={"hspace": 0.28, "wspace": 0.07, **place},
        )
        top = plotting.greatest(table["rtt"]) / scale
        # All share both axes: what is set on one of them holds for all.
        grid.flat[0].set_ylim(0, top * 1.05 if top else 1)
        grid.flat[0].yaxis.set_major_locator(painting.MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
        if len(sizes) > FEW_SIZES:
            plotting.size_axis(grid.flat[0], sizes, log=log_x, label=False, most=8)
        else:
            _size_places(grid.flat[0], sizes)
        for index, axis in enumerate(grid.flat):
            if index >= len(present):
                axis.set_visible(False)
                continue
            part = of_curve(table, present[index])
            x = part["size"].to_list()
            layers = [(part[column].clip(lower_bound=0) / scale).to_list() for column, _, _ in names]
            colours = [colour for _, _, colour in names]
            if len(sizes) <= FEW_SIZES:
                _bars(axis, sizes, x, layers, colours)
            else:
                axis.stackplot(x, layers, colors=colours, linewidth=0)
            if index + columns >= len(present):
                axis.set_xlabel(plotting.SIZE)
                axis.tick_params(axis="x", labelbottom=True)
            plotting.panel_title(axis, looks[present[index]].label)
            if index % columns == 0:
                axis.set_ylabel(f"time of a call ({unit})")
        handles = [painting.Patch(facecolor=colour, label=name) for _, name, colour in names]
        plotting.legend(figure, handles, ncols)

    seen = "; ".join(_stages_seen(of_curve(table, curve), looks[curve]) for curve in present)
    narrow = 1.4 + 2.35 * len(present)
    return plotting.draw(
        "stages", "Where the time goes", caption, folder, height, paint, seen=seen, narrow_height_in=narrow
    )


def _stages_seen(table: pl.DataFrame, look: Look) -> str:
    """A panel of `stages` in words."""
    said = []
    for row in (table.row(0, named=True), table.row(-1, named=True)):
        wire = 100 * (row["wire_out"] + row["wire_back"]) / row["rtt"]
        said.append(f"{wire:.0f} % at {row['size']} B")
    return f"{look.label}: of a call the wire takes {' and '.join(said)}"


def _bars(
    axis: painting.Axes, sizes: Sequence[int], x: Sequence[int], layers: list[list[float]], colours: list[str]
) -> None:
    """Stacks at the sizes `x`; panels share the axis, so a place belongs to a size of the whole figure."""
    places = [sizes.index(size) for size in x]
    base = [0.0] * len(x)
    for layer, colour in zip(layers, colours, strict=True):
        axis.bar(places, layer, 0.62, bottom=base, color=colour, edgecolor=palette.PAPER, linewidth=0.6)
        base = [low + more for low, more in zip(base, layer, strict=True)]


def _size_places(axis: painting.Axes, sizes: Sequence[int]) -> None:
    """Sets up x for `_bars`."""
    axis.xaxis.set_major_locator(painting.FixedLocator(list(range(len(sizes)))))
    axis.xaxis.set_major_formatter(
        painting.FuncFormatter(lambda value, _: str(sizes[int(value)]) if 0 <= value < len(sizes) else "")
    )
    axis.set_xlim(-0.6, len(sizes) - 0.4)


def distributions(
    calls: pl.DataFrame, sizes: Sequence[int], looks: Mapping[Curve, Look], caption: str, folder: Path
) -> Drawing | None:
    """Cumulative distribution of the round trip, one panel a chosen size, every curve in each.

    `calls`: one row a successful measured call: app, transport, procedure, size, rtt_us.
    """
    chosen = [size for size in sizes if not calls.filter(pl.col("size") == size).is_empty()]
    if not chosen:
        return None
    height = 1.0 + 2.1 * plotting.grid_shape(len(chosen), 2)[0]

    def paint(figure: painting.Figure) -> None:
        rows, columns = plotting.grid_shape(len(chosen), 1 if plotting.is_narrow(figure) else 2)
        ncols, more = plotting.legend_rows(figure, [look.label for look in looks.values()])
        place = plotting.margins(figure, left=0.75, right=0.2, top=0.75 + more, bottom=0.52)
        grid = figure.subplots(
            rows, columns, sharey=True, squeeze=False, gridspec_kw={"hspace": 0.5, "wspace": 0.09, **place}
        )
        handles = {}
        for index, axis in enumerate(grid.flat):
            if index >= len(chosen):
                axis.set_visible(False)
                continue
            part = calls.filter(pl.col("size") == chosen[index])
            least, most = plotting.least(part["rtt_us"]), plotting.greatest(part["rtt_us"])
            unit, scale = plotting.time_unit(most if most < 20 * least else max(most, 2_000))
            for curve, look in looks.items():
                x, y = ecdf(of_curve(part, curve)["rtt_us"] / scale)
                if x:
                    (handles[look.label],) = axis.plot(
                        [x[0], *x], [0.0, *y], drawstyle="steps-post", color=look.colour, linestyle=look.dashes,
                        linewidth=1.6, label=look.label,
                    )  # fmt: skip
            _time_axis(axis, least / scale, most / scale)
            axis.set_ylim(0, 1.02)
            axis.yaxis.set_major_locator(painting.FixedLocator([0, 0.25, 0.5, 0.75, 1]))
            axis.yaxis.set_major_formatter(painting.FuncFormatter(lambda value, _: f"{100 * value:g} %"))
            axis.grid(True, axis="x")
            plotting.panel_title(axis, f"{chosen[index]} bytes")
            axis.set_xlabel(f"round trip ({unit})")
            if index % columns == 0:
                axis.set_ylabel("calls at or below")
        plotting.legend(figure, list(handles.values()), ncols)

    seen = "; ".join(f"{size} B: {_times_seen(calls.filter(pl.col('size') == size), looks)}" for size in chosen)
    title, narrow = "Distribution of the round trip", 1.4 + 2.1 * len(chosen)
    return plotting.draw("distributions", title, caption, folder, height, paint, seen=seen, narrow_height_in=narrow)


def _times_seen(calls: pl.DataFrame, looks: Mapping[Curve, Look]) -> str:
    """A panel of `distributions` in words."""
    parts = [(look.label, of_curve(calls, curve)["rtt_us"]) for curve, look in looks.items()]
    return ", ".join(
        f"{label} {plotting.least(part):.0f} to {plotting.greatest(part):.0f} µs" for label, part in parts if len(part)
    )


def _time_axis(axis: painting.Axes, low: float, high: float) -> None:
    if low > 0 and high > 20 * low:
        axis.set_xscale("log")
        subs = (1.0, 2.0, 5.0) if high < 200 * low else (1.0,)
        axis.xaxis.set_major_locator(painting.LogLocator(base=10, subs=subs, numticks=9))
        axis.xaxis.set_minor_formatter(painting.NullFormatter())
        axis.set_xlim(low / 1.1, high * 1.1)
    else:
        pad = 0.04 * (high - low) or 0.02 * high or 1.0
        axis.set_xlim(low - pad, high + pad)
        axis.xaxis.set_major_locator(painting.MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    axis.xaxis.set_major_formatter(painting.FuncFormatter(lambda value, _: f"{value:g}"))


def clients(
    summary: pl.DataFrame, sizes: Sequence[int], looks: Mapping[Curve, Look], caption: str, folder: Path
) -> Drawing | None:
    """Median round trip and throughput of each client at the chosen sizes, where there are several clients."""
    names = summary["client"].unique().sort().to_list() if not summary.is_empty() else []
    chosen = [size for size in sizes if not summary.filter(pl.col("size") == size).is_empty()]
    if len(names) < 2 or not chosen:
        return None
    height = 1.05 + 0.26 * len(names) * len(chosen) + 0.25 * len(chosen)
    unit, scale = plotting.time_unit(plotting.greatest(summary["rtt_median_us"]))

    def paint(figure: painting.Figure) -> None:
        ncols, more = plotting.legend_rows(figure, [look.label for look in looks.values()])
        place = plotting.margins(figure, left=1.35, right=0.2, top=0.6 + more, bottom=0.52)
        axes = figure.subplots(1, 2, sharey=True, gridspec_kw={"wspace": 0.06, **place})
        ticks, labels, handles = [], [], {}
        position = 0.0
        for size in chosen:
            for name in names:
                ticks.append(position)
                labels.append(f"{size} B   {name}")
                for curve, look in looks.items():
                    row = of_curve(summary, curve).filter(pl.col("size") == size, pl.col("client") == name)
                    if row.is_empty():
                        continue
                    for axis, value in ((axes[0], row["rtt_median_us"][0]), (axes[1], row["throughput_kBps"][0])):
                        if value is not None:
                            shown = value / scale if axis is axes[0] else value
                            (handles[look.label],) = axis.plot(
                                [shown], [position], look.marker, color=look.colour, markersize=5.5, label=look.label,
                                markeredgewidth=0,
                            )  # fmt: skip
                position += 1.0
            position += 0.8
        for axis, label in ((axes[0], f"median round trip ({unit})"), (axes[1], "throughput (kB/s)")):
            axis.set_xlim(left=0)
            axis.grid(True, axis="both")
            axis.set_xlabel(label)
            most = 3 if plotting.is_narrow(figure) else 6
            axis.xaxis.set_major_locator(painting.MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]))
        axes[0].set_ylim(position - 1.1, -0.7)
        axes[0].yaxis.set_major_locator(painting.FixedLocator(ticks))
        axes[0].set_yticklabels(labels)
        plotting.legend(figure, list(handles.values()), ncols)

    seen = greatest_seen(summary, "rtt_median_us", "µs median round trip", looks)
    return plotting.draw("clients", "Clients compared", caption, folder, height, paint, seen=seen)
