# SPDX-License-Identifier: Apache-2.0
"""What the report asks of a kind of segment: how it is drawn, and the least time that frames need on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar, runtime_checkable

from sundial.model.network import Node
from sundial.model.segment import SegmentBase
from sundial.report.wire_time import AnyHop

SegmentT = TypeVar("SegmentT", bound=SegmentBase, contravariant=True)


@runtime_checkable
class SegmentReport(Protocol[SegmentT]):
    """A kind that is written under `segments:` has lines and hops, one that is made of a machine has notes."""

    corner_px: int = 4
    """Radius of the corners of its box."""

    def lines(self, segment: SegmentT) -> list[str]:
        """What stands under its name: the kind, rates, delays, impairments."""
        return []

    def hops(self, segment: SegmentT, sender: str, receiver: str) -> Sequence[AnyHop]:
        """The lines that a frame takes one after another from one port to another."""
        return ()

    def delays_vary(self, segment: SegmentT) -> bool:
        """Whether a frame's delay is drawn at random; hops then have its mean."""
        return False

    def services(self, segment: SegmentT) -> list[str]:
        """What it has inside beside the ports, in words; drawn as a box of its own."""
        return []

    def mesh(self, segment: SegmentT) -> int:
        """How many ports permanent channels join each with each; 0: none."""
        return 0

    def notes(self, node: Node) -> list[str]:
        """Small print for the card of a machine that is a segment of this kind."""
        return []
