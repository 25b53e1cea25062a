# SPDX-License-Identifier: Apache-2.0
"""When the wire in front of a port was free, as the capture shows it: what a frame may have waited for. Pure.

What takes it, the kind of segment knows (`segment.SegmentVerifier`).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from sundial.expect.ip import ETHERNET_FCS, ETHERNET_GAP, ETHERNET_MIN, ETHERNET_PREAMBLE
from sundial.verify.frames import OUTBOUND

BACKOFF_LIMIT = 10
"""IEEE 802.3, 4.2.3.2.5: the range of slots doubles with each of so many collisions."""
_FRAMING = ETHERNET_PREAMBLE + ETHERNET_FCS + ETHERNET_GAP


@dataclass(frozen=True)
class Contention:
    """Stretches in which the wire was taken, in order and apart; `passed`: their sum up to each; collisions of one
    port. What is asked of it is when frames are handed in: `latency_ns` before they could be on the wire."""

    begins: Sequence[int] = ()
    ends: Sequence[int] = ()
    passed: Sequence[int] = ()
    collisions: list[int] = field(default_factory=list)
    slot_ns: int = 0
    latency_ns: int = 0

    def busy_ns(self, low: int, high: int) -> int:
        """How long the wire was taken between two instants."""
        return self._until(high + self.latency_ns) - self._until(low + self.latency_ns)

    def idle_ns(self, low: int, high: int) -> int:
        """How long it was certainly free for the port: not taken, and not perhaps backing off."""
        late = self.latency_ns
        count = bisect_left(self.collisions, high + late) - bisect_right(self.collisions, low + late)
        slots = sum((1 << min(attempt, BACKOFF_LIMIT)) - 1 for attempt in range(1, count + 1))
        return high - low - self.busy_ns(low, high) - slots * self.slot_ns

    def taken_for(self, least_ns: int) -> list[tuple[int, int]]:
        """From when until when the wire had been taken for so long without a pause but for the adapter's latency, when
        frames are handed in."""
        begins, ends = np.asarray(self.begins, np.int64), np.asarray(self.ends, np.int64)
        paused = np.flatnonzero(begins[1:] > ends[:-1] + self.latency_ns)
        since, until = begins[np.append(0, paused + 1)[: len(begins)]], ends[np.append(paused, -1)[: len(ends)]]
        long = until - since >= least_ns
        return [*zip((since[long] + least_ns - self.latency_ns).tolist(), until[long].tolist(), strict=True)]

    def _until(self, at: int) -> int:
        place = bisect_right(self.begins, at)
        if place == 0:
            return 0
        return self.passed[place - 1] - max(0, self.ends[place - 1] - at)


NEVER_BUSY = Contention()


def contention_of(taken: ArrayLike, collisions: Iterable[int] = (), slot_ns: int = 0) -> Contention:
    """From (begin, end) of what took the wire, in any order."""
    spans = np.asarray(taken, np.int64).reshape(-1, 2)
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    latest = np.maximum.accumulate(spans[:, 1])
    heads = np.flatnonzero(np.append(True, spans[1:, 0] > latest[:-1])) if len(spans) else np.empty(0, np.int64)
    begins = spans[heads, 0]
    ends = latest[np.append(heads[1:], len(spans)) - 1] if len(spans) else begins
    passed = np.cumsum(ends - begins)
    # Not lists, whose numbers are objects: there is one for each frame.
    columns = [array("q", each.astype(np.int64).tobytes()) for each in (begins, ends, passed)]
    return Contention(columns[0], columns[1], columns[2], sorted(collisions), slot_ns)


def serialisations(frames: pl.DataFrame, rate_bps: int) -> NDArray[np.int64]:
    """When frames that were sent were on a wire of `rate_bps`, with preamble, FCS and gap: a row (begin, end) each.
    `frames` with fate."""
    names = ("time_ns", "frame_length", "fate", "direction")
    sent = frames.select(names).filter(pl.col("fate").is_null(), pl.col("direction") == OUTBOUND)
    lengths, which = np.unique(sent["frame_length"].to_numpy(), return_inverse=True)
    taken = [duration_ns(max(length, ETHERNET_MIN) + _FRAMING, rate_bps) for length in lengths.tolist()]
    begins = sent["time_ns"].to_numpy()
    return np.stack([begins, begins + np.array(taken, np.int64)[which]], axis=1)


def of_own_frames(port: str, rate_bps: int | Mapping[str, int] | None, frames: pl.DataFrame) -> Contention | None:
    """Where nothing but what the port itself sends takes the wire. `rate_bps`: of all ports, or by port."""
    rate_bps = rate_bps.get(port) if isinstance(rate_bps, Mapping) else rate_bps
    if not rate_bps:
        return None
    names = ("time_ns", "frame_length", "fate", "direction", "interface")
    return contention_of(serialisations(frames.select(names).filter(pl.col("interface") == port), rate_bps))


def duration_ns(count: int, rate_bps: int) -> int:
    """Of so many bytes."""
    return -(-count * 8 * 1_000_000_000 // rate_bps)
