# SPDX-License-Identifier: Apache-2.0
"""Steps of traced calls: a table for each curve, and a picture of one call by lanes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import polars as pl

from sundial.report import painting, palette, plotting
from sundial.report.figures import of_curve
from sundial.report.plotting import Drawing
from sundial.report.tables import Column, Table, decimal, numbers, size_text, whole, words
from sundial.report.workload import Curve, Look

WIRE = "wire"
"""What the lane of no machine is called."""
SIZES_MOST = 2
PICTURES_MOST = 3
LABEL_GAP = 0.022
"""Least distance of names in a picture, as a part of its width; on a narrow one three times that."""
CAPTION = (
    "One call of median length. Solid: the critical path, from the call's beginning to its end; the names are of "
    "functions that were entered (or left: end) where a step begins. Light: waiting in an adapter for the wire. "
    "Dotted: other work of a machine."
)

_COLUMNS = ("call", "node", "step", "start_ns", "end_ns", "on_path")
_OF_CALL = ("app", "transport", "procedure", "size", "client")


def read(directory: Path, samples: pl.DataFrame) -> pl.DataFrame:
    """Steps of the calls that count (successful, and not before the measurement), in ns since the call's beginning.

    Empty for a run that was not traced."""
    path = directory / "steps.parquet"
    calls = samples.with_row_index("call_row").filter(pl.col("ok") & ~pl.col("warmup"))
    calls = calls.select(pl.col("call_row").alias("call"), *_OF_CALL, "rtt_ns", began_ns="start_ns")
    if not path.is_file():
        return pl.DataFrame()
    steps = pl.read_parquet(path, columns=list(_COLUMNS))
    return (
        steps.join(calls, on="call", how="inner", maintain_order="left")
        .with_columns(pl.col("start_ns", "end_ns") - pl.col("began_ns"))
        .with_columns(took_ns=pl.col("end_ns") - pl.col("start_ns"))
    )


def tables(steps: pl.DataFrame, looks: Mapping[Curve, Look], sizes: Sequence[int]) -> list[Table]:
    """The steps on the path, for each curve at its least and its greatest of `sizes`."""
    found = []
    for curve, look in looks.items() if steps.height else ():
        part = of_curve(steps, curve).filter("on_path")
        present = [size for size in sizes if not part.filter(pl.col("size") == size).is_empty()]
        chosen = list(dict.fromkeys((*present[:1], *present[-1:])))[:SIZES_MOST]
        found += [_table(part.filter(pl.col("size") == size), look.label, size) for size in chosen]
    return found


def _table(part: pl.DataFrame, label: str, size: int) -> Table:
    calls = part["call"].n_unique()
    total_ns = part["took_ns"].sum()
    rows = (
        part.group_by("node", "step")
        .agg(pl.len(), pl.col("took_ns").median().alias("median_ns"), pl.col("took_ns").sum(), pl.col("start_ns").min())
        .sort("start_ns", "node", "step")
    )
    listed = tuple(
        (
            row["node"] or WIRE,
            row["step"],
            decimal(row["len"] / calls, 1 if row["len"] % calls else 0),
            decimal(row["median_ns"] / 1000, 2),
            decimal(100 * row["took_ns"] / total_ns, 1),
        )
        for row in rows.iter_rows(named=True)
    )
    columns = (*words("at"), Column("step", "code"), *numbers("times a call", "median (µs)", "% of the round trip"))
    title = f"{label}, {size_text(size, size)} bytes: the steps of {whole(calls)} calls, in order"
    return Table(title, columns, listed)


def pictures(steps: pl.DataFrame, looks: Mapping[Curve, Look], sizes: Sequence[int], folder: Path) -> list[Drawing]:
    """One call of each curve, at its least size."""
    found: list[Drawing] = []
    for curve, look in list(looks.items())[:PICTURES_MOST] if steps.height else ():
        part = of_curve(steps, curve)
        present = [size for size in sizes if not part.filter(pl.col("size") == size).is_empty()]
        if present:
            call = _median_call(part.filter(pl.col("size") == present[0]))
            found.append(picture(call, f"call-steps-{len(found) + 1}", f"{look.label}, {present[0]} bytes", folder))
    return found


def _median_call(part: pl.DataFrame) -> pl.DataFrame:
    calls = part.group_by("call").agg(pl.col("rtt_ns").first()).sort("rtt_ns", "call")
    return part.filter(pl.col("call") == calls["call"][(calls.height - 1) // 2])


def picture(call: pl.DataFrame, stem: str, title: str, folder: Path, caption: str = CAPTION) -> Drawing:
    """One call by lanes: its client, the wires, its server. `call`: rows as of `read`."""
    client, length_us = call["client"][0], call["rtt_ns"][0] / 1000
    machines = [name for name in call["node"].unique().sort().to_list() if name not in ("", client)]
    lanes = [client, "", *machines]
    unit, scale = plotting.time_unit(length_us)
    height = 0.9 + 1.25 * len(lanes)

    def paint(figure: painting.Figure) -> None:
        place = plotting.margins(figure, left=0.85, right=0.75, top=0.35, bottom=0.5)
        axis = figure.add_axes(
            (place["left"], place["bottom"], place["right"] - place["left"], place["top"] - place["bottom"])
        )
        _lanes(axis, lanes, length_us / scale)
        axis.set_xlabel(f"since the call began ({unit})")
        rows = [
            (lanes.index(row["node"]), row["step"], row["start_ns"] / 1000 / scale, row["end_ns"] / 1000 / scale)
            for row in call.filter("on_path").iter_rows(named=True)
        ]
        for lane, step, start, end in rows:
            _solid(axis, lanes[lane], step, -lane, start, end, client)
        for (lane, _, _, end), (following, *_) in pairwise(rows):
            if lane != following:
                axis.plot([end, end], [-lane, -following], color=palette.AXIS, linewidth=0.8, zorder=1)
        for row in call.filter(~pl.col("on_path")).iter_rows(named=True):
            level = -lanes.index(row["node"]) - 0.14
            times = [row["start_ns"] / 1000 / scale, row["end_ns"] / 1000 / scale]
            axis.plot(times, [level, level], color=palette.MUTED, linewidth=1.4, linestyle=(0, (1, 1.4)))
        _names(axis, [row for row in rows if lanes[row[0]]], length_us / scale)

    share = call.filter("on_path").group_by("node").agg(pl.col("took_ns").sum()).sort("took_ns", descending=True)
    seen = ", ".join(
        f"{row['node'] or WIRE} {100 * row['took_ns'] / call['rtt_ns'][0]:.0f} %" for row in share.iter_rows(named=True)
    )
    return plotting.draw(stem, title, caption, folder, height, paint, seen=f"Of {length_us:.1f} µs: {seen}")


def _lanes(axis: painting.Axes, lanes: Sequence[str], length: float) -> None:
    axis.set_xlim(-0.01 * length, 1.01 * length)
    axis.set_ylim(-len(lanes) + 0.65, 1.05)
    axis.set_yticks([-place for place in range(len(lanes))], [name or WIRE for name in lanes])
    axis.spines["left"].set_visible(False)
    axis.grid(True, axis="x")
    axis.grid(False, axis="y")


def _solid(axis: painting.Axes, node: str, step: str, level: float, start: float, end: float, client: str) -> None:
    """A step on the path; the end of each is a gap, so that they can be told apart."""
    colour = palette.LINE_OUT if not node else palette.CLIENT if node == client else palette.SERVER
    waiting = step == "send"
    width, alpha = (3.0, 0.45) if waiting else (7.0, 1.0)
    axis.add_line(
        painting.Line2D([start, end], [level, level], color=colour, linewidth=width, alpha=alpha, solid_capstyle="butt")
    )
    axis.add_line(
        painting.Line2D(
            [end, end], [level - 0.06, level + 0.06], color=palette.PAPER, linewidth=0.5, solid_capstyle="butt"
        )
    )


def _names(axis: painting.Axes, rows: Sequence[tuple[int, str, float, float]], length: float) -> None:
    """The longest steps' names above their beginnings, as many as there is room for."""
    figure = axis.get_figure()
    gap = length * LABEL_GAP * (3 if plotting.is_narrow(figure) else 1)
    placed: list[tuple[int, float]] = []
    for lane, step, start, end in sorted(rows, key=lambda row: row[2] - row[3]):
        if end - start < gap / 4 or any(lane == other and abs(start - at) < gap for other, at in placed):
            continue
        placed.append((lane, start))
        name = step.partition(" → ")[0]
        axis.text(start, -lane + 0.11, name, rotation=50, fontsize=7.5, color=palette.INK, ha="left", va="bottom")
