# SPDX-License-Identifier: Apache-2.0
"""When what a LAN emulation client wanted to send has left: at once, or behind what its line was carrying.

Stamps are whole ns, rounded up, of instants that need not be: two that follow from one another are right within 1 ns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sundial.segments.atm.model import Atm
from sundial.segments.atm.verify_lines import NS
from sundial.segments.atm.verify_pdus import Pdus
from sundial.verify.frames import OUTBOUND
from sundial.verify.wire import Mask, Numbers, queue_starts

ROUNDING_NS = 1


@dataclass(frozen=True)
class Uplink:
    """What the client at port `number` sent, in order. `record`: of the capture; `busy_ns`: since when the line had
    been taken without a pause when each left."""

    number: int
    record: Numbers
    place: Numbers
    time_ns: Numbers
    busy_ns: Numbers
    latency_ns: int

    def asked_ns(self, place: int) -> int:
        """When a PDU was handed to the adapter, at the latest."""
        return int(self.time_ns[place]) - self.latency_ns

    def at(self, record: int) -> int:
        """The place of a record."""
        return int(np.searchsorted(self.record, record))

    def left_at(self, record: int, asked_ns: int) -> bool:
        """Whether a PDU that was handed over at `asked_ns` may have left when it did."""
        place, due = self.at(record), asked_ns + self.latency_ns
        seen, busy = int(self.time_ns[place]), int(self.busy_ns[place])
        if seen < due - ROUNDING_NS:
            return False
        return seen <= due + ROUNDING_NS or busy <= due + ROUNDING_NS

    def asked_between(self, record: int) -> tuple[int, int]:
        """When a PDU was handed to the adapter, at the earliest and at the latest."""
        place = self.at(record)
        return int(self.earliest_ns(np.array([place]))[0]), self.asked_ns(place)

    def left_between(self, record: int, asked_ns: tuple[int, int]) -> bool:
        """Whether a PDU that was handed over at some instant between two may have left when it did."""
        low, high = self.asked_between(record)
        return low <= asked_ns[1] and asked_ns[0] <= high + ROUNDING_NS

    def earliest_ns(self, places: Numbers | Mask) -> Numbers:
        """When PDUs may have been handed over at the earliest."""
        return np.asarray(self.busy_ns[places] - self.latency_ns - ROUNDING_NS)


def uplink(segment: Atm, pdus: Pdus, number: int) -> Uplink:
    """Of the client at a port."""
    port = segment.ports[number]
    place = np.flatnonzero((pdus.port == number) & (pdus.direction == OUTBOUND) & ~pdus.fate)
    time_ns = pdus.time_ns[place]
    # Whatever the order of cells: while there are any, one leaves within the time of a cell, or within the spacing.
    work = pdus.cells[place] * segment.spacing_units(port)
    free = queue_starts(time_ns * NS, work) + work
    head = np.append(True, time_ns[1:] * NS > free[:-1] + ROUNDING_NS * NS)[: len(place)]
    busy_ns = time_ns[np.maximum.accumulate(np.where(head, np.arange(len(place)), 0))] if len(place) else time_ns
    latency_ns = segment.by_port(segment.tx_latency)[number]
    return Uplink(number, pdus.numbers("row")[place], place, time_ns, busy_ns, latency_ns)
