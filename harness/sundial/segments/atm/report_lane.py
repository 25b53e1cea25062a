# SPDX-License-Identifier: Apache-2.0
"""The first exchange over LAN emulation: what LES and BUS have to do before frames go from client to client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from sundial.expect.atm import LEC_ID
from sundial.report import painting, palette, plotting
from sundial.report.plotting import Drawing
from sundial.segments.atm.report_pdus import DATA_DIRECT, INBOUND, OUTBOUND

SERVICE = "LES, BUS"
MULTICAST_SEND, MULTICAST_FORWARD = 35, 36
CHANNELS = {
    17: "configuration direct", 33: "control direct", 34: "control distribute",
    MULTICAST_SEND: "multicast send", MULTICAST_FORWARD: "multicast forward",
}  # fmt: skip
OPCODES = {
    0x0001: "LE_CONFIGURE_REQUEST", 0x0101: "LE_CONFIGURE_RESPONSE", 0x0002: "LE_JOIN_REQUEST",
    0x0102: "LE_JOIN_RESPONSE", 0x0003: "READY_QUERY", 0x0103: "READY_IND", 0x0004: "LE_REGISTER_REQUEST",
    0x0104: "LE_REGISTER_RESPONSE", 0x0005: "LE_UNREGISTER_REQUEST", 0x0105: "LE_UNREGISTER_RESPONSE",
    0x0006: "LE_ARP_REQUEST", 0x0106: "LE_ARP_RESPONSE", 0x0007: "LE_FLUSH_REQUEST", 0x0107: "LE_FLUSH_RESPONSE",
    0x0008: "LE_NARP_REQUEST", 0x0009: "LE_TOPOLOGY_REQUEST",
}  # fmt: skip
"""af-lane-0021, table 12; a response is its request with 0x0100."""
_CONTROL = bytes.fromhex("ff000101")
_ETHERTYPES = {0x0800: "IP", 0x0806: "ARP"}
HEAD_OCTETS = 16
"""Of an SDU, to the end of the ethertype; what `events` is given of each PDU."""
MOST_EVENTS = 36


@dataclass(frozen=True)
class Event:
    """One PDU at one port: who sent it to whom, as far as the port's channel tells."""

    at_ns: int
    source: str
    target: str
    text: str
    is_control: bool


def words(head: bytes) -> tuple[str, bool]:
    """What an SDU is, by its first octets, and whether it is a control frame."""
    if head[:4] == _CONTROL:
        code = int.from_bytes(head[4:6])
        return OPCODES.get(code, f"control frame {code:#06x}"), True
    ethertype = int.from_bytes(head[14:16])
    return _ETHERTYPES.get(ethertype, f"frame {ethertype:#06x}"), False


def events(pdus: pl.DataFrame, heads: Sequence[bytes], ports: Sequence[str]) -> list[Event]:
    """The first exchange of two ports, from the first frame that one of them sends on.

    `pdus`: time_ns, interface, direction, vci, cells, in order of time, with the first octets of each SDU. What is sent
    on a data direct channel stands there once, where it was sent; all else where it left or reached a port, but for
    frames that others sent by the BUS. It ends with the first frames that both have sent on the data direct channel,
    and with MOST_EVENTS at the latest.
    """
    rows = list(zip(pdus.select("time_ns", "interface", "direction", "vci", "cells").iter_rows(), heads, strict=True))
    first = next((k for k, (row, head) in enumerate(rows) if row[2] == OUTBOUND and not words(head)[1]), None)
    if first is None:
        return []
    near = rows[first][0][1]
    far = next((_peer(row, ports) for row, _ in rows[first:] if row[1] == near and row[3] >= DATA_DIRECT), None)
    senders = {head[:LEC_ID] for row, head in rows if row[1] in (near, far) and row[2] == OUTBOUND}
    found: list[Event] = []
    settled: set[str] = set()
    for (at_ns, port, direction, vci, cells), head in rows[first:]:
        if port not in (near, far) or (vci >= DATA_DIRECT and direction == INBOUND):
            continue
        other = SERVICE if vci < DATA_DIRECT else ports[vci - DATA_DIRECT]
        source, target = (port, other) if direction == OUTBOUND else (other, port)
        text, is_control = words(head)
        if direction == INBOUND and not is_control and head[:LEC_ID] not in senders:
            continue
        amount = f"{cells} {'cell' if cells == 1 else 'cells'}"
        channel = CHANNELS.get(vci, "data direct")
        found.append(Event(at_ns, source, target, f"{text}, {amount}, {channel}", is_control))
        if vci >= DATA_DIRECT and not is_control:
            settled.add(port)
        if len(found) == MOST_EVENTS or settled == {near, far}:
            break
    return found


def _peer(row: tuple[int, str, int, int, int], ports: Sequence[str]) -> str | None:
    place = row[3] - DATA_DIRECT
    return ports[place] if place < len(ports) else None


def draw(name: str, found: Sequence[Event], caption: str, folder: Path) -> Drawing | None:
    """The events as arrows between the two ports, with the services between them, from above to below."""
    if not found:
        return None
    near = found[0].source
    others = [end for event in found for end in (event.source, event.target) if end not in (near, SERVICE)]
    lines = [near, SERVICE, *dict.fromkeys(others)]
    zero_ns = found[0].at_ns
    height = 0.95 + 0.36 * len(found)

    def paint(figure: painting.Figure) -> None:
        narrow = plotting.is_narrow(figure)
        place = plotting.margins(figure, left=0.78, right=0.5 if narrow else 0.6, top=0.45, bottom=0.2)
        axis = figure.subplots(1, 1, gridspec_kw=place)
        for x, line in enumerate(lines):
            axis.plot([x, x], [-0.6, len(found) - 0.4], color=palette.AXIS, linewidth=1.0, zorder=1)
            axis.text(x, -0.85, line, ha="center", va="bottom", fontsize=9, fontweight="bold", color=palette.INK)
        for y, event in enumerate(found):
            _arrow(axis, y, event, lines, zero_ns, narrow)
        axis.set_xlim(-0.12, len(lines) - 0.88)
        axis.set_ylim(len(found) - 0.3, -0.9)
        axis.set_axis_off()

    seen = "; ".join(f"{(event.at_ns - zero_ns) / 1000:.1f} µs {event.source} to {event.target}: {event.text}"
                     for event in found)  # fmt: skip
    return plotting.draw(f"lane-{name}", "First exchange over LAN emulation", caption, folder, height, paint, seen=seen)


def _arrow(axis: painting.Axes, y: int, event: Event, lines: Sequence[str], zero_ns: int, narrow: bool) -> None:
    x1, x2 = lines.index(event.source), lines.index(event.target)
    colour = palette.SERVER if event.is_control else palette.CLIENT
    axis.annotate(
        "", xy=(x2, y), xytext=(x1, y), arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 1.4,
                                                    "shrinkA": 0, "shrinkB": 0},
    )  # fmt: skip
    text = event.text.partition(", ")[0] if narrow else event.text
    paper = {"facecolor": palette.PAPER, "edgecolor": "none", "pad": 0.8}
    axis.text((x1 + x2) / 2, y - 0.12, text, ha="center", va="bottom", fontsize=7.5, color=palette.INK, bbox=paper)
    when = (event.at_ns - zero_ns) / 1000
    axis.annotate(
        f"{when:.1f} µs" if when < 10_000 else f"{when / 1000:.2f} ms", xy=(0, y), xycoords=("axes fraction", "data"),
        xytext=(-4, 0), textcoords="offset points", ha="right", va="center", fontsize=7.5, color=palette.MUTED,
    )  # fmt: skip
