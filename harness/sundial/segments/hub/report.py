# SPDX-License-Identifier: Apache-2.0
"""A hub in the drawing, and in the wire minimum: one line from station to station, for it repeats bit by bit."""

from __future__ import annotations

from sundial.report.segment import SegmentReport
from sundial.report.topology_view import rate_text, titled
from sundial.report.wire_time import Hop
from sundial.segments.hub.model import Hub


class HubReport(SegmentReport[Hub]):
    def lines(self, segment: Hub) -> list[str]:
        cables = sorted(set(segment.by_port(segment.cable_delay)))
        return [
            "hub, half duplex",
            rate_text(segment.rate),
            *(line for delay in cables for line in titled("cable", delay)),
            *titled("repeater", segment.through),
        ]

    def hops(self, segment: Hub, sender: str, receiver: str) -> list[Hop]:
        cables = dict(zip(segment.ports, segment.by_port(segment.cable_delay), strict=True))
        return [Hop(segment.rate, cables[sender] + segment.through + cables[receiver])]


KIND: SegmentReport[Hub] = HubReport()
