# SPDX-License-Identifier: Apache-2.0
"""What is between client and server of a run: cells of a frame, time of a cell, and the least time of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain

from sundial.report import expected, registry, settings, stats, topology_read, wire_time
from sundial.report.workload import Setting
from sundial.reproduce.measure import Measured

ETHERNET_HEADER = 14


@dataclass(frozen=True)
class Expected:
    """Request and reply of a call by the protocols' arithmetic."""

    packets: tuple[int, int]
    cells: tuple[int, int] | None

    @property
    def all_packets(self) -> int:
        return sum(self.packets)

    @property
    def all_cells(self) -> int | None:
        return None if self.cells is None else sum(self.cells)


@dataclass(frozen=True)
class Wires:
    """The way of a run's calls."""

    cells: Callable[[int], int | None] | None = None
    """Of a frame (bytes from destination MAC to the end of the payload); None where it is never cut into cells."""
    cell_us: float | None = None
    bound_us: Mapping[int, float] = field(default_factory=dict)
    expected: Mapping[int, Expected] = field(default_factory=dict)


def read_wires(run: Measured) -> Wires:
    """From the run's topology, and the options of both ends; the run has calls of one transport."""
    calls = run.calls()
    if calls.is_empty():
        return Wires()
    client, server = calls.select("client", "server").row(0)
    topology = topology_read.read(run.run, [client], [server])
    ways = (wire_time.hops(topology, client, server), wire_time.hops(topology, server, client))
    cells, cell_us = None, None
    for segment in topology.segments:
        if (packet_cells := segment.packet_cells) is not None:
            cells = _of_frame(packet_cells)
    for hop in chain.from_iterable(way or () for way in ways):
        if isinstance(hop, wire_time.CellHop):
            cell_us = max(cell_us or 0.0, hop.cell_in_ns / 1e3, hop.cell_out_ns / 1e3)
    batches = stats.batches(run.samples)
    app, transport, procedure = batches.select(stats.CURVE).row(0)
    key = (app, transport, procedure)
    setting = settings.settings(run.folder, batches, [key])[key]
    sizes = sorted(batches["size"].unique().to_list())
    out, back = ways
    floor = expected.wire_minimum(setting, sizes, out, back) if out and back else None
    return Wires(
        cells,
        cell_us,
        dict(zip(floor.sizes, floor.us, strict=True)) if floor else {},
        {size: found for size in sizes if (found := _expected(setting, size, cells)) is not None},
    )


def _of_frame(packet_cells: Callable[[int], int | None]) -> Callable[[int], int | None]:
    return lambda frame_bytes: packet_cells(frame_bytes - ETHERNET_HEADER)


def _expected(setting: Setting, size: int, cells: Callable[[int], int | None] | None) -> Expected | None:
    legs = registry.legs(setting, size)
    if legs is None:
        return None
    request, reply = (len(leg.packets) for leg in legs)
    counted = [[cells(packet.frame) for packet in leg.packets] for leg in legs] if cells else []
    known = [[each for each in leg if each is not None] for leg in counted]
    all_known = bool(known) and [len(leg) for leg in known] == [request, reply]
    return Expected((request, reply), (sum(known[0]), sum(known[1])) if all_known else None)
