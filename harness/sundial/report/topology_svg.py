# SPDX-License-Identifier: Apache-2.0
"""The drawing of a topology, as SVG text.

Machines and segments stand in columns by their distance from the clients, so that a call runs from left to right. A
segment is as tall as the ports on it, which keeps every cable straight unless the network has a loop. Pure: the same
topology gives the same bytes.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from sundial.report import palette
from sundial.report.topology_lanes import distances
from sundial.report.topology_view import Machine, Nic, Segment, Topology

CARD_WIDTH = 190.0
GAP_X = 54.0
GAP_Y = 18.0
MARGIN = 14.0
LINE = 15.0
CHAR = 6.3
"""Width of an average character at 11 px, px."""

NOTE_CHARS = 34
"""Longer notes on a machine's card are broken into lines."""

SERVICE_MARGIN = 10.0
MESH_HEIGHT = 44.0
MESH_RADIUS = 16.0
MESH_LEAST = 2
"""Ports that need no picture."""
MESH_PORTS = 8
"""Of a greater mesh a smaller one is drawn; its number of channels stands in words."""

ROLE_COLOURS = {"client": palette.CLIENT, "server": palette.SERVER, "bridge": palette.LINE_OUT}


@dataclass
class _Box:
    """A node being placed: centre line at `y`, left edge at `x`."""

    name: str
    machine: Machine | None
    segment: Segment | None
    lines: list[str]
    width: float
    height: float
    x: float = 0.0
    y: float = 0.0


def draw(topology: Topology) -> str:
    """The topology as one SVG document, in paper colours."""
    if not topology.machines:
        return ""
    columns = _place(topology)
    boxes = {box.name: box for column in columns for box in column}
    rank = {box.name: index for index, column in enumerate(columns) for box in column}
    width = max(box.x + box.width for box in boxes.values()) + MARGIN
    height = max(box.y + box.height / 2 for box in boxes.values()) + MARGIN
    parts = [*_cables(topology, boxes, rank)]
    for box in boxes.values():
        top = box.y - box.height / 2
        if box.machine:
            parts.append(machine_card(box.machine, box.lines, box.x, top, box.width, box.height))
        elif box.segment:
            parts.append(segment_box(box.segment, box.lines, box.x, top, box.width, box.height))
    return document(width, height, parts)


