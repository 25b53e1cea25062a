# SPDX-License-Identifier: Apache-2.0
"""Half duplex: the frames of all stations take the wire, with their gaps, and so do collisions, after each of which a
station backs off for a random number of slots (IEEE 802.3, 4.2.3.2.5)."""

from __future__ import annotations

import polars as pl

from sundial.expect.ip import ETHERNET_GAP
from sundial.model.topology import Segment
from sundial.verify.contention import Contention, contention_of, duration_ns, serialisations
from sundial.verify.frames import COLLISION
from sundial.verify.segment import SegmentVerifier

SLOT_BYTES = 64
JAM_BYTES = 4


class _Hub:
    def contention(self, segment: Segment, port: str, frames: pl.DataFrame) -> Contention | None:
        if not isinstance(segment.rate, int):
            return None
        times = frames.filter(pl.col("fate") == COLLISION)["time_ns"].to_list()
        jammed_ns = duration_ns(SLOT_BYTES + JAM_BYTES + ETHERNET_GAP, segment.rate)
        taken = [*serialisations(frames, segment.rate), *((at, at + jammed_ns) for at in times)]
        return contention_of(taken, times, duration_ns(SLOT_BYTES, segment.rate))

    def hears_all(self, segment: Segment) -> bool:
        return True

    def keeps_order(self, segment: Segment, port: str) -> bool:
        return True


KIND: SegmentVerifier = _Hub()
