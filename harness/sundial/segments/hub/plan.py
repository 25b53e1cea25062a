# SPDX-License-Identifier: Apache-2.0
"""A hub in fabric.json."""

from __future__ import annotations

from typing import Any

from sundial.model.network import Network
from sundial.plan.segment import SegmentPlan
from sundial.segments.hub.model import Hub


class HubPlan(SegmentPlan[Hub]):
    def fabric(self, segment: Hub, name: str, network: Network) -> dict[str, Any]:
        return {
            "rate_bps": segment.rate,
            "cable_delay_ns": segment.by_port(segment.cable_delay),
            "repeater_delay_ns": segment.through,
        }


KIND: SegmentPlan[Hub] = HubPlan()