def document(width: float, height: float, parts: Sequence[str]) -> str:
    """A whole SVG document on paper."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" '
        "font-family=\"'DejaVu Sans', sans-serif\">"
        f'<rect width="100%" height="100%" fill="{palette.PAPER}"/>' + "".join(parts) + "</svg>\n"
    )


def natural_width(svg: str) -> int:
    """Width in px at which the drawing's type has the size of the page's, a little enlarged."""
    return round(1.12 * float(svg.split('width="', 1)[1].split('"', 1)[0]))


def _place(topology: Topology) -> list[list[_Box]]:
    distance = distances(topology)
    columns: list[list[_Box]] = [[] for _ in range(max(distance.values()) + 1)]
    for machine in topology.machines:
        columns[distance["m:" + machine.name]].append(_machine_box(machine))
    for segment in topology.segments:
        columns[distance["s:" + segment.name]].append(_segment_box(segment))
    columns = [column for column in columns if column]
    x = MARGIN
    total = max(sum(box.height for box in column) + GAP_Y * (len(column) - 1) for column in columns)
    for column in columns:
        wide = max(box.width for box in column)
        used = sum(box.height for box in column) + GAP_Y * (len(column) - 1)
        y = MARGIN + (total - used) / 2
        for box in column:
            box.x = x + (wide - box.width) / 2
            box.y = y + box.height / 2
            y += box.height + GAP_Y
        x += wide + GAP_X
    _stretch(topology, columns)
    return columns


def _stretch(topology: Topology, columns: list[list[_Box]]) -> None:
    """Makes a segment that stands alone in its column as tall as the machines on it."""
    boxes = {box.name: box for column in columns for box in column}
    for column in columns:
        if len(column) != 1 or column[0].segment is None:
            continue
        box = column[0]
        ys = [boxes["m:" + machine.name].y for machine, _ in topology.on_segment(column[0].segment.name)]
        if ys:
            top, bottom = min([*ys, box.y - box.height / 2 + 20]) - 20, max([*ys, box.y + box.height / 2 - 20]) + 20
            box.y, box.height = (top + bottom) / 2, bottom - top


def _machine_box(machine: Machine) -> _Box:
    lines = wrapped(machine.notes, NOTE_CHARS)
    width = max(CARD_WIDTH, CHAR * max((len(line) for line in lines), default=0) + 28)
    width = max(width, 1.5 * CHAR * len(machine.name) + 28 + CHAR * len(_role(machine)))
    return _Box("m:" + machine.name, machine, None, lines, width, machine_height(machine, lines))


def _segment_box(segment: Segment) -> _Box:
    lines = list(segment.lines)
    texts = [segment.name, *lines, *(f"  {text}  " for text in segment.services)]
    width = max(118.0, CHAR * max(map(len, texts)) + 26)
    return _Box("s:" + segment.name, None, segment, lines, width, segment_height(segment, lines))


def wrapped(texts: Sequence[str], chars: int) -> list[str]:
    """Texts in lines of so many characters at most."""
    return [line for text in texts for line in textwrap.wrap(text, chars)]


def machine_height(machine: Machine, lines: Sequence[str]) -> float:
    """Of a card with so many lines of notes."""
    return 34 + LINE * len(lines) + _nic_height(machine) * len(machine.nics) + 6


def nic_y(machine: Machine, lines: Sequence[str], index: int) -> float:
    """Where a card names its interface, below its top."""
    return 27 + LINE * len(lines) + 17 + _nic_height(machine) * index


def _nic_height(machine: Machine) -> float:
    """Of an interface on a card: its address, and below it its MAC; a device has the latter alone."""
    return 18.0 if machine.is_device else 31.0


def segment_height(segment: Segment, lines: Sequence[str]) -> float:
    """Of a box with so many lines under its name."""
    return 44 + LINE * len(lines) + _inside_height(segment)


def _inside_height(segment: Segment) -> float:
    services = SERVICE_MARGIN + LINE * len(segment.services) + 8 if segment.services else 0.0
    return services + (MESH_HEIGHT if segment.mesh > MESH_LEAST else 0.0)


def _sides(topology: Topology, machine: Machine, rank: dict[str, int]) -> dict[str, list[Nic]]:
    sides: dict[str, list[Nic]] = {"left": [], "right": []}
    for nic in machine.nics:
        if topology.segment(nic.segment):
            right = rank["s:" + nic.segment] > rank["m:" + machine.name]
            sides["right" if right else "left"].append(nic)
    return sides


def _cables(topology: Topology, boxes: dict[str, _Box], rank: dict[str, int]) -> list[str]:
    parts = []
    for machine in topology.machines:
        box = boxes["m:" + machine.name]
        for side, nics in _sides(topology, machine, rank).items():
            for index, nic in enumerate(nics):
                wire = boxes["s:" + nic.segment]
                x1 = box.x + (box.width if side == "right" else 0)
                y1 = box.y + (index - (len(nics) - 1) / 2) * 18
                x2 = wire.x + (0 if side == "right" else wire.width)
                low, high = wire.y - wire.height / 2 + 12, wire.y + wire.height / 2 - 12
                y2 = min(max(y1, low), high)
                bend = (x1 + x2) / 2
                parts.append(
                    f'<path d="M{x1:g} {y1:g}C{bend:g} {y1:g} {bend:g} {y2:g} {x2:g} {y2:g}" fill="none" '
                    f'stroke="{palette.WIRE}" stroke-width="2.2"/>'
                    f'<rect x="{x1 - 4:g}" y="{y1 - 4:g}" width="8" height="8" rx="1.5" fill="{palette.WIRE}"/>'
                    f'<rect x="{x2 - 4:g}" y="{y2 - 4:g}" width="8" height="8" rx="1.5" fill="{palette.WIRE}"/>'
                )
    return parts


def _text(x: float, y: float, text: str, size: float = 11, colour: str = palette.MUTED, extra: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{colour}"{extra}>{escape(text)}</text>'


MONO = " font-family=\"'DejaVu Sans Mono', monospace\""


def _role(machine: Machine) -> str:
    return "" if machine.role == machine.name else machine.role


def machine_card(machine: Machine, lines: Sequence[str], x: float, top: float, width: float, height: float) -> str:
    """A machine's card; that of a device has no band, square corners and a double edge."""
    colour = ROLE_COLOURS.get(machine.role, palette.WIRE)
    parts = [
        f'<rect x="{x:g}" y="{top:g}" width="{width:g}" height="{height:g}" rx="{2 if machine.is_device else 7}" '
        f'fill="{palette.CARD}" stroke="{palette.WIRE if machine.is_device else palette.EDGE}"/>'
    ]
    if machine.is_device:
        parts.append(
            f'<path d="M{x + 3:g} {top + 3:g}h{width - 6:g}v{height - 6:g}h-{width - 6:g}z" fill="none" '
            f'stroke="{palette.EDGE}"/>'
        )
    else:
        parts.append(
            f'<path d="M{x + 7:g} {top:g}h{width - 14:g}a7 7 0 0 1 7 7v1h-{width:g}v-1a7 7 0 0 1 7 -7z" '
            f'fill="{colour}"/>'
        )
    parts.append(_text(x + 14, top + 27, machine.name, 13.5, palette.INK, ' font-weight="700"'))
    if _role(machine):
        parts.append(_text(x + width - 14, top + 27, machine.role, 11, colour, ' text-anchor="end"'))
    for index, line in enumerate(lines, 1):
        parts.append(_text(x + 14, top + 27 + LINE * index, line))
    for index, nic in enumerate(machine.nics):
        y = top + nic_y(machine, lines, index)
        address = nic.address or ("" if machine.is_device else "no address")
        parts.append(_text(x + 14, y, nic.device, 11, palette.INK, ' font-weight="700"'))
        parts.append(_text(x + 50, y, address, 11, palette.INK, MONO if nic.address else "") if address else "")
        parts.append(_text(x + 50, y + 14 if address else y, nic.mac, 9.5, palette.MUTED, MONO))
    return "".join(parts)


