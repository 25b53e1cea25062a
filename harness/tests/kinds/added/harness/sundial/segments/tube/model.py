# SPDX-License-Identifier: Apache-2.0
"""A tube as written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from sundial.model.fields import In, written
from sundial.model.invalid import Invalid, Path
from sundial.model.segment import CableTime, SegmentBase, SegmentKind
from sundial.units import RATE


class Tube(SegmentBase):
    """Two ends and a fixed time between them."""

    kind: Literal["tube"]
    """A tube."""
    rate: Annotated[int, In(RATE)]
    """Bits a second, from each end."""
    delay: CableTime = written("1 us")  # type: ignore[assignment]
    """From end to end."""

    def rate_bps(self, port: str) -> int:
        return self.rate

    def check(self, path: Path) -> Iterator[Invalid]:
        if len(self.ports) != 2:
            yield Invalid((*path, "ports"), f"a tube with {len(self.ports)} ends", "2")


class TubeKind(SegmentKind):
    model = Tube


KIND: SegmentKind = TubeKind()
