# SPDX-License-Identifier: Apache-2.0
"""The drawing of a topology for narrow screens, as SVG text: cards below one another, wires in lanes at their left."""

from __future__ import annotations

from dataclasses import dataclass

from sundial.report import palette
from sundial.report.topology_lanes import lay_out
from sundial.report.topology_svg import (
    CHAR,
    document,
    machine_card,
    machine_height,
    nic_y,
    segment_box,
    segment_height,
    wrapped,
)
from sundial.report.topology_view import Machine, Segment, Topology

WIDTH = 344.0
"""px of the whole drawing: a small phone's screen less the page's margins."""
LANE = 14.0
MARGIN = 8.0
GAP = 12.0
LEAST_CARD = 190.0
"""A drawing with so many lanes that cards would be narrower is wider than `WIDTH`."""


@dataclass
class _Card:
    """A card or box that has been placed. `joints`: where wires are joined to it, by row of the layout."""

    lines: list[str]
    top: float
    height: float
    joints: dict[int, float]


def draw(topology: Topology) -> str:
    """The topology as one SVG document, in paper colours."""
    if not topology.machines:
        return ""
    lanes = lay_out(topology)
    left = MARGIN + LANE * lanes.count
    width = max(LEAST_CARD, WIDTH - left - MARGIN)
    cards: dict[str, tuple[Machine | Segment, _Card]] = {}
    y = MARGIN
    for index, row in enumerate(lanes.rows):
        if row.nic is not None and row.machine is not None:
            card = cards["m:" + row.machine.name][1]
            card.joints[index] = card.top + nic_y(row.machine, card.lines, row.machine.nics.index(row.nic)) - 4
            continue
        node = row.machine or row.segment
        if node is None:
            continue
        card = _card(node, y, width)
        if row.segment is not None:
            card.joints[index] = y + card.height / 2
        cards[("m:" if row.machine else "s:") + node.name] = node, card
        y += card.height + GAP
    joints = {index: at for _, card in cards.values() for index, at in card.joints.items()}
    parts = []
    for name, lane in lanes.lane.items():
        x = left - LANE * (lane + 0.75)
        rows = [index for index, row in enumerate(lanes.rows) if row.wire == name]
        stubs = "".join(f"M{x:g} {joints[index]:g}H{left:g}" for index in rows)
        path = f"M{x:g} {joints[rows[0]]:g}V{joints[rows[-1]]:g}{stubs}"
        parts.append(
            f'<path d="{path}" fill="none" stroke="{palette.WIRE}" stroke-width="2.2" stroke-linecap="square"/>'
        )
    for node, card in cards.values():
        if isinstance(node, Machine):
            parts.append(machine_card(node, card.lines, left, card.top, width, card.height))
        else:
            parts.append(segment_box(node, card.lines, left, card.top, width, card.height))
    parts += [
        f'<rect x="{left - 4:g}" y="{at - 4:g}" width="8" height="8" rx="1.5" fill="{palette.WIRE}"/>'
        for index, at in joints.items()
        if lanes.rows[index].wire in lanes.lane
    ]
    return document(left + width + MARGIN, y - GAP + MARGIN, parts)


def _card(node: Machine | Segment, top: float, width: float) -> _Card:
    chars = int((width - 28) / CHAR)
    if isinstance(node, Machine):
        lines = wrapped(node.notes, chars)
        return _Card(lines, top, machine_height(node, lines), {})
    lines = wrapped(node.lines, chars)
    return _Card(lines, top, segment_height(node, lines), {})
