# SPDX-License-Identifier: Apache-2.0
"""When the wire in front of a port was free, as the capture shows it: what a frame may have waited for.

On a hub the frames of all stations take it, with their gaps, and so do collisions, after each of which a station backs
off for a random number of slots (IEEE 802.3, 4.2.3.2.5); elsewhere what the port itself sends. Pure.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate

import polars as pl

from sundial.model.network import Network

FRAMING_BYTES = 8 + 4 + 12
LEAST_FRAME_BYTES = 60
SLOT_BYTES = 64
JAM_AND_GAP_BYTES = 4 + 12
BACKOFF_LIMIT = 10
OUTBOUND = 2


@dataclass(frozen=True)
class Medium:
    """Stretches in which the wire was taken, in order and apart; `passed`: their sum up to each; collisions of one
    port."""

    begins: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    passed: list[int] = field(default_factory=list)
    collisions: list[int] = field(default_factory=list)
    slot_ns: int = 0

    def busy_ns(self, low: int, high: int) -> int:
        """How long the wire was taken between two instants."""
        return self._until(high) - self._until(low)

    def idle_ns(self, low: int, high: int) -> int:
        """How long it was certainly free for the port: not taken, and not perhaps backing off."""
        count = bisect_left(self.collisions, high) - bisect_right(self.collisions, low)
        slots = sum((1 << min(attempt, BACKOFF_LIMIT)) - 1 for attempt in range(1, count + 1))
        return high - low - self.busy_ns(low, high) - slots * self.slot_ns

    def _until(self, at: int) -> int:
        place = bisect_right(self.begins, at)
        if place == 0:
            return 0
        return self.passed[place - 1] - max(0, self.ends[place - 1] - at)


NEVER_BUSY = Medium()


def medium_of(taken: Iterable[tuple[int, int]], collisions: Iterable[int] = (), slot_ns: int = 0) -> Medium:
    """From (begin, end) of what took the wire, in any order."""
    begins: list[int] = []
    ends: list[int] = []
    for begin, end in sorted(taken):
        if ends and begin <= ends[-1]:
            ends[-1] = max(ends[-1], end)
        else:
            begins.append(begin)
            ends.append(end)
    passed = list(accumulate(end - begin for begin, end in zip(begins, ends, strict=True)))
    return Medium(begins, ends, passed, sorted(collisions), slot_ns)


def media(network: Network, frames: pl.DataFrame) -> dict[str, Medium]:
    """The medium of each port by its name, as `n1:eth0`. `frames` with fate; a line whose rate is unknown has none."""
    found: dict[str, Medium] = {}
    for name, segment in network.segments.items():
        here = frames.filter(pl.col("capture") == f"wire/{name}.pcapng")
        hub = segment.kind == "hub"
        for port in segment.ports:
            rate = segment.rate.get(port) if isinstance(segment.rate, Mapping) else segment.rate
            if not rate:
                continue
            ours = pl.lit(True) if hub else pl.col("interface") == port
            sent = here.filter(pl.col("fate").is_null(), pl.col("direction") == OUTBOUND, ours)
            taken = [
                (at, at + _ns(max(length, LEAST_FRAME_BYTES) + FRAMING_BYTES, rate))
                for at, length in sent.select("time_ns", "frame_length").iter_rows()
            ]
            collided = here.filter(pl.col("fate") == "collision") if hub else here.clear()
            times = collided["time_ns"].to_list()
            taken += [(at, at + _ns(SLOT_BYTES + JAM_AND_GAP_BYTES, rate)) for at in times]
            found[port] = medium_of(taken, times, _ns(SLOT_BYTES, rate))
    return found


def _ns(count: int, rate_bps: int) -> int:
    return -(-count * 8 * 1_000_000_000 // rate_bps)
