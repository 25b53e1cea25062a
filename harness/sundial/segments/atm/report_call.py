# SPDX-License-Identifier: Apache-2.0
"""One call as cells on the wire: each cell at each port, request and reply on the same scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sundial.report import painting, palette, plotting
from sundial.report.plotting import Drawing
from sundial.segments.atm.report_pdus import OUTBOUND

WANTED_BYTES = 2048
"""The call of the size next to this one is drawn: two packets each way over Ethernet, and cells still wide enough."""
MOST_ROWS = 8
GAP_SHARE = 0.12
"""Of a cell, at most, is the gap drawn between it and the next one."""
NS_PER_US = 1000.0

EVEN, ODD, LAST, OTHER = palette.LINE_OUT, palette.LINE_BACK, palette.CLIENT, palette.GRID
MEANING = {EVEN: "cell", ODD: "cell of the next PDU", LAST: "last cell of a PDU", OTHER: "cell of another channel"}


@dataclass(frozen=True)
class CallSpan:
    """One call: what it is called, and first and last stamp of request and reply at the machines' ports."""

    label: str
    client: str
    server: str
    request: tuple[int, int]
    reply: tuple[int, int]


def choose(observed: pl.DataFrame) -> CallSpan | None:
    """The last call of the curve that stands first, at the size next to WANTED_BYTES; none that was sent again."""
    stamps = ("call_first_tx_ns", "call_last_rx_ns", "reply_first_tx_ns", "reply_last_rx_ns")
    needed = {"app", "transport", "procedure", "size", "client", "server", "batch", "call", *stamps}
    if not needed <= set(observed.columns):
        return None
    again = pl.col("retransmissions") if "retransmissions" in observed.columns else pl.lit(0)
    calls = observed.drop_nulls(stamps).filter(again.fill_null(0) == 0)
    if calls.is_empty():
        return None
    curves = [(row[0], row[1], row[2]) for row in calls.select("app", "transport", "procedure").unique().iter_rows()]
    look = next(iter(palette.looks(curves).items()))
    (app, transport, procedure), label = look[0], look[1].label
    row = (
        calls.filter(pl.col("app") == app, pl.col("transport") == transport, pl.col("procedure") == procedure)
        .with_columns(pl.col("client").cast(pl.String), off=(pl.col("size") - WANTED_BYTES).abs())
        .sort("off", "size", "client", "batch", "call")
        .filter(pl.col("size") == pl.col("size").first())
        .row(-1, named=True)
    )
    request, reply = (row[stamps[0]], row[stamps[1]]), (row[stamps[2]], row[stamps[3]])
    return CallSpan(f"{label}, {row['size']} B", str(row["client"]), str(row["server"]), request, reply)


def own_channels(call: CallSpan, ports: Sequence[str], base_vci: int) -> list[tuple[str, int]]:
    """Ports and VCIs of the channels between the two machines of a call, at both ends.

    Where one of them is behind another port, these are all channels between ports.
    """
    places = [
        [k for k, port in enumerate(ports) if port.partition(":")[0] == name] for name in (call.client, call.server)
    ]
    near, far = (found or list(range(len(ports))) for found in places)
    return [
        (ports[one], base_vci + other)
        for ones, others in ((near, far), (far, near))
        for one in ones
        for other in others
        if one != other
    ]


def spans(cells: pl.DataFrame, cell_ns: Mapping[str, float], own: Sequence[tuple[str, int]]) -> pl.DataFrame:
    """Cells at the ports of the `own` channels: when they are on the line (`start_us`, `wide_us`), their row, the
    number of their PDU on it, and whether they are on one of these channels.

    `cells`: as `report_pdus.on_the_wire` gives them. A stamp is the first bit at the sender, the last at the receiver.
    A PDU is what is between two last cells of one channel.
    """
    wide = pl.col("interface").replace_strict(cell_ns, return_dtype=pl.Float64) * pl.col("count")
    out = pl.col("direction") == OUTBOUND
    way = pl.when(out).then(pl.lit(" out")).otherwise(pl.lit(" in"))
    mine = pl.DataFrame(own, schema={"interface": pl.String, "vci": pl.Int64}, orient="row").with_columns(own=True)
    return (
        cells.filter(pl.col("interface").is_in(mine["interface"].to_list()))
        .join(mine.unique(), on=["interface", "vci"], how="left", maintain_order="left")
        .with_columns(pl.col("own").fill_null(value=False))
        .sort("at_ns", maintain_order=True)
        .with_columns(
            row=pl.col("interface") + way,
            wide_us=wide / NS_PER_US,
            start_us=(pl.col("at_ns") - pl.when(out).then(0.0).otherwise(wide)) / NS_PER_US,
        )
        .with_columns(
            pdu=(pl.col("last").cast(pl.Int64).cum_sum() - pl.col("last").cast(pl.Int64)).over("row", "vci"),
        )
        .sort("start_us", maintain_order=True)
    )


