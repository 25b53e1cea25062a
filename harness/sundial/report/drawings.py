# SPDX-License-Identifier: Apache-2.0
"""All figures of one run, with their captions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv4Interface
from pathlib import Path

import polars as pl

from sundial.report import (
    cells,
    expected,
    figures,
    figures_counts,
    figures_time,
    plotting,
    settings,
    stats,
    topology_read,
    wire_time,
)
from sundial.report.figures import PacketLine, WireMinimum
from sundial.report.figures_counts import DIRECTIONS
from sundial.report.load import RunData
from sundial.report.plotting import Drawing
from sundial.report.topology_view import Topology, cells_between
from sundial.report.wire_time import AnyHop
from sundial.report.workload import Curve, Look, Setting

Lines = dict[tuple[Curve, str], PacketLine]
"""Expected counts by curve and direction."""


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
    steps: pl.DataFrame
    """As `steps.read` gives them."""


@dataclass(frozen=True)
class Drawn:
    """All figures by file stem, in the order of the page, and what tables show of their lines and points."""

    drawings: dict[str, Drawing]
    floors: Mapping[Curve, WireMinimum]
    cells: pl.DataFrame
    """As `cells.seen` gives them."""


def draw_all(data: RunData, made: Tables, topology: Topology, folder: Path) -> Drawn:
    """Draws what there is data for."""
    looks, curves = made.looks, made.curves
    floors, lines, cell_lines, remark = _expectations(data, made, topology)
    mostly = "mean over the clients; " if len(made.clients) > 1 else ""
    statistic = stats.statistic_named(made.statistic)
    log_x = plotting.geometric(curves["size"].to_list())
    seen_cells = _seen_cells(data, made, topology)
    found = [
        figures.latency_throughput(
            curves,
            looks,
            floors,
            "Round trip: median as line, least to 95th percentile as band. Throughput: payload of both directions, "
            f"2N/T, 1 kB = 1000 B; {mostly}{statistic.throughput_note} T includes the caller's work "
            f"between calls. {remark}",
            folder,
        ),
        figures_counts.packets(
            seen_packets(data.observed),
            lines,
            looks,
            "Line: expected by the protocol for every size. Points: captured, one for each count observed at "
            "a size; a ring marks sizes with a mismatch. Over UDP a packet is an IP fragment, over TCP a segment with "
            "payload.",
            folder,
            log_x=log_x,
        ),
        figures_counts.packets(
            seen_cells,
            cell_lines,
            looks,
            "Line: the cells of the packets, with headers, pad and trailer of each. Points: captured in PDUs, one for "
            "each count observed at a size; a ring marks sizes with a mismatch. Acknowledgements without "
            "payload are not counted; retransmitted or overlapping calls are left out.",
            folder,
            "cells",
            log_x=log_x,
        ),
        figures_counts.saw(
            seen_cells, cell_lines, looks,
            "The same minus N/48, the cells of N bytes alone. The rest is headers, pads and trailers, in cells. A jump "
            "by one is an additional cell; a larger jump is an additional packet.",
            folder,
            log_x=log_x,
        ),
        figures_time.stages(made.stages, looks, made.common_axis, _stage_caption(made.common_axis), folder),
        figures_time.distributions(
            _round_trips(data.samples, made.sizes), made.sizes, looks,
            "Share of successful calls within a time, at some of the sizes. The axis shows the observed range and does "
            "not begin at zero.",
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
            "Counted by the client: retransmitted requests, and calls without a correct reply.",
            folder,
        ),
    ]  # fmt: skip
    drawings = {drawing.stem: drawing for drawing in found if drawing is not None}
    return Drawn(drawings, floors, seen_cells)


def _stage_caption(common_axis: bool) -> str:
    shared = (
        "Mean over calls without retransmission. Wire: from the first bit of the first packet at the sender's port to "
        "the last bit of the last one at the receiver's, from capture stamps; queues and waiting for the medium count "
        "as wire. "
    )
    if common_axis:
        return shared + "Client: from the start of the call to its first packet, and from the last reply packet on."
    return (
        shared
        + "Client: the rest of the round trip; its two ends cannot be separated, because guests have separate clocks."
    )


def _expectations(
    data: RunData, made: Tables, topology: Topology
) -> tuple[dict[Curve, WireMinimum], Lines, Lines, str]:
    """Wire minimum of each curve, its lines of packets and of cells, and what to say about the first."""
    floors: dict[Curve, WireMinimum] = {}
    lines: Lines = {}
    cell_lines: Lines = {}
    if not made.clients or not made.servers:
        return floors, lines, cell_lines, ""
    client, server = made.clients[0], made.servers[0]
    out, back = wire_time.hops(topology, client, server), wire_time.hops(topology, server, client)
    carried = cells_between(topology, client, server)
    for curve, setting in settings.settings(data.directory, made.batches, list(made.looks)).items():
        sizes = _sizes(made.curves, curve)
        counts = settings.verified_counts(data.verify, curve)
        if not sizes:
            continue
        setting = replace(setting, packet_cells=carried[1] if carried else None)
        if settings.agrees(setting, counts):
            _add(floors, lines, setting, sizes, out, back)
            of_cells = expected.cell_lines(setting, sizes)
            cell_lines |= {(curve, direction): line for direction, line in of_cells.items()}
        else:
            lines |= {(curve, direction): line for direction, line in settings.lines_of_counts(counts).items()}
    return floors, lines, cell_lines, floor_remark(topology, client, server) if floors else ""


def _add(
    floors: dict[Curve, WireMinimum], lines: Lines, setting: Setting, sizes: list[int],
    out: list[AnyHop] | None, back: list[AnyHop] | None,
) -> None:  # fmt: skip
    lines |= {(setting.curve, direction): line for direction, line in expected.packet_lines(setting, sizes).items()}
    if out and back:
        floor = expected.wire_minimum(setting, sizes, out, back)
        if floor:
            floors[setting.curve] = floor


def floor_remark(topology: Topology, client: str, server: str) -> str:
    """What the wire minimum between two machines counts, in words."""
    path = topology.path(client, server) or []
    jitter = any(segment.delays_vary for _, segment, _ in path)
    between = [topology.machine(sender.partition(":")[0]) for sender, _, _ in path[1:]]
    guests = any(machine is not None and not machine.is_device for machine in between)
    text = "Dashed: least time of a call's packets on idle wires (preamble, padding, FCS, gaps, "
    if cells_between(topology, client, server):
        text += "cells with their headers, pads and trailers, latencies, "
    text += "propagation"
    text += ", configured delay at its mean" if jitter else ", configured delay"
    return text + (", no time for guests between)." if guests else ").")


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


def _seen_cells(data: RunData, made: Tables, topology: Topology) -> pl.DataFrame:
    """Cells a call as captured on the segment that the expectations are for."""
    found = cells_between(topology, made.clients[0], made.servers[0]) if made.clients and made.servers else None
    sent = topology_read.sent_packets(data, found[0]) if found else None
    if sent is None:
        return pl.DataFrame(schema=cells.SEEN)
    addresses = {
        machine.name: [int(IPv4Interface(nic.address).ip) for nic in machine.nics if nic.address]
        for machine in topology.machines
    }
    return cells.seen(data.observed, sent, addresses)


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
