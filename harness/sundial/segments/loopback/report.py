# SPDX-License-Identifier: Apache-2.0
"""A captured loopback in the drawing: a note of its machine."""

from __future__ import annotations

from typing import Never

from sundial.model.network import Node
from sundial.report.segment import SegmentReport


class LoopbackReport(SegmentReport[Never]):
    def notes(self, node: Node) -> list[str]:
        return [f"{nic.device} captured: {nic.segment}" for nic in node.inner]


KIND: SegmentReport[Never] = LoopbackReport()
