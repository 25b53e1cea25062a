# SPDX-License-Identifier: Apache-2.0
"""The drawing of a topology as text, for terminals. Pure."""

from __future__ import annotations

import textwrap

from sundial.report.topology_lanes import Lanes, Row, lay_out
from sundial.report.topology_view import Topology

WIDTH = 110
"""Characters; longer words on segments and machines are broken into lines."""

_JOINTS = {"": " ", "pass": "│", "first": "┌", "middle": "├", "last": "└"}


def draw(topology: Topology) -> str:
    """Machines, devices, interfaces and segments, a line each, and a lane for every wire."""
    lanes = lay_out(topology)
    name_width = max([len(_name(row)) for row in lanes.rows], default=0)
    lines = []
    for index, row in enumerate(lanes.rows):
        room = max(30, WIDTH - 2 * lanes.count - name_width - 6)
        words = _words(row)
        first, *more = [words] if row.nic else textwrap.wrap(words, room) or [""]
        lines.append(f"{_gutter(lanes, index)} {_name(row):{name_width}}  {first}".rstrip())
        below = _gutter(lanes, index, below=True)
        lines += [f"{below} {'':{name_width}}  {text}".rstrip() for text in more]
    return "".join(f"{line}\n" for line in lines)


def _name(row: Row) -> str:
    if row.nic is not None:
        return f"  {row.nic.device}"
    return row.machine.name if row.machine else row.segment.name if row.segment else ""


def _words(row: Row) -> str:
    if row.nic is not None:
        address = row.nic.address or ("" if row.machine and row.machine.is_device else "no address")
        return f"{address:18} {row.nic.mac}"
    if row.machine is not None:
        said = [row.machine.role] if row.machine.role not in ("", row.machine.name) else []
        return "; ".join([*said, *row.machine.notes])
    if row.segment is None:
        return ""
    words = [*row.segment.lines]
    if row.segment.services:
        words.append(f"inside: {', '.join(row.segment.services)}")
    return "; ".join(words).replace(":;", ":")


def _gutter(lanes: Lanes, index: int, *, below: bool = False) -> str:
    """The lanes left of a row, the farthest first; `below`: of a line under it that belongs to it."""
    at = {lane: name for name, lane in lanes.lane.items() if lanes.joint(name, index)}
    mine = lanes.lane.get(lanes.rows[index].wire, -1)
    text = ""
    for lane in reversed(range(lanes.count)):
        joint = lanes.joint(at[lane], index) if lane in at else ""
        if below:
            text += "│ " if joint in ("pass", "first", "middle") else "  "
        elif lane < mine:
            text += "┼─" if joint else "──"
        else:
            text += _JOINTS[joint] + ("─" if lane == mine else " ")
    return text
