# SPDX-License-Identifier: Apache-2.0
"""All figures of one run, with their captions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from sundial.report import expected, figures, figures_time, settings, stats, wire_time
from sundial.report.figures import PacketLine, WireMinimum
from sundial.report.load import RunData
from sundial.report.plotting import Drawing
from sundial.report.topology_view import Topology
from sundial.report.wire_time import AnyHop
from sundial.report.workload import Curve, Look, Setting

DIRECTIONS = ("request", "reply")


@dataclass(frozen=True)
class Tables:
    """Everything computed from samples and captures that tables and figures show."""

    batches: pl.DataFrame
    summary: pl.DataFrame
    curves: pl.DataFrame
    stages: pl.DataFrame
    looks: dict[Curve, Look]
    sizes: list[int]
    clients: list[str]
    servers: list[str]
    statistic: str
    common_axis: bool


def draw_all(data: RunData, made: Tables, topology: Topology, folder: Path) -> dict[str, Drawing]:
    """Draws what there is data for; by file stem, in the order of the page."""
    looks, curves = made.looks, made.curves
    floors, lines, remark = _expectations(data, made, topology)
    mostly = "mean over the clients; " if len(made.clients) > 1 else ""
    statistic = stats.statistic_named(made.statistic)
    found = [
        figures.latency_throughput(
            curves,
            looks,
            floors,
            "Round trip: median as line, least to 95th percentile as band. Throughput: payload of both directions, "
            f"2N/T, 1 kB = 1000 B; {mostly}{statistic.throughput_note} T includes what the caller does "
            f"between calls. {remark}",
            folder,
        ),
        figures.packets(
            seen_packets(data.observed),
            lines,
            looks,
            "Line: what the protocol says for every size. Points: what the capture shows, one for each count seen at "
            "a size; a ring marks sizes with a mismatch. Over UDP a packet is an IP fragment, over TCP a segment with "
            "payload.",
            folder,
        ),
        figures_time.stages(made.stages, looks, made.common_axis, _stage_caption(made.common_axis), folder),
        figures_time.distributions(
            _round_trips(data.samples, made.sizes), made.sizes, looks,
            "Share of successful calls that took at most so long, at some of the sizes. The axis shows the range that "
            "occurred and does not begin at zero.",
            folder,
        ),
        figures.spread(
            curves, looks,
            "Standard deviation of the series' throughputs in percent of their mean, for each size"
            f"{statistic.spread_note}.",
            folder,
        ),
        figures_time.clients(
            made.summary, made.sizes, looks, "Every client at some of the sizes; equal rows mean a fair share.", folder
        ),
        figures.troubles(
            curves, looks,
            "What the client counted: requests sent again, and calls that ended without the right reply.",
            folder,
        ),
    ]  # fmt: skip
    return {drawing.stem: drawing for drawing in found if drawing is not None}


def _stage_caption(common_axis: bool) -> str:
    shared = (
        "Mean over calls without retransmission. Wire: from the first bit of the first packet at the sender's port to "
        "the last bit of the last one at the receiver's, from capture stamps; queues and waiting for the medium count "
        "as wire. "
    )
    if common_axis:
        return shared + "Client: from the start of the call to its first packet, and from the last reply packet on."
    return shared + "Client: the rest of the round trip; its two ends cannot be told apart, as guests have own clocks."


def _expectations(
    data: RunData, made: Tables, topology: Topology
) -> tuple[dict[Curve, WireMinimum], dict[tuple[Curve, str], PacketLine], str]:
    """Wire minimum and packet lines of each curve, and what to say about the former."""
    floors: dict[Curve, WireMinimum] = {}
    lines: dict[tuple[Curve, str], PacketLine] = {}
    if not made.clients or not made.servers:
        return floors, lines, ""
    client, server = made.clients[0], made.servers[0]
    out, back = wire_time.hops(topology, client, server), wire_time.hops(topology, server, client)
    for curve, setting in settings.settings(data.directory, made.batches, list(made.looks)).items():
        sizes = _sizes(made.curves, curve)
        counts = settings.verified_counts(data.verify, curve)
        if not sizes:
            continue
        if settings.agrees(setting, counts):
            _add(floors, lines, setting, sizes, out, back)
        else:
            lines |= {(curve, direction): line for direction, line in settings.lines_of_counts(counts).items()}
    return floors, lines, _floor_remark(topology, client, server) if floors else ""


def _add(
    floors: dict[Curve, WireMinimum], lines: dict[tuple[Curve, str], PacketLine], setting: Setting, sizes: list[int],
    out: list[AnyHop] | None, back: list[AnyHop] | None,
) -> None:  # fmt: skip
    lines |= {(setting.curve, direction): line for direction, line in expected.packet_lines(setting, sizes).items()}
    if out and back:
        floor = expected.wire_minimum(setting, sizes, out, back)
        if floor:
            floors[setting.curve] = floor


def _floor_remark(topology: Topology, client: str, server: str) -> str:
    path = topology.path(client, server) or []
    jitter = any(segment.delays_vary for _, segment, _ in path)
    bridged = any(node.role == "bridge" for node in topology.machines)
    text = "Dashed: the least that the packets of a call need on empty wires (preamble, padding, FCS, gaps, propagation"
    text += ", configured delay at its mean" if jitter else ", configured delay"
    return text + (", nothing for the bridging guest)." if bridged else ").")


def _sizes(curves: pl.DataFrame, curve: Curve) -> list[int]:
    app, transport, procedure = curve
    part = curves.filter(pl.col("app") == app, pl.col("transport") == transport, pl.col("procedure") == procedure)
    return sorted(int(size) for size in part["size"].to_list())


def _round_trips(samples: pl.DataFrame, sizes: list[int]) -> pl.DataFrame:
    return (
        stats.measured(samples.filter(pl.col("size").is_in(sizes)))
        .filter(pl.col("ok"))
        .select(pl.col(stats.CURVE).cast(pl.String), "size", (pl.col("rtt_ns") / stats.NS_PER_US).alias("rtt_us"))
    )


def seen_packets(observed: pl.DataFrame) -> pl.DataFrame:
    """Packets a call as captured: app, transport, procedure, size, direction, packets, calls, wrong.

    `wrong` counts the calls that verification failed. Calls without any frame are mismatches too and stand among the
    problems; they have no point here.
    """
    columns = [*stats.CURVE, "size"]
    parts = []
    for direction in DIRECTIONS:
        seen = f"{direction}_packets"
        if all(name in observed.columns for name in (*columns, seen)):
            failed = pl.col("verdict") == "fail" if "verdict" in observed.columns else pl.lit(False)
            parts.append(
                observed.drop_nulls(seen)
                .group_by(*columns, pl.col(seen).cast(pl.Int64).alias("packets"))
                .agg(calls=pl.len().cast(pl.Int64), wrong=failed.sum().cast(pl.Int64))
                .with_columns(pl.col(stats.CURVE).cast(pl.String), pl.lit(direction).alias("direction"))
            )
    if parts:
        return pl.concat(parts).sort(*columns, "direction", "packets")
    names = dict.fromkeys((*stats.CURVE, "direction"), pl.String)
    return pl.DataFrame(schema=names | dict.fromkeys(("size", "packets", "calls", "wrong"), pl.Int64))