def segment_box(segment: Segment, lines: Sequence[str], x: float, top: float, width: float, height: float) -> str:
    """A segment: its name and lines in the middle, then its mesh of channels and what is inside it."""
    middle = x + width / 2
    parts = [
        f'<rect x="{x:g}" y="{top:g}" width="{width:g}" height="{height:g}" rx="{segment.corner_px}" '
        f'fill="{palette.CARD}" stroke="{palette.WIRE}" stroke-width="1.6"/>'
    ]
    y = top + (height - _inside_height(segment) - LINE * len(lines)) / 2 + 3
    parts.append(_text(middle, y, segment.name, 13, palette.INK, ' font-weight="700" text-anchor="middle"'))
    for text in lines:
        y += LINE
        colour = palette.INK if text.endswith(("b/s", ":")) else palette.MUTED
        parts.append(_text(middle, y, text, 11, colour, ' text-anchor="middle"'))
    if segment.mesh > MESH_LEAST:
        parts.append(_mesh(segment.mesh, middle, y + 6 + MESH_HEIGHT / 2))
        y += MESH_HEIGHT
    if segment.services:
        y += SERVICE_MARGIN
        wide, high = width - 20, LINE * len(segment.services) + 8
        parts.append(
            f'<path d="M{x + 10:g} {y:g}h{wide:g}v{high:g}h-{wide:g}z" fill="{palette.PAPER}" stroke="{palette.EDGE}"/>'
        )
        for text in segment.services:
            y += LINE
            parts.append(_text(middle, y, text, 10.5, palette.MUTED, ' text-anchor="middle"'))
    return "".join(parts)


def _mesh(ports: int, x: float, y: float) -> str:
    """A small picture of channels from each port to each other one, with as many ports as can be told apart."""
    count = min(ports, MESH_PORTS)
    angles = [math.pi * (2 * k / count + (0 if count == 2 else 0.5)) for k in range(count)]
    dots = [(x - MESH_RADIUS * math.cos(angle), y - MESH_RADIUS * math.sin(angle)) for angle in angles]
    chords = "".join(
        f"M{x1:.2f} {y1:.2f}L{x2:.2f} {y2:.2f}" for k, (x1, y1) in enumerate(dots) for x2, y2 in dots[k + 1 :]
    )
    return f'<path d="{chords}" fill="none" stroke="{palette.WIRE}" stroke-width="0.9"/>' + "".join(
        f'<circle cx="{dx:.2f}" cy="{dy:.2f}" r="2.4" fill="{palette.WIRE}"/>' for dx, dy in dots
    )
