# SPDX-License-Identifier: Apache-2.0
"""Full duplex: only what a port itself sends takes the wire in front of it."""

from __future__ import annotations

import polars as pl

from sundial.model.topology import Segment
from sundial.segments.link.model import Link
from sundial.segments.netem.model import Impairments
from sundial.verify.contention import Contention, of_own_frames
from sundial.verify.segment import SegmentVerifier


class _Link:
    def contention(self, segment: Segment, port: str, frames: pl.DataFrame) -> Contention | None:
        return of_own_frames(port, segment.rate, frames)

    def hears_all(self, segment: Segment) -> bool:
        return True

    def keeps_order(self, segment: Segment, port: str) -> bool:
        sending = segment.sending(port) if isinstance(segment, Link) else Impairments()
        # A reordered frame overtakes those that wait; a duplicate is sent behind its original.
        return sending.jitter is None and sending.reorder is None


KIND: SegmentVerifier = _Link()
