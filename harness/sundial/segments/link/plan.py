# SPDX-License-Identifier: Apache-2.0
"""A link in fabric.json."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from sundial.model.impairments import Impairments
from sundial.model.network import Network
from sundial.model.segment import GilbertElliott
from sundial.plan.segment import SegmentPlan, changes
from sundial.segments.link.model import Link

_NAMES = {
    "delay": "delay_ns",
    "jitter": "jitter_ns",
    "rate": "rate_bps",
    "packet_overhead": "packet_overhead_bytes",
    "cell_size": "cell_size_bytes",
    "cell_overhead": "cell_overhead_bytes",
    "limit": "limit_frames",
}
"""Fields whose name in fabric.json carries a unit; the others keep theirs."""


class LinkPlan(SegmentPlan[Link]):
    def fabric(self, segment: Link, name: str, network: Network) -> dict[str, Any]:
        sending = {str(index): impairments(segment.sending(end)) for index, end in enumerate(segment.ports)}
        return {
            "rate_bps": segment.rate,
            "propagation_ns": segment.propagation,
            "impairments": {port: fields for port, fields in sending.items() if fields},
            **changes(segment, impairments),
        }


def impairments(written: Impairments) -> dict[str, Any]:
    """Impairments as fabric.json has them; what was not written is left out."""
    values = {name: getattr(written, name) for name in Impairments.model_fields}
    return {_NAMES.get(name, name): _value(value) for name, value in values.items() if value is not None}


def _value(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, GilbertElliott):
        return {name: float(getattr(value, name)) for name in GilbertElliott.model_fields}
    return value


KIND: SegmentPlan[Link] = LinkPlan()
