# SPDX-License-Identifier: Apache-2.0
"""A bridge in the job of its machine."""

from __future__ import annotations

from typing import Any, Never

from sundial.model.network import Node
from sundial.plan.segment import SegmentPlan

START_NS = 1_000_000_000
"""A bridge loads modules and must forward the first frame."""


class NetemPlan(SegmentPlan[Never]):
    def bridge(self, node: Node) -> dict[str, Any] | None:
        if node.role != "bridge":
            return None
        return {"ports": [nic.device for nic in node.nics], "netem": {nic.device: nic.netem for nic in node.nics}}

    def start_ns(self, node: Node) -> int:
        return START_NS if node.role == "bridge" else 0


KIND: SegmentPlan[Never] = NetemPlan()
