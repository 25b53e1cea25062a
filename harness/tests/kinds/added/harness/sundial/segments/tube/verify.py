# SPDX-License-Identifier: Apache-2.0
"""Each end sends by itself."""

from __future__ import annotations

import polars as pl

from sundial.model.topology import Segment
from sundial.verify.contention import Contention, of_own_frames
from sundial.verify.segment import SegmentVerifier


class _Tube:
    def contention(self, segment: Segment, port: str, frames: pl.DataFrame) -> Contention | None:
        return of_own_frames(port, segment.rate, frames)

    def hears_all(self, segment: Segment) -> bool:
        return True

    def keeps_order(self, segment: Segment, port: str) -> bool:
        return True


KIND: SegmentVerifier = _Tube()
