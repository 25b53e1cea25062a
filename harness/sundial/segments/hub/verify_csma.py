# SPDX-License-Identifier: Apache-2.0
"""What was on a half-duplex Ethernet (IEEE 802.3, clause 4): transmissions, whole and broken off, and how each station
heard them. `verify_law.py` checks them against the standard.

A station knows of a carrier `Medium.sense_ns` after its first bit has come in, and of its end at once. A collision is
recorded when its station knows of it. When that transmission began follows from the others' records: the station that
began first is what all others heard, and the second is what the first one heard.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from sundial.segments.hub.model import JAM_BITS, SLOT_BITS
from sundial.verify.wire import GAP_BITS, Mask, Numbers, Wire, bits_of

PREAMBLE_BITS = 64
ATTEMPTS = 16
BACKOFF_LIMIT = 10
"""IEEE 802.3, table 4-2: attemptLimit, backOffLimit; the preamble is finished before the jam."""

NEVER = -(1 << 62)


@dataclass(frozen=True)
class Medium:
    """A hub's parameters."""

    bit_ns: int
    cables_ns: Numbers
    """From each station to the hub."""
    repeater_ns: int
    sense_ns: int
    """From the arrival of a carrier's first bit to the instant from which its station defers, or finds a collision."""

    @property
    def gap_ns(self) -> int:
        return GAP_BITS * self.bit_ns

    @property
    def slot_ns(self) -> int:
        return SLOT_BITS * self.bit_ns

    @property
    def longest_ns(self) -> int:
        """Between the two stations that are farthest from each other."""
        return int(np.sort(self.cables_ns)[-2:].sum()) + self.repeater_ns

    def way_ns(self, sender: Numbers, receiver: int) -> Numbers:
        """From station to station."""
        return np.asarray(self.cables_ns[sender] + self.repeater_ns + self.cables_ns[receiver])


@dataclass(frozen=True)
class Transmissions:
    """All that was on the wire, in order of time."""

    row: Numbers
    station: Numbers
    seen: Numbers
    """The record's time: the start, or where it collided, when its station noticed."""
    start: Numbers
    latest: Numbers
    """The start is not after this; other than `start` where three stations or more collide and it is unknown."""
    bits: Numbers
    """As many as were sent."""
    content: Numbers
    attempt: Numbers
    """Of what collided; else 0."""
    alone: Mask
    """Whether no other station noticed what this one did, or more than one did not hear the first."""
    bit_ns: int

    def __len__(self) -> int:
        return len(self.row)

    @cached_property
    def end(self) -> Numbers:
        return self.start + self.bits * self.bit_ns

    @cached_property
    def broken(self) -> Mask:
        """Whether it collided."""
        return self.attempt > 0

    def take(self, which: Numbers | Mask) -> Transmissions:
        """Some of them, by place or by mask."""
        return Transmissions(**{name: getattr(self, name)[which] for name in _COLUMNS}, bit_ns=self.bit_ns)


_COLUMNS = ("row", "station", "seen", "start", "latest", "bits", "content", "attempt", "alone")


def transmissions(wire: Wire, medium: Medium, collisions: pl.DataFrame) -> Transmissions:
    """What stations sent, and `collisions`: row, station, time_ns, bits, octets_hash and attempt of each."""
    row, station, time, bits, content, attempt = (
        collisions[name].cast(pl.Int64).to_numpy()
        for name in ("row", "station", "time_ns", "bits", "octets_hash", "attempt")
    )
    low, high, alone = _starts(time, station, bits, medium)
    parts = [(row, station, time, low, high, bits, content, attempt, alone)]
    for place, sent in enumerate(wire.sent):
        at, here = sent.time_ns, np.full(len(sent), place)
        parts.append((sent.row, here, at, at, at, bits_of(sent.length), sent.content, 0 * here, here < 0))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    everything = Transmissions(**dict(zip(_COLUMNS, columns, strict=True)), bit_ns=medium.bit_ns)
    return everything.take(np.lexsort((everything.station, everything.start)))


