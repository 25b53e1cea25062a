# SPDX-License-Identifier: Apache-2.0
"""A link in the drawing, and in the wire minimum: a shaper and a delay where there are such, then the line."""

from __future__ import annotations

from sundial.model.impairments import Impairments
from sundial.report.segment import SegmentReport
from sundial.report.topology_view import rate_text, time_text, titled
from sundial.report.wire_time import INSTANT_BPS, Hop
from sundial.segments.link.model import Link


class LinkReport(SegmentReport[Link]):
    corner_px = 17

    def lines(self, segment: Link) -> list[str]:
        return [
            "link, full duplex",
            rate_text(segment.rate),
            *titled("propagation", segment.propagation),
            *_impairment_lines(segment),
        ]

    def hops(self, segment: Link, sender: str, receiver: str) -> list[Hop]:
        every = segment.every(sender)
        found = []
        if all(each.rate is not None for each in every):
            effects = max(every, key=lambda each: each.rate or 0)
            overheads = (effects.packet_overhead or 0, effects.cell_size or 0, effects.cell_overhead or 0)
            found.append(Hop(effects.rate or INSTANT_BPS, 0.0, False, *overheads))
        delay = min(each.delay or 0 for each in every)
        if delay:
            found.append(Hop(INSTANT_BPS, delay, False))
        return [*found, Hop(segment.rate, segment.propagation)]

    def delays_vary(self, segment: Link) -> bool:
        return any(each.jitter for port in segment.ports for each in segment.every(port))


def _impairment_lines(segment: Link) -> list[str]:
    """What the link does to frames, once if both directions are alike."""
    ways = {port: _lines(segment.sending(port)) for port in segment.ports}
    impaired = {port: lines for port, lines in ways.items() if lines}
    first, *others = impaired.values() or [[]]
    if others and all(lines == first for lines in others):
        return ["both ways:", *first]
    return [text for port, lines in impaired.items() for text in (f"from {port.partition(':')[0]}:", *lines)]


def _lines(effects: Impairments) -> list[str]:
    lines = []
    if effects.delay or effects.jitter:
        jitter = f" ± {time_text(effects.jitter)}" if effects.jitter else ""
        shape = f" ({effects.distribution})" if jitter and effects.distribution else ""
        lines.append(f"delay {time_text(effects.delay or 0)}{jitter}{shape}")
    shares = {name: getattr(effects, name) for name in ("loss", "duplicate", "corrupt", "reorder")}
    lines += [f"{name} {float(100 * share):.4g} %" for name, share in shares.items() if share]
    if effects.gemodel is not None:
        lines.append("loss in bursts (Gilbert-Elliott)")
    if effects.rate:
        lines.append(f"shaped to {rate_text(effects.rate)}")
    if effects.limit:
        lines.append(f"queue of {effects.limit} frames")
    return lines


KIND: SegmentReport[Link] = LinkReport()
