# SPDX-License-Identifier: Apache-2.0
"""The least time that frames need on a path of wires: serialisation, gaps, latencies and propagation, nothing else.

Each hop sends one frame after another and hands a frame on when its last bit has arrived (store and forward); inside a
network of cells it is the cells that are handed on. The result is what a call would take if both machines and every
queue cost nothing. Pure; times in ns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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

Free = tuple[float, ...]
"""When each line of a hop can begin with the next frame; () before the first one."""


@dataclass(frozen=True)
class Hop:
    """One line: its rate, what it adds to every frame, and whether it frames as Ethernet does (or is a netem rate)."""

    rate_bps: int
    delay_ns: float = 0.0
    ethernet: bool = True
    overhead_bytes: int = 0
    cell_bytes: int = 0
    """Of a frame's bytes in each of the cells that netem counts; 0: it counts bytes."""
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

    def carry(self, frame_bytes: int, ready_ns: float, free: Free) -> tuple[float, Free]:
        """When a frame that may start at `ready_ns` has arrived, and when the line is free after it."""
        sent = max(ready_ns, *free, 0.0) + self.busy_ns(frame_bytes)
        return sent + self.delay_ns, (sent + self.gap_ns(),)


@dataclass(frozen=True)
class CellHop:
    """Two lines with a switch of cells between them: each cell is handed on as soon as its last bit is there.

    A frame alone of n cells takes n + 1 cell times where the lines are alike.
    """

    cells: Callable[[int], int]
    """Of a frame (bytes from destination MAC to the end of the payload)."""
    cell_in_ns: float
    """A cell on the line to the switch."""
    cell_out_ns: float
    """A cell on the line from it."""
    before_ns: float = 0.0
    """From the frame at the adapter to its first cell."""
    between_ns: float = 0.0
    """From a cell's last bit at the adapter to its place in the output queue: propagation and the switch's latency."""
    after_ns: float = 0.0
    """From a cell's last bit on the second line to the frame at the other end."""
    spacing_ns: float = 0.0
    """Least time from cell to cell on one channel, where the sender shapes it."""

    def carry(self, frame_bytes: int, ready_ns: float, free: Free) -> tuple[float, Free]:
        """When a frame that may start at `ready_ns` has arrived, and when the two lines are free after it.

        The k-th of n joins the queue at a time that grows linearly with k, so the last one leaves after the first, the
        last, or what was sent before has held it up.
        """
        count = self.cells(frame_bytes)
        step = max(self.cell_in_ns, self.spacing_ns)
        first_free, second_free = free or (0.0, 0.0)
        start = max(ready_ns + self.before_ns, first_free)
        first = start + self.cell_in_ns + self.between_ns
        last = first + (count - 1) * step
        out = max(max(first, second_free) + count * self.cell_out_ns, last + self.cell_out_ns)
        return out + self.after_ns, (start + count * step, out)


AnyHop = Hop | CellHop


def hops(topology: Topology, source: str, target: str) -> list[AnyHop] | None:
    """The hops between two machines; None if there is no way or what a segment does is unknown."""
    path = topology.path(source, target)
    if path is None:
        return None
    result: list[AnyHop] = []
    for sender, segment, receiver in path:
        if segment.hops is None:
            return None
        device = topology.machine(sender.partition(":")[0])
        if device is not None and device.forwarding_ns:
            result.append(Hop(INSTANT_BPS, device.forwarding_ns, ethernet=False))
        result += segment.hops(sender, receiver)
    return result


def transit_ns(frames: Sequence[int], path: Sequence[AnyHop]) -> float:
    """From the first bit of the first frame to the last bit of the last one at the far end.

    `frames`: bytes from destination MAC to the end of the payload, in sending order. No frames: 0.
    """
    free: list[Free] = [()] * len(path)
    arrived = 0.0
    for size in frames:
        ready = 0.0
        for index, hop in enumerate(path):
            ready, free[index] = hop.carry(size, ready, free[index])
        arrived = ready
    return arrived
