# SPDX-License-Identifier: Apache-2.0
"""A switch in the drawing, and in the wire minimum: a line to it and a line from it, with its latency between."""

from __future__ import annotations

from sundial.report.segment import SegmentReport
from sundial.report.topology_view import rate_text, titled
from sundial.report.wire_time import Hop
from sundial.segments.switch.model import Switch


class SwitchReport(SegmentReport[Switch]):
    def lines(self, segment: Switch) -> list[str]:
        return [
            "switch, full duplex",
            *map(rate_text, sorted(set(segment.by_port(segment.rate)))),
            *titled("cable", segment.propagation),
            *titled("forwarding", segment.forwarding_latency),
        ]

    def hops(self, segment: Switch, sender: str, receiver: str) -> list[Hop]:
        rates = dict(zip(segment.ports, segment.by_port(segment.rate), strict=True))
        inward = Hop(rates[sender], segment.propagation + segment.forwarding_latency)
        return [inward, Hop(rates[receiver], segment.propagation)]


KIND: SegmentReport[Switch] = SwitchReport()
