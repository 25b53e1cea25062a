# SPDX-License-Identifier: Apache-2.0
"""The lines from the adapters: when each PDU's cells leave, from the stamps of the first ones.

Times are in units of 1/117 ps, in which a cell takes a whole number; a stamp is a time in whole ns, rounded up. PDU
after PDU, a line carries cells without a pause; one that is idle begins at once. What a machine hands in begins at a
whole ns then; what an adapter or a device sends for another reason begins somewhere in the ns of its stamp.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from sundial.expect.atm import UNITS_PER_PS
from sundial.segments.atm.model import Atm
from sundial.segments.atm.verify_pdus import Pdus, at_records, of
from sundial.segments.atm.verify_turns import departures
from sundial.verify.frames import OUTBOUND
from sundial.verify.wire import Mask, Numbers

NS = 1000 * UNITS_PER_PS
"""A nanosecond in units."""


def stamp(units: Numbers) -> Numbers:
    """In whole ns, rounded up."""
    return np.asarray(-(-units // NS))


@dataclass(frozen=True)
class Times:
    """Instants that are known to lie between two, and the likeliest of them; in units."""

    likely: Numbers
    low: Numbers
    high: Numbers

    def take(self, which: Numbers | Mask) -> Times:
        """Some of them, by place or by mask."""
        return Times(self.likely[which], self.low[which], self.high[which])

    def __add__(self, span: Numbers | int) -> Times:
        return Times(self.likely + span, self.low + span, self.high + span)

    @property
    def exact(self) -> bool:
        return bool((self.low == self.high).all())


def joined(parts: list[Times]) -> Times:
    """Several as one."""
    return Times(*(np.concatenate([getattr(each, name) for each in parts]) for name in ("likely", "low", "high")))


@dataclass(frozen=True)
class Sent:
    """What one port sent, in order of time. `place`: of the PDU among all of the capture."""

    place: Numbers
    vci: Numbers
    cells: Numbers
    start: Times
    """Of the first cell."""
    spacing: int
    """From the first bit of a cell to that of the next of the same PDU, where nothing comes between."""
    cell_time: int
    delays: Numbers
    """By how much each cell of each PDU, one behind the other, leaves later than that; none where nothing comes
    between."""

    def __len__(self) -> int:
        return len(self.place)

    @property
    def end(self) -> Times:
        """Of the last cell's last bit."""
        return self.start + (self.offsets[np.cumsum(self.cells) - 1] + self.cell_time)

    @property
    def offsets(self) -> Numbers:
        """Of each cell of each PDU, from the first of that."""
        place = np.arange(int(self.cells.sum())) - np.repeat(np.cumsum(self.cells) - self.cells, self.cells)
        return place * self.spacing + (self.delays if len(self.delays) else 0)


def sent_by(segment: Atm, pdus: Pdus, number: int, whole: Mask) -> Sent:
    """What the port of a `number` sent; `whole`: PDUs that begin at a whole ns where the line is idle."""
    port = segment.ports[number]
    place = np.flatnonzero((pdus.port == number) & (pdus.direction == OUTBOUND))
    cell_time, spacing = segment.cell_time_units(port), segment.spacing_units(port)
    cells = pdus.cells[place]
    busy = (cells - 1) * spacing + cell_time
    vci = pdus.vci[place]
    if segment.interleave == "cells":
        seen = pdus.time_ns[place] * NS
        times, first, slack = departures(seen, whole[place], vci, cells, cell_time, spacing, NS)
        start = Times(first, np.maximum(first - slack, seen - NS + 1), np.minimum(first, seen))
        regular = Sent(place, vci, cells, start, spacing, cell_time, place[:0])
        return replace(regular, delays=times - np.repeat(first, cells) - regular.offsets)
    if spacing > cell_time:
        # The channel waits for its own pace, not for the line.
        again = np.append(vci[1:] == vci[:-1], False)[: len(place)]
        busy = np.where(again, cells * spacing, busy)
    start = starts(pdus.time_ns[place], busy, whole[place])
    return Sent(place, vci, cells, start, spacing, cell_time, place[:0])


def starts(seen_ns: Numbers, busy: Numbers, whole: Mask) -> Times:
    """When transmissions began that are stamped in whole ns, each of which takes the line for so long."""
    seen = seen_ns * NS
    if not len(seen):
        return Times(seen, seen, seen)
    behind = np.cumsum(busy) - busy
    head = np.append(True, np.abs(np.diff(seen) - busy[:-1]) >= NS)
    # One that comes in the very ns in which the line falls idle begins at its end, and need not have waited for it.
    slack = np.where(head & whole, 0, NS - 1)
    while True:
        first = np.maximum.accumulate(np.where(head, np.arange(len(head)), 0))
        likely = seen[first] + behind - behind[first]
        # Less than a ns between the end of one and the beginning of the next.
        apart = ~head & (likely <= seen - NS)
        if not apart.any():
            break
        head |= apart & ~np.append(False, apart[:-1])
    likely = np.minimum(likely, seen)
    return Times(likely, np.maximum(likely - slack[first], seen - NS + 1), seen)


def check_line(segment: Atm, pdus: Pdus, number: int, sent: Sent) -> pl.DataFrame:
    """No PDU begins before the one before has left, with interleaving neither before its first cell has."""
    whole = segment.interleave == "pdu"
    taken = sent.cells * 0 + sent.cell_time if not whole else (sent.cells - 1) * sent.spacing + sent.cell_time
    free = stamp(sent.start.low + taken)
    seen = pdus.time_ns[sent.place]
    wrong = np.append(False, seen[1:] < free[:-1])[: len(seen)]
    before = np.append(0, free[:-1])[: len(seen)]
    records = pdus.numbers("row")[sent.place]
    return at_records(pdus.name, f"the line from {segment.ports[number]}", wrong, records,
                      of(wrong, "free at {} ns", before), of(wrong, "begins at {} ns", seen))  # fmt: skip
