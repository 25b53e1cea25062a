# SPDX-License-Identifier: Apache-2.0
"""A tube in fabric.json."""

from __future__ import annotations

from typing import Any

from sundial.segments.tube.model import Tube

from sundial.model.network import Network
from sundial.plan.segment import SegmentPlan


class TubePlan(SegmentPlan[Tube]):
    def fabric(self, segment: Tube, name: str, network: Network) -> dict[str, Any]:
        return {"rate_bps": segment.rate, "delay_ns": segment.delay}


KIND: SegmentPlan[Tube] = TubePlan()
