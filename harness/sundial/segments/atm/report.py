# SPDX-License-Identifier: Apache-2.0
"""An ATM switch in the drawing, and in the wire minimum: cells to it and from it, each handed on at once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from sundial import EPOCH_NS
from sundial.expect.atm import BRIDGED, BRIDGED_FCS, CELL_OCTETS, LANE, ROUTED, UNITS_PER_PS
from sundial.expect.ip import ETHERNET_HEADER
from sundial.report.segment import SegmentReport
from sundial.report.topology_view import rate_text, time_text, titled
from sundial.report.wire_time import CellHop
from sundial.segments.atm.model import Atm
from sundial.segments.atm.model_line import LINES, Line
from sundial.segments.atm.model_parts import Contract, Faults, Queue

if TYPE_CHECKING:
    import polars as pl

    from sundial.report.load import RunData
    from sundial.report.plotting import Drawing
    from sundial.report.tables import Table
    from sundial.segments.atm.report_pdus import Captures

UNITS_PER_NS = 1000 * UNITS_PER_PS
NAMES = {"oc-3c": "OC-3c", "atm-25": "ATM-25", "taxi-100": "TAXI"}
ENCAPSULATION = {
    BRIDGED: "bridged (RFC 2684)",
    BRIDGED_FCS: "bridged with FCS (RFC 2684)",
    ROUTED: "classical IP (RFC 2225)",
}
LANE_CAPTION = (
    "PDUs of the first two stations in order of time, not to scale: at its sender a PDU has the time of its first bit, "
    "at its receiver, where it comes from LES or BUS, that of its last. Green: control frames."
)
QUEUE_CAPTION = (
    "Cells that wait for the line to a port, recomputed from the stamps of cells at the ports: the stretch around the "
    "greatest number, in which some always wait. The one being sent is not counted, nor those that were dropped, nor "
    "those of LES and BUS, whose line is not captured. Light: so many more may have waited, because lost cells cannot "
    "be told apart from equal ones. A red mark: a PDU lost its first cell there."
)
FIRST_PDUS = 5000
"""Of a run, in which the first exchange is looked for."""
RESOLUTION = {"le_arp": "LE_ARP", "static": "static channels"}


class AtmReport(SegmentReport[Atm]):
    corner_px = 9

    def lines(self, segment: Atm) -> list[str]:
        return [
            "ATM switch",
            *_line_texts(segment),
            _carries(segment),
            *_by_port(segment, segment.by_port(segment.propagation), "cable"),
            *titled("cells through the switch", segment.cell_latency),
            *titled("cell delay variation", segment.cdv),
            *_by_port(segment, segment.by_port(segment.tx_latency), "adapter out"),
            *_by_port(segment, segment.by_port(segment.rx_latency), "adapter in"),
            *_queue_texts(segment.queue),
            *_shaping_texts(segment),
            *(f"{port} policed to {_contract_text(contract)}" for port, contract in segment.contracts.items()),
            *(line for way, faults in segment.impairments.items() for line in _fault_texts(way, faults)),
        ]

    def services(self, segment: Atm) -> list[str]:
        if segment.encapsulation != LANE:
            return []
        lane = segment.lan_emulation
        return ["LECS, LES, BUS", line_text(lane.service_line), *titled("each message", lane.service_latency)]

    def mesh(self, segment: Atm) -> int:
        static = segment.encapsulation != LANE or segment.lan_emulation.resolution == "static"
        return len(segment.ports) if static else 0

    def hops(self, segment: Atm, sender: str, receiver: str) -> list[CellHop]:
        propagation, before, after = (
            dict(zip(segment.ports, segment.by_port(value), strict=True))
            for value in (segment.propagation, segment.tx_latency, segment.rx_latency)
        )
        shaped = segment.shaping_bps(sender)
        return [
            CellHop(
                cells=lambda frame_bytes: segment.packet_cells(frame_bytes - ETHERNET_HEADER),
                cell_in_ns=segment.cell_time_units(sender) / UNITS_PER_NS,
                cell_out_ns=segment.cell_time_units(receiver) / UNITS_PER_NS,
                before_ns=before[sender],
                between_ns=propagation[sender] + segment.cell_latency,
                after_ns=propagation[receiver] + after[receiver],
                spacing_ns=CELL_OCTETS * 8e9 / shaped if shaped else 0.0,
            )
        ]

    def sent_packets(self, segment: Atm, name: str, data: RunData) -> pl.DataFrame | None:
        from sundial.segments.atm import report_pdus

        return report_pdus.sent_packets(_captures(name, data), segment.encapsulation)

    def drawings(self, segment: Atm, name: str, data: RunData, folder: Path) -> Iterator[Drawing]:
        captures = _captures(name, data)
        found = (
            _call(segment, captures, data, folder),
            _queues(segment, captures, folder),
            _first_exchange(segment, captures, folder),
        )
        yield from (drawn for drawn in found if drawn is not None)

    def tables(self, segment: Atm, name: str, data: RunData) -> Iterator[Table]:
        from sundial.segments.atm import report_tables

        ports, channels = report_tables.of_segment(data.counters, name)
        found = (
            report_tables.losses(_captures(name, data).all_pdus, ports),
            report_tables.channels(channels, segment.ports, segment.encapsulation != LANE),
        )
        yield from (table for table in found if table is not None)


# What draws is imported where something is drawn: a topology is shown without it.


def _captures(name: str, data: RunData) -> Captures:
    from sundial.segments.atm.report_pdus import Captures

    return Captures(data.directory, name, int(data.run.get("epoch_ns") or EPOCH_NS))


def _call(segment: Atm, captures: Captures, data: RunData, folder: Path) -> Drawing | None:
    from sundial.segments.atm import report_call, report_pdus

    call = report_call.choose(data.observed)
    found = report_pdus.on_the_wire(captures, call.request[0], call.reply[1]) if call else None
    if call is None or found is None:
        return None
    table, are_cells = found
    cell_ns = {port: segment.cell_time_units(port) / UNITS_PER_NS for port in segment.ports}
    spans = report_call.spans(table, cell_ns, report_call.own_channels(call, segment.ports, _base_vci(segment)))
    return report_call.draw(captures.name, call, spans, _call_caption(are_cells), folder)


def _base_vci(segment: Atm) -> int:
    """Of the channels between ports."""
    from sundial.segments.atm import report_pdus

    return report_pdus.DATA_DIRECT if segment.encapsulation == LANE else report_pdus.PERMANENT


def _queues(segment: Atm, captures: Captures, folder: Path) -> Drawing | None:
    """None also where cells take times through the switch that the capture does not show."""
    from sundial.segments.atm import report_pdus, report_queue

    if segment.cdv:
        return None
    lines = {
        port: report_pdus.Line(cell_ns, propagation + segment.cell_latency, propagation)
        for port, propagation in zip(segment.ports, segment.by_port(segment.propagation), strict=True)
        for cell_ns in [segment.cell_time_units(port) / UNITS_PER_NS]
    }
    waiting = {
        port: report_queue.waiting(channels, segment.queue.cells)
        for port, channels in report_pdus.queues(captures, lines, _base_vci(segment)).items()
    }
    known = {port: found for port, found in waiting.items() if found is not None}
    losses = report_pdus.losses(captures, lines)
    return report_queue.draw(captures.name, known, losses, _limits(segment.queue), QUEUE_CAPTION, folder)


def _first_exchange(segment: Atm, captures: Captures, folder: Path) -> Drawing | None:
    from sundial.segments.atm import report_lane, report_pdus

    first = report_pdus.heads(captures, report_lane.HEAD_OCTETS, FIRST_PDUS) if segment.encapsulation == LANE else None
    events = report_lane.events(*first, segment.ports) if first else []
    return report_lane.draw(captures.name, events, LANE_CAPTION, folder)


def _call_caption(are_cells: bool) -> str:
    what = "cell" if are_cells else "PDU"
    text = (
        f"Every {what} at the ports of the call while it was on the wire, from capture stamps: out is what an adapter "
        "sends, in what it receives. The numbers count the cells of a PDU. Request and reply have the same scale."
    )
    return text if are_cells else f"{text} Cells were not captured: a PDU is drawn as long as its cells take."


def line_text(line: Line) -> str:
    """A line by its name, if it has one, and its rate."""
    name = next((NAMES[name] for name, known in LINES.items() if known == line), "")
    return f"{name}, {rate_text(line.rate_bps)}" if name else rate_text(line.rate_bps)


def _line_texts(segment: Atm) -> list[str]:
    """Once if all ports are alike, else each line with its ports."""
    lines = {port: line_text(segment.line_of(port)) for port in segment.ports}
    if len(set(lines.values())) == 1:
        return [lines[segment.ports[0]]]
    alike = groupby(sorted(segment.ports, key=lambda port: lines[port]), key=lambda port: lines[port])
    return [f"{', '.join(ports)}: {text}" for text, ports in alike]


def _carries(segment: Atm) -> str:
    if segment.encapsulation != LANE:
        return ENCAPSULATION[segment.encapsulation]
    return f"LAN emulation {segment.lane_frame_size}, {RESOLUTION[segment.lan_emulation.resolution]}"


def _by_port(segment: Atm, values: list[int], title: str) -> list[str]:
    """A time once if it is the same everywhere, else for each port that has one."""
    if len(set(values)) == 1:
        return titled(title, values[0])
    return [f"{title} at {port} {time_text(ns)}" for port, ns in zip(segment.ports, values, strict=True) if ns]


def _queue_texts(queue: Queue) -> list[str]:
    lines = [f"queues of {queue.cells} cells"]
    if queue.early_cells is not None:
        lines.append(f"early packet discard from {queue.early_cells}")
    elif queue.discard == "ppd":
        lines.append("partial packet discard")
    if queue.vc_cells is not None:
        lines.append(f"at most {queue.vc_cells} of a channel")
    if queue.clp1_above is not None:
        lines.append(f"CLP 1 dropped from {queue.clp1_above}")
    return lines


def _limits(queue: Queue) -> dict[str, int]:
    limits = {"full": queue.cells, "EPD": queue.early_cells, "one channel": queue.vc_cells, "CLP 1": queue.clp1_above}
    return {title: cells for title, cells in limits.items() if cells is not None}


def _shaping_texts(segment: Atm) -> list[str]:
    shaped = {port: segment.shaping_bps(port) for port in segment.ports}
    rates = set(shaped.values())
    if len(rates) == 1:
        (rate,) = rates
        return [f"channels shaped to {rate_text(rate)}"] if rate else []
    return [f"{port} shaped to {rate_text(rate)}" for port, rate in shaped.items() if rate]


def _contract_text(contract: Contract) -> str:
    text = rate_text(contract.rate)
    return f"{text}, excess tagged" if contract.action == "tag" else text


def _fault_texts(way: str, faults: Faults) -> list[str]:
    shares = (("cell loss", faults.cell_loss), ("payload bit", faults.payload_bit), ("header bit", faults.header_bit))
    texts = [f"{name} {float(100 * share):.4g} %" for name, share in shares if share]
    if faults.gemodel is not None:
        texts.append("cell loss in bursts (Gilbert-Elliott)")
    return ["every line:" if way == "both" else f"{way}:", *texts] if texts else []


KIND: SegmentReport[Atm] = AtmReport()
