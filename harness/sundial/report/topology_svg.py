# SPDX-License-Identifier: Apache-2.0
"""The drawing of a topology, as SVG text.

Machines and segments stand in columns by their distance from the clients, so that a call runs from left to right. A
segment is as tall as the ports on it, which keeps every cable straight unless the network has a loop. Pure: the same
topology gives the same bytes.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from xml.sax.saxutils import escape

from sundial.report import palette
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
        parts.append(_machine(box, box.machine) if box.machine else _segment(box))
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
    distance = _distances(topology)
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


def _distances(topology: Topology) -> dict[str, int]:
    """Column of each node: steps from the clients, machines and segments alternating."""
    roots = [machine.name for machine in topology.machines if machine.role == "client"]
    if not roots or len(roots) == len(topology.machines):
        half = (len(topology.machines) + 1) // 2 if len(topology.segments) == 1 else 1
        roots = [machine.name for machine in topology.machines[:half]]
    found = {"m:" + name: 0 for name in roots}
    queue = list(found)
    while True:
        while queue:
            here = queue.pop(0)
            for other in _neighbours(topology, here):
                if other not in found:
                    found[other] = found[here] + 1
                    queue.append(other)
        rest = [node for node in _nodes(topology) if node not in found]
        if not rest:
            return found
        found[rest[0]] = 0
        queue = [rest[0]]


def _nodes(topology: Topology) -> list[str]:
    return ["m:" + machine.name for machine in topology.machines] + ["s:" + wire.name for wire in topology.segments]


def _neighbours(topology: Topology, node: str) -> list[str]:
    kind, name = node.split(":", 1)
    if kind == "s":
        return ["m:" + machine.name for machine, _ in topology.on_segment(name)]
    machine = topology.machine(name)
    return ["s:" + nic.segment for nic in machine.nics if topology.segment(nic.segment)] if machine else []


def _machine_box(machine: Machine) -> _Box:
    lines = [line for note in machine.notes for line in textwrap.wrap(note, NOTE_CHARS)]
    width = max(CARD_WIDTH, CHAR * max((len(line) for line in lines), default=0) + 28)
    width = max(width, 1.5 * CHAR * len(machine.name) + 28 + CHAR * len(machine.role))
    return _Box("m:" + machine.name, machine, None, lines, width, 34 + LINE * len(lines) + 31 * len(machine.nics) + 6)


def _segment_box(segment: Segment) -> _Box:
    lines = list(segment.lines)
    width = max(118.0, CHAR * max(len(text) for text in [segment.name, *lines]) + 26)
    return _Box("s:" + segment.name, None, segment, lines, width, 34 + LINE * len(lines) + 10)


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


def _machine(box: _Box, machine: Machine) -> str:
    top = box.y - box.height / 2
    colour = ROLE_COLOURS.get(machine.role, palette.WIRE)
    parts = [
        f'<rect x="{box.x:g}" y="{top:g}" width="{box.width:g}" height="{box.height:g}" rx="7" fill="{palette.CARD}" '
        f'stroke="{palette.EDGE}"/>',
        f'<path d="M{box.x + 7:g} {top:g}h{box.width - 14:g}a7 7 0 0 1 7 7v1h-{box.width:g}v-1a7 7 0 0 1 7 -7z" '
        f'fill="{colour}"/>',
        _text(box.x + 14, top + 27, machine.name, 13.5, palette.INK, ' font-weight="700"'),
    ]
    if machine.role and machine.role != machine.name:
        parts.append(_text(box.x + box.width - 14, top + 27, machine.role, 11, colour, ' text-anchor="end"'))
    y = top + 27
    for line in box.lines:
        y += LINE
        parts.append(_text(box.x + 14, y, line))
    for nic in machine.nics:
        y += 17
        parts.append(_text(box.x + 14, y, nic.device, 11, palette.INK, ' font-weight="700"'))
        parts.append(_text(box.x + 50, y, nic.address or "no address", 11, palette.INK, MONO if nic.address else ""))
        y += 14
        parts.append(_text(box.x + 50, y, nic.mac, 9.5, palette.MUTED, MONO))
    return "".join(parts)


def _segment(box: _Box) -> str:
    top = box.y - box.height / 2
    middle = box.x + box.width / 2
    assert box.segment is not None, "a box is a machine or a segment"
    parts = [
        f'<rect x="{box.x:g}" y="{top:g}" width="{box.width:g}" height="{box.height:g}" rx="{box.segment.corner_px}" '
        f'fill="{palette.CARD}" stroke="{palette.WIRE}" stroke-width="1.6"/>'
    ]
    y = box.y - (LINE * len(box.lines)) / 2 + 3
    parts.append(_text(middle, y, box.segment.name, 13, palette.INK, ' font-weight="700" text-anchor="middle"'))
    for text in box.lines:
        y += LINE
        colour = palette.INK if text.endswith(("b/s", ":")) else palette.MUTED
        parts.append(_text(middle, y, text, 11, colour, ' text-anchor="middle"'))
    return "".join(parts)
