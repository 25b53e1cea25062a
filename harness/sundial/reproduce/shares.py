# SPDX-License-Identifier: Apache-2.0
"""What a call's time is made of: bits on the wire, and instructions of the two ends. Pure.

The wire's share is every instant in which a frame is on it, from the first bit of the preamble to the last bit at the
other end, and the interframe gaps that the next frame had to wait for. All other time is software, of the end that acts
next: who sends the next frame, or the client before its call returns. Under virtual time an instruction takes a fixed
number of ns, so software in instructions is exact; what an end computes while a frame is on the wire is hidden in the
wire's share.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

PREAMBLE_BYTES, FCS_BYTES, LEAST_BYTES = 8, 4, 60
GAP_BITS = 96
"""Between frames on Ethernet."""
ROUNDING_NS = 2


@dataclass(frozen=True)
class Flight:
    """One frame that arrived: from the first bit of its preamble at the sender to its last bit at the receiver."""

    begin_ns: int
    end_ns: int
    sender: str
    length: int
    """From destination MAC to the end of the payload."""

    @property
    def wire_bytes(self) -> int:
        """With padding, FCS and preamble, without the gap."""
        return max(self.length, LEAST_BYTES) + FCS_BYTES + PREAMBLE_BYTES


@dataclass(frozen=True)
class Share:
    """The parts of one call; the three times add up to it."""

    total_ns: int
    wire_ns: int
    client_ns: int
    server_ns: int
    frames: int
    wire_bytes: int

    @property
    def software_ns(self) -> int:
        return self.client_ns + self.server_ns

    def instructions(self, client_ns: float, server_ns: float) -> int:
        """Of both ends together, at so many ns an instruction, without what the wire hides."""
        return round(self.client_ns / client_ns + self.server_ns / server_ns)


@dataclass(frozen=True)
class Flights:
    """Frames in the order of their beginnings, to be asked for those of one call."""

    listed: Sequence[Flight]
    begins_ns: Sequence[int] = field(init=False)
    longest_ns: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "begins_ns", [flight.begin_ns for flight in self.listed])
        longest = max((flight.end_ns - flight.begin_ns for flight in self.listed), default=0)
        object.__setattr__(self, "longest_ns", longest)

    def between(self, begin_ns: int, end_ns: int) -> Sequence[Flight]:
        """Those that begin before the end and may end after the beginning."""
        first = bisect_left(self.begins_ns, begin_ns - self.longest_ns)
        return self.listed[first : bisect_left(self.begins_ns, end_ns)]


def share(begin_ns: int, end_ns: int, client: str, flights: Sequence[Flight], gap_ns: int) -> Share:
    """The parts of a call between these instants; `flights` in the order of their beginnings, those of others left out.

    A frame that was under way before the call counts for the part inside the call. `gap_ns`: what a frame has to wait
    after another one.
    """
    cursor, wire, software = begin_ns, 0, {True: 0, False: 0}
    frames = size = 0
    for flight in flights:
        if flight.end_ns <= begin_ns or flight.begin_ns >= end_ns:
            continue
        if flight.begin_ns >= begin_ns:
            frames += 1
            size += flight.wire_bytes
        idle = flight.begin_ns - cursor
        if idle > 0:
            if frames > 1 and idle <= gap_ns + ROUNDING_NS:
                wire += idle
            else:
                software[flight.sender == client] += idle
            cursor = flight.begin_ns
        if flight.end_ns > cursor:
            until = min(flight.end_ns, end_ns)
            wire += max(0, until - cursor)
            cursor = max(cursor, until)
    software[True] += end_ns - cursor
    return Share(end_ns - begin_ns, wire, software[True], software[False], frames, size)


def occupied_ns(flights: Sequence[Flight], rate_bps: int) -> float:
    """Time that these frames and a gap after each take on a wire of that rate."""
    return sum((flight.wire_bytes * 8 + GAP_BITS) * 1e9 / rate_bps for flight in flights)
