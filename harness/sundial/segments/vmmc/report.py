# SPDX-License-Identifier: Apache-2.0
"""A backplane in the drawing."""

from __future__ import annotations

from sundial.report.segment import SegmentReport
from sundial.report.topology_view import rate_text, titled
from sundial.segments.vmmc.model import Backplane


class BackplaneReport(SegmentReport[Backplane]):
    def lines(self, segment: Backplane) -> list[str]:
        return [
            "backplane, memory to memory",
            rate_text(segment.link_rate),
            *titled("word", segment.word_latency),
            f"memory {rate_text(segment.dma_rate)}",
        ]


KIND: SegmentReport[Backplane] = BackplaneReport()
