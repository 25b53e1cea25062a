# SPDX-License-Identifier: Apache-2.0
"""A topology as a list of rows with one lane a wire beside it, for places too narrow for columns. Pure.

Machines and segments stand below one another in the order of their distance from the clients; a lane runs from the
first port on a segment to the last one, and the lane next to the rows is number 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sundial.report.topology_view import Machine, Nic, Segment, Topology


@dataclass(frozen=True)
class Row:
    """One row: a machine, one of its interfaces (`nic`), or a segment. `wire`: the segment that it is joined to."""

    machine: Machine | None = None
    nic: Nic | None = None
    segment: Segment | None = None
    wire: str = ""


@dataclass(frozen=True)
class Lanes:
    """Rows, and the lane and the first and last row of each segment that something is plugged into."""

    rows: tuple[Row, ...]
    lane: Mapping[str, int]
    span: Mapping[str, tuple[int, int]]

    @property
    def count(self) -> int:
        """Lanes beside the rows."""
        return 1 + max(self.lane.values(), default=-1)

    def joint(self, name: str, row: int) -> str:
        """What a segment's lane does at a row: "" (not there), pass, first, middle or last."""
        first, last = self.span[name]
        if not first <= row <= last:
            return ""
        if self.rows[row].wire != name:
            return "pass"
        return "first" if row == first else "last" if row == last else "middle"


def lay_out(topology: Topology) -> Lanes:
    """Rows and lanes of a topology."""
    distance = distances(topology)
    nodes: list[tuple[int, Machine | Segment]] = [
        *((distance["m:" + machine.name], machine) for machine in topology.machines),
        *((distance["s:" + segment.name], segment) for segment in topology.segments),
    ]
    rows: list[Row] = []
    for _, node in sorted(nodes, key=lambda pair: pair[0]):
        if isinstance(node, Segment):
            rows.append(Row(segment=node, wire=node.name))
            continue
        rows.append(Row(machine=node))
        rows += [
            Row(machine=node, nic=nic, wire=nic.segment if topology.segment(nic.segment) else "")
            for nic in sorted(node.nics, key=lambda nic: distance.get("s:" + nic.segment, 0))
        ]
    span = {
        segment.name: (min(places), max(places))
        for segment in topology.segments
        for places in [[index for index, row in enumerate(rows) if row.wire == segment.name]]
        if len(places) > 1
    }
    return Lanes(tuple(rows), _lanes(span), span)


def _lanes(span: Mapping[str, tuple[int, int]]) -> dict[str, int]:
    """The lowest lane for each segment that no other one has at any of its rows, from the top."""
    found: dict[str, int] = {}
    for name, (first, last) in sorted(span.items(), key=lambda item: item[1]):
        taken = {lane for other, lane in found.items() if span[other][0] <= last and first <= span[other][1]}
        found[name] = next(lane for lane in range(len(span)) if lane not in taken)
    return found


def distances(topology: Topology) -> dict[str, int]:
    """Steps of each node ("m:" machine, "s:" segment) from the clients, machines and segments alternating."""
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
