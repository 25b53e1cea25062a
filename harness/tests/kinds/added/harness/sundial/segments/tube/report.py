# SPDX-License-Identifier: Apache-2.0
"""A tube in the drawing and in the wire minimum."""

from __future__ import annotations

from sundial.segments.tube.model import Tube

from sundial.report.segment import SegmentReport
from sundial.report.topology_view import rate_text, titled
from sundial.report.wire_time import Hop


class TubeReport(SegmentReport[Tube]):
    def lines(self, segment: Tube) -> list[str]:
        return ["a tube", rate_text(segment.rate), *titled("delay", segment.delay)]

    def hops(self, segment: Tube, sender: str, receiver: str) -> list[Hop]:
        return [Hop(segment.rate, segment.delay)]


KIND: SegmentReport[Tube] = TubeReport()
