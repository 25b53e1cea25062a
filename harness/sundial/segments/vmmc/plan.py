# SPDX-License-Identifier: Apache-2.0
"""A backplane in fabric.json, and its adapters in the machines."""

from __future__ import annotations

from typing import Any

from sundial.model.network import Network, Node
from sundial.plan.cluster import node_id
from sundial.plan.segment import SegmentPlan
from sundial.segments.vmmc.model import PACKET_MOST, Backplane


class BackplanePlan(SegmentPlan[Backplane]):
    def fabric(self, segment: Backplane, name: str, network: Network) -> dict[str, Any]:
        return {
            "max_frame_bytes": PACKET_MOST,
            # A node's FIFO is the plugin's; the fabric never stops it.
            "adapter": {"ring_frames": 1, "when_full": "drop"},
            "word_latency_ns": segment.word_latency,
            "link_rate_bps": segment.link_rate,
            "dma_rate_bps": segment.dma_rate,
            "nodes": [node_id(network.node(end.partition(":")[0])) for end in segment.ports],
        }

    def adapter(self, segment: Backplane, node: Node) -> str:
        values = (
            node_id(node),
            segment.combine_bytes,
            segment.combine_timeout,
            segment.deliberate_setup,
            segment.link_rate,
            segment.dma_rate,
            segment.fifo,
        )
        return ":".join(map(str, values))


KIND: SegmentPlan[Backplane] = BackplanePlan()
