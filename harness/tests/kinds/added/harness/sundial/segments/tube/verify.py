# SPDX-License-Identifier: Apache-2.0
"""Each end sends by itself."""

from __future__ import annotations

import polars as pl
from sundial.segments.tube.model import Tube

from sundial.verify.contention import Contention, of_own_frames
from sundial.verify.segment import SegmentVerifier


class _Tube(SegmentVerifier[Tube]):
    def contention(self, segment: Tube, port: str, frames: pl.DataFrame) -> Contention | None:
        return of_own_frames(port, segment.rate, frames)

    def receives_all(self, segment: Tube) -> bool:
        return True

    def keeps_order(self, segment: Tube, port: str) -> bool:
        return True


KIND: SegmentVerifier[Tube] = _Tube()