def draw(name: str, call: CallSpan, drawn: pl.DataFrame, caption: str, folder: Path) -> Drawing | None:
    """The picture of one call; `drawn` as `spans` gives it."""
    parts = {
        title: drawn.filter(pl.col("at_ns").is_between(first, last)).with_columns(
            pl.col("pdu") - pl.col("pdu").min().over("row", "vci")
        )
        for title, (first, last) in (("request", call.request), ("reply", call.reply))
    }
    parts = {title: part.filter(pl.col("own").any().over("row")) for title, part in parts.items() if part["own"].any()}
    if not parts:
        return None
    zero_us = call.request[0] / NS_PER_US
    rows = {
        title: part.filter("own")["row"].unique(maintain_order=True).to_list()[:MOST_ROWS]
        for title, part in parts.items()
    }
    most = max(len(found) for found in rows.values())
    long_us = max(_end(part) - plotting.least(part["start_us"]) for part in parts.values())
    height = 1.25 + 0.62 * most

    def paint(figure: painting.Figure) -> None:
        narrow = plotting.is_narrow(figure)
        handles = [painting.Patch(facecolor=colour, label=MEANING[colour]) for colour in _used(parts)]
        columns, more = plotting.legend_rows(figure, [MEANING[colour] for colour in _used(parts)])
        place = plotting.margins(figure, left=1.15, right=0.2, top=0.72 + more, bottom=0.52)
        shape = (len(parts), 1) if narrow else (1, len(parts))
        grid = figure.subplots(*shape, squeeze=False, gridspec_kw={"hspace": 0.5, "wspace": 0.42, **place})
        plotting.legend(figure, handles, columns)
        wide_pt = 72 * grid.flat[0].get_position().width * figure.get_figwidth() / (1.04 * long_us)
        thinnest_us = min(plotting.least(part["wide_us"]) for part in parts.values())
        gap_pt = min(0.35, GAP_SHARE * wide_pt * thinnest_us)
        for axis, (title, part) in zip(grid.flat, parts.items(), strict=True):
            _panel(axis, part, rows[title], zero_us, gap_pt)
            start = plotting.least(part["start_us"]) - zero_us
            axis.set_xlim(start - 0.02 * long_us, start + 1.02 * long_us)
            axis.set_ylim(most - 0.4, -0.75)
            axis.set_xlabel("time since the call's first bit (µs)")
            plotting.panel_title(axis, f"{call.label}: {title}")

    said = "; ".join(f"{title}: {_seen(part)}" for title, part in parts.items())
    narrow_height = 1.0 + (0.75 + 0.62 * most) * len(parts)
    return plotting.draw(
        f"call-{name}", "One call as cells on the wire", caption, folder, height, paint, seen=said,
        narrow_height_in=narrow_height,
    )  # fmt: skip


def _panel(axis: painting.Axes, part: pl.DataFrame, rows: list[str], zero_us: float, gap_pt: float) -> None:
    for place, row in enumerate(rows):
        cells = part.filter(pl.col("row") == row)
        bars = [(start - zero_us, wide) for start, wide in cells.select("start_us", "wide_us").iter_rows()]
        colours = _colours(cells)
        axis.broken_barh(bars, (place - 0.26, 0.52), facecolors=colours, edgecolor=palette.PAPER, linewidth=gap_pt)
        for _, group in cells.filter("own").group_by("vci", "pdu", maintain_order=True):
            start, end = plotting.least(group["start_us"]) - zero_us, _end(group) - zero_us
            words: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": 7.5, "color": palette.MUTED}
            axis.text((start + end) / 2, place - 0.34, str(group["count"].sum()), **words)
    axis.yaxis.set_major_locator(painting.FixedLocator(list(range(len(rows)))))
    axis.set_yticklabels(rows)
    axis.xaxis.set_major_locator(painting.MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axis.grid(visible=False, axis="y")
    axis.grid(visible=True, axis="x")


def _colours(cells: pl.DataFrame) -> list[str]:
    return cells.select(
        pl.when(~pl.col("own")).then(pl.lit(OTHER))
        .when(pl.col("last") & (pl.col("count") == 1)).then(pl.lit(LAST))
        .when(pl.col("pdu") % 2 == 0).then(pl.lit(EVEN))
        .otherwise(pl.lit(ODD))
    ).to_series().to_list()  # fmt: skip


def _used(parts: Mapping[str, pl.DataFrame]) -> list[str]:
    used = {colour for part in parts.values() for colour in _colours(part)}
    return [colour for colour in MEANING if colour in used]


def _end(part: pl.DataFrame) -> float:
    return plotting.greatest(part["start_us"] + part["wide_us"])


def _seen(part: pl.DataFrame) -> str:
    """A panel in words."""
    counts = part.filter("own").group_by("row", maintain_order=True).agg(pl.col("count").sum())
    us = _end(part) - plotting.least(part["start_us"])
    return ", ".join(f"{row} {count} cells" for row, count in counts.iter_rows()) + f", in {us:.1f} µs"
