# SPDX-License-Identifier: Apache-2.0
"""What the report asks of a kind of segment: how it is drawn, the least time that frames need on it, what it shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from sundial.model.network import Node
from sundial.model.segment import SegmentBase
from sundial.report.wire_time import AnyHop

if TYPE_CHECKING:
    import polars as pl

    from sundial.report.load import RunData
    from sundial.report.plotting import Drawing
    from sundial.report.tables import Table

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

    def sent_packets(self, segment: SegmentT, name: str, data: RunData) -> pl.DataFrame | None:
        """IP packets that its ports sent in cells, with the columns of `cells.SENT`; None: it records none."""
        return None

    def drawings(self, segment: SegmentT, name: str, data: RunData, folder: Path) -> Iterator[Drawing]:
        """Figures of what only this kind of segment has; `name` is the segment's."""
        yield from ()

    def tables(self, segment: SegmentT, name: str, data: RunData) -> Iterator[Table]:
        """Tables of what only this kind of segment has."""
        yield from ()

    def notes(self, node: Node) -> list[str]:
        """Small print for the card of a machine that is a segment of this kind."""
        return []