def _starts(seen: Numbers, station: Numbers, bits: Numbers, medium: Medium) -> tuple[Numbers, Numbers, Mask]:
    """The earliest and the latest start of transmissions whose stations noticed a collision at `seen`, and `alone`.

    Times are counted at the hub: a station that began first is heard by all others at once.
    """
    if not len(seen):
        return seen, seen, seen < 0
    order = np.argsort(seen, kind="stable")
    seen, station, bits = seen[order], station[order], bits[order]
    cable, bit = medium.cables_ns[station], medium.bit_ns
    at_hub = seen - medium.sense_ns - cable - medium.repeater_ns
    fresh = np.append(True, np.diff(seen) > medium.longest_ns + medium.sense_ns)
    first, event = np.flatnonzero(fresh), np.cumsum(fresh) - 1
    earliest, second = np.minimum.reduceat(at_hub, first)[event], np.maximum.reduceat(at_hub, first)[event]
    number = np.bincount(event)[event]
    many = number > 2
    deaf = np.bincount(event, at_hub > earliest)[event]
    alone = (number < 2) | (deaf > 1)
    began_first = (at_hub == second) & (second > earliest)
    low = np.where(began_first, earliest, second) - cable
    high = np.where(began_first | ~many, low, seen - 1)
    # What is longer than preamble and jam was stopped at once: its bits tell when it began. What is not was heard of
    # within its preamble.
    shown = (bits > PREAMBLE_BITS + JAM_BITS) & (high > low)
    low = np.where((high > low) & ~shown, np.maximum(low, seen - PREAMBLE_BITS * bit), low)
    began = seen - (bits - JAM_BITS) * bit
    low = np.where(shown, np.maximum(low, began), low)
    high = np.where(shown, np.minimum(high, began + bit - 1), high)
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return low[back], np.maximum(low, high)[back], alone[back]


@dataclass(frozen=True)
class Station:
    """How the wire looked at one station."""

    own: Transmissions
    heard_begin: Numbers
    heard_end: Numbers
    """The latest end of all that it has heard up to each."""
    free: Numbers
    """For each of its own transmissions: when the gap after all before it was over."""
    before: Numbers
    """When what was on the wire before that gap had begun."""
    since: Numbers
    """For each of its own transmissions: when the wire was taken, by it or by another."""

    @cached_property
    def first(self) -> Mask:
        """Which of its own transmissions are the first attempt of a frame."""
        first = np.ones(len(self.own), np.bool_)
        first[1:] = ~self.own.broken[:-1] | (self.own.attempt[:-1] >= ATTEMPTS)
        return first

    @cached_property
    def overlapped(self) -> Mask:
        """Which of its own transmissions another one reached."""
        until = np.searchsorted(self.heard_begin, self.own.end, "left")
        found = until > 0
        found[found] = self.heard_end[until[found] - 1] > self.own.start[found]
        return found

    @cached_property
    def waited(self) -> Mask:
        """Which began as soon as another station's frame allowed it."""
        last = np.full(len(self.own), NEVER)
        last[1:] = self.own.end[:-1]
        return np.asarray((self.own.start == self.free) & (last < self.free - GAP_BITS * self.own.bit_ns))


def listen(everything: Transmissions, medium: Medium, station: int) -> Station:
    """What a station heard of others, and the stretches without a gap that all of it makes."""
    mine = everything.station == station
    own, others = everything.take(mine), everything.take(~mine)
    way = medium.way_ns(others.station, station)
    begin, end = others.start + way, others.end + way
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], end[order]
    at, until = np.concatenate([begin, own.start]), np.concatenate([end, own.end])
    known = np.concatenate([begin + medium.sense_ns, own.latest])
    order = np.argsort(at, kind="stable")
    latest = np.maximum.accumulate(until[order])
    fresh = np.ones(len(at), np.bool_)
    fresh[1:] = known[order][1:] >= latest[:-1] + medium.gap_ns
    stretch = np.empty(len(at), np.int64)
    stretch[order] = np.cumsum(fresh) - 1
    stretch = stretch[len(begin) :]
    first = np.flatnonzero(fresh)
    last = np.append(first[1:], len(at))[: len(first)] - 1
    begins, ends = at[order][first], latest[last]
    earlier = np.maximum(stretch - 1, 0)
    free = np.where(stretch > 0, ends[earlier] + medium.gap_ns, NEVER) if len(own) else own.start
    before = np.where(stretch > 0, begins[earlier], NEVER) if len(own) else own.start
    return Station(
        own, begin, np.maximum.accumulate(end) if len(end) else end, free, before, begins[stretch] if len(own) else free
    )
