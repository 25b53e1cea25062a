# SPDX-License-Identifier: Apache-2.0
"""A switch as written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from sundial.model.devices import Ageing, TableEntries
from sundial.model.fields import OneOrByPort, written
from sundial.model.invalid import Invalid, Path
from sundial.model.segment import CableTime, Frames, LinkTime, SegmentBase, SegmentKind
from sundial.model.timeline import CUT, PARTITION
from sundial.units import RATE


class Switch(SegmentBase):
    """A learning store-and-forward switch with an output queue at every port."""

    kind: Literal["switch"]
    """A switch."""
    rate: Annotated[int | dict[str, int], OneOrByPort(RATE)]
    """Rate: one for all ports, or by port."""
    full_duplex: Literal[True] = True
    """Always full; for half duplex use `hub`."""
    propagation: CableTime = written("25 ns")
    """Propagation delay of every cable."""
    forwarding_latency: LinkTime = written("5 us")
    """Time from a frame's last bit in to its first bit out, at the earliest."""
    queue_frames: Frames = 128
    """Places in an output queue, in frames."""
    mac_table_entries: TableEntries = 1024
    """Most addresses in the switch's table."""
    ageing: Ageing = written("300 s")
    """Time after which the switch forgets a learned address."""

    @property
    def knobs(self) -> frozenset[str]:
        return frozenset((CUT, PARTITION))

    def rate_bps(self, port: str) -> int:
        return self.rate[port] if isinstance(self.rate, dict) else self.rate

    def check(self, path: Path) -> Iterator[Invalid]:
        if isinstance(self.rate, dict):
            yield from self.check_ports((*path, "rate"), self.rate, every=True)


class SwitchKind(SegmentKind):
    model = Switch


KIND: SegmentKind = SwitchKind()
