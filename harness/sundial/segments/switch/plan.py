# SPDX-License-Identifier: Apache-2.0
"""A switch in fabric.json."""

from __future__ import annotations

from typing import Any

from sundial.model.network import Network
from sundial.plan.segment import SegmentPlan, changes
from sundial.segments.switch.model import Switch


class SwitchPlan(SegmentPlan[Switch]):
    def fabric(self, segment: Switch, name: str, network: Network) -> dict[str, Any]:
        return {
            "rate_bps": segment.by_port(segment.rate),
            "full_duplex": segment.full_duplex,
            "propagation_ns": segment.propagation,
            "forwarding_latency_ns": segment.forwarding_latency,
            "queue_frames": segment.queue_frames,
            "mac_table_entries": segment.mac_table_entries,
            "ageing_ns": segment.ageing,
            **changes(segment),
        }


KIND: SegmentPlan[Switch] = SwitchPlan()
