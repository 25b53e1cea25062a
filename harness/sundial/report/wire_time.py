# SPDX-License-Identifier: Apache-2.0
"""The least time that frames need on a path of wires: serialisation, gaps and propagation, nothing else.

Each hop is a line that sends one frame after another and hands a frame on when its last bit has arrived (store and
forward). The result is what a call would take if both machines and every queue cost nothing. Pure; times in ns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sundial.report.topology_view import Topology

PREAMBLE_BYTES = 8
FCS_BYTES = 4
GAP_BYTES = 12
MIN_FRAME_BYTES = 60
"""Destination MAC to the end of the payload, padded, without FCS (IEEE 802.3, 3.2.8)."""

INSTANT_BPS = 10**18
"""A line that takes no time: where a frame is only delayed."""


@dataclass(frozen=True)
class Hop:
    """One line: its rate, what it adds to every frame, and whether it frames as Ethernet does (or is a netem rate)."""

    rate_bps: int
    delay_ns: float = 0.0
    ethernet: bool = True
    overhead_bytes: int = 0
    cell_bytes: int = 0
    """Of a frame's bytes in each of the cells that the line carries; 0: it carries frames."""
    cell_overhead_bytes: int = 0

    def busy_ns(self, frame_bytes: int) -> float:
        """How long one frame occupies the line, without the gap after it. `frame_bytes`: MAC to payload, no FCS."""
        if self.ethernet:
            total = PREAMBLE_BYTES + max(MIN_FRAME_BYTES, frame_bytes) + FCS_BYTES
        else:
            total = max(0, frame_bytes + self.overhead_bytes)
            if self.cell_bytes:
                total = -(-total // self.cell_bytes) * max(0, self.cell_bytes + self.cell_overhead_bytes)
        return total * 8e9 / self.rate_bps

    def gap_ns(self) -> float:
        """The inter-frame gap."""
        return GAP_BYTES * 8e9 / self.rate_bps if self.ethernet else 0.0


def hops(topology: Topology, source: str, target: str) -> list[Hop] | None:
    """The lines between two machines; None if there is no way or what a segment does is unknown."""
    path = topology.path(source, target)
    if path is None:
        return None
    result: list[Hop] = []
    for sender, segment, receiver in path:
        if segment.hops is None:
            return None
        result += segment.hops(sender, receiver)
    return result


def transit_ns(frames: Sequence[int], path: Sequence[Hop]) -> float:
    """From the first bit of the first frame to the last bit of the last one at the far end.

    `frames`: bytes from destination MAC to the end of the payload, in sending order. No frames: 0.
    """
    free = [0.0] * len(path)
    arrived = 0.0
    for size in frames:
        ready = 0.0
        for index, hop in enumerate(path):
            sent = max(ready, free[index]) + hop.busy_ns(size)
            free[index] = sent + hop.gap_ns()
            ready = sent + hop.delay_ns
        arrived = ready
    return arrived
