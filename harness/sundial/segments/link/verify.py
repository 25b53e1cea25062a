# SPDX-License-Identifier: Apache-2.0
"""Full duplex: only what a port itself sends takes the wire in front of it."""

from __future__ import annotations

import polars as pl

from sundial.model.topology import Segment
from sundial.verify.contention import Contention, of_own_frames
from sundial.verify.segment import SegmentVerifier


class _Link(SegmentVerifier):
    def contention(self, segment: Segment, port: str, frames: pl.DataFrame) -> Contention | None:
        return of_own_frames(port, segment.rate, frames)


KIND: SegmentVerifier = _Link()
