# SPDX-License-Identifier: Apache-2.0
"""A hub as written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from sundial.model.fields import In, OneOrByPort, written
from sundial.model.invalid import Invalid, Path
from sundial.model.segment import CABLE, CableTime, SegmentBase, SegmentKind
from sundial.units import RATE, TIME

RATES = {10_000_000: 800, 100_000_000: 460}
"""Rates with the repeater's delay in ns where none is written: 8 bit times (IEEE 802.3 clause 9), and half of class
II's round trip of 92 bit times (clause 27)."""

SLOT_BITS = 512
JAM_BITS = 32
"""slotTime and jamSize (IEEE 802.3, table 4-2)."""
CARRIER_SENSE_NS = {10_000_000: 1000, 100_000_000: 175}
"""By rate: from a signal's first bit at a station's cable until the station knows of it (see the fabric's README)."""


class Hub(SegmentBase):
    """A repeater with half-duplex stations: CSMA/CD."""

    kind: Literal["hub"]
    """A repeater hub."""
    rate: Annotated[int, In(RATE.between("10 Mbit/s", "100 Mbit/s"))]
    """10 Mbit/s (10Base-T) or 100 Mbit/s (100Base-TX)."""
    cable_delay: Annotated[int | dict[str, int], OneOrByPort(CABLE)] = written("25 ns")
    """Propagation delay from a machine to the hub: one for all, or by port (5 ns a metre)."""
    repeater_delay: CableTime | None = None
    """Delay of the repeater. Default: 8 bit times at 10 Mbit/s, 46 (class II) at 100 Mbit/s."""

    @property
    def through(self) -> int:
        """The repeater's delay in ns, written or by rate."""
        return RATES[self.rate] if self.repeater_delay is None else self.repeater_delay

    def rate_bps(self, port: str) -> int:
        return self.rate

    def check(self, path: Path) -> Iterator[Invalid]:
        if self.rate not in RATES:
            yield Invalid((*path, "rate"), "is not a rate of a hub", "10 Mbit/s, 100 Mbit/s")
        wrong = []
        if isinstance(self.cable_delay, dict):
            wrong = list(self.check_ports((*path, "cable_delay"), self.cable_delay, every=True))
            yield from wrong
        if not wrong and self.rate in RATES:
            yield from self._check_slot(path)

    def _check_slot(self, path: Path) -> Iterator[Invalid]:
        longest = sorted(self.by_port(self.cable_delay))[-2:]
        most = (SLOT_BITS - JAM_BITS) * 10**9 // self.rate - 2 * CARRIER_SENSE_NS[self.rate]
        if 2 * (sum(longest) + self.through) > most:
            yield Invalid(
                (*path, "cable_delay"),
                "a round trip over the two longest cables, carrier sense at both ends and the jam exceed the slot "
                "time, so collisions would be late",
                f"a round trip of at most {TIME.show(most)}, including the repeater",
            )


class HubKind(SegmentKind):
    model = Hub


KIND: SegmentKind = HubKind()
