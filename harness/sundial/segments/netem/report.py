# SPDX-License-Identifier: Apache-2.0
"""A bridge in the drawing."""

from __future__ import annotations

from typing import Never

from sundial.model.network import Node
from sundial.report.segment import SegmentReport


class NetemReport(SegmentReport[Never]):
    def notes(self, node: Node) -> list[str]:
        return [f"netem on {nic.device}: {nic.netem}" for nic in node.nics if nic.netem]


KIND: SegmentReport[Never] = NetemReport()
