# SPDX-License-Identifier: Apache-2.0
"""One segment's capture as the law of its kind reads it, and what the laws share: Ethernet's arithmetic, and arrivals.

Times are whole ns. A frame is stamped at its sender with the start of its preamble and at a receiver with the end of
its last bit (harness/schemas/README.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from math import gcd
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sundial.expect.ip import ETHERNET_FCS, ETHERNET_GAP, ETHERNET_MIN, ETHERNET_PREAMBLE
from sundial.observe.fates import fate_columns
from sundial.observe.octets import Octets
from sundial.seams.fate import Record
from sundial.verify.findings import FINDING, findings, none
from sundial.verify.frames import DROPPED, INBOUND, OUTBOUND

Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]

GAP_BITS = 8 * ETHERNET_GAP
"""interPacketGap of IEEE 802.3, 4.4.2."""
SECOND_NS = 1_000_000_000
PS_PER_NS = 1000
SECOND_PS = SECOND_NS * PS_PER_NS
MOST = 1000
"""Findings of one check at one place; there are as many problems in verify.json."""


def bits_of(length: Numbers) -> Numbers:
    """Preamble, frame (padded) and FCS of frames as captures hold them (IEEE 802.3, 3.1.1)."""
    return 8 * (np.maximum(length, ETHERNET_MIN) + ETHERNET_PREAMBLE + ETHERNET_FCS)


@dataclass(frozen=True)
class Passages:
    """Frames at one place in order of time, a number of each in every array. `content`: equal for equal bytes."""

    row: Numbers
    time_ns: Numbers
    length: Numbers
    content: Numbers
    source: Numbers
    target: Numbers

    def __len__(self) -> int:
        return len(self.row)

    def take(self, which: Numbers | Mask) -> Passages:
        """Some of them, by place or by mask."""
        return Passages(*(getattr(self, name)[which] for name in _PASSAGE))


_PASSAGE = {
    "row": "row",
    "time_ns": "time_ns",
    "length": "frame_length",
    "content": "octets_hash",
    "source": "eth_source",
    "target": "eth_target",
}


def passages(frames: pl.DataFrame) -> Passages:
    """Of rows of the table of frames. A frame too short for addresses has the address -1."""
    ordered = frames.lazy().select(*_PASSAGE.values()).sort("time_ns", "row")
    numbers = ordered.select(pl.col(_PASSAGE.values()).cast(pl.Int64).fill_null(-1)).collect()
    return Passages(*(numbers[name].to_numpy() for name in _PASSAGE.values()))


def joined(parts: Sequence[Passages]) -> Passages:
    """Several places as one, in order of time."""
    together = Passages(*(np.concatenate([getattr(each, name) for each in parts]) for name in _PASSAGE))
    return together.take(np.lexsort((together.row, together.time_ns)))


@dataclass(frozen=True)
class Wire:
    """What was seen of a segment. `frames`: its capture, with `fate`; `end_ns`: where the capture stops, if known."""

    name: str
    ports: Sequence[str]
    frames: pl.DataFrame
    end_ns: int | None = None
    octets: Callable[[pl.DataFrame], Octets] | None = None
    """The bytes of rows of `frames`, in their order."""
    rings: Mapping[str, int] = field(default_factory=dict)
    """Ports of devices to the places in their transmit rings."""
    folder: Path | None = None
    """Where captures beside the main one are: the run's `wire/`."""
    epoch_ns: int = 0
    """Of the run, in those captures."""
    macs: Mapping[str, int] = field(default_factory=dict)
    """Of what is plugged in at each port."""
    addresses: Mapping[str, Sequence[bytes]] = field(default_factory=dict)
    """The IPv4 addresses behind each port."""
    latency_ns: Mapping[str, int] = field(default_factory=dict)
    """Of the adapters of machines, by port; a device's have none."""

    def differing_bits(self, one: Numbers, other: Numbers) -> Numbers:
        """In how many bits frames differ, by rows; of frames of different length, all of the longer one."""
        if self.octets is None or not len(one):
            return np.ones(len(one), np.int64)
        pairs = [
            self.octets(
                pl.DataFrame({"row": rows}).join(
                    self.frames.with_columns(pl.col("row").cast(pl.Int64)), on="row", maintain_order="left"
                )
            )
            for rows in (one, other)
        ]
        wide = int(max(each.length.max() for each in pairs))
        bits = [np.unpackbits(each.matrix(0, wide), axis=1) for each in pairs]
        longest = 8 * np.maximum(pairs[0].length, pairs[1].length)
        return np.where(pairs[0].length == pairs[1].length, (bits[0] != bits[1]).sum(axis=1), longest)

    @cached_property
    def sent(self) -> list[Passages]:
        """What each port sent, in port order."""
        return [self._at(port, OUTBOUND) for port in self.ports]

    @cached_property
    def received(self) -> list[Passages]:
        """What each port received, in port order."""
        return [self._at(port, INBOUND) for port in self.ports]

    def sent_at(self, port: str) -> Passages:
        """What one port sent."""
        return self.sent[self.ports.index(port)]

    def received_at(self, port: str) -> Passages:
        """What one port received."""
        return self.received[self.ports.index(port)]

    @cached_property
    def fates(self) -> pl.DataFrame:
        """What the segment says became of frames, with all of FATE_COLUMNS."""
        fates = self.frames.filter(pl.col("fate").is_not_null()).sort("time_ns", "row")
        return fates.with_columns(fate_columns(fates["comment"]).drop("fate"))

    def fates_of(self, record: type[Record], **fields: str) -> pl.DataFrame:
        """Those fates whose record is of this model and has these values."""
        return self.fates.filter(pl.col("record") == record.__name__, **fields)

    def given_up(self, port: str) -> pl.DataFrame:
        """Fates of frames that the adapter of a port did not send."""
        return self.fates.filter(fate=DROPPED, fate_adapter=port)

    def _at(self, port: str, direction: int) -> Passages:
        here = (pl.col("interface") == port) & (pl.col("direction") == direction) & pl.col("fate").is_null()
        return passages(self.frames.filter(here))


@dataclass(frozen=True)
class Arrivals:
    """When frames must arrive at a port: `cause` is the row that was sent."""

    time_ns: Numbers
    content: Numbers
    cause: Numbers

    def __len__(self) -> int:
        return len(self.cause)

    def take(self, which: Numbers | Mask) -> Arrivals:
        """Some of them, by place or by mask."""
        return Arrivals(self.time_ns[which], self.content[which], self.cause[which])

    def ordered(self) -> Arrivals:
        """By time, and what was sent first before what was sent later."""
        return self.take(np.lexsort((self.cause, self.time_ns)))


def together(parts: Iterable[Arrivals]) -> Arrivals:
    """Arrivals from several senders."""
    listed = list(parts)
    empty = np.zeros(0, np.int64)
    if not listed:
        return Arrivals(empty, empty, empty)
    return Arrivals(*(np.concatenate([getattr(each, name) for each in listed]) for name in _ARRIVAL))


_ARRIVAL = ("time_ns", "content", "cause")


def check_arrivals(port: str, expected: Arrivals, seen: Passages, end_ns: int | None) -> tuple[pl.DataFrame, int]:
    """Findings for each frame that did not arrive exactly when it had to, and how many are due after the end."""
    expected = expected.ordered()
    late = 0
    if end_ns is not None:
        late = int((expected.time_ns > end_ns).sum())
        expected = expected.take(expected.time_ns <= end_ns)
    if np.array_equal(expected.time_ns, seen.time_ns) and np.array_equal(expected.content, seen.content):
        return none(), late
    return _differences(f"arrival at {port}", expected, seen), late


def check_sent(port: str, expected: Arrivals, seen: Passages, end_ns: int | None) -> pl.DataFrame:
    """Findings for each frame that a port did not send exactly when it had to."""
    if end_ns is not None:
        expected = expected.take(expected.time_ns <= end_ns)
    if np.array_equal(expected.time_ns, seen.time_ns) and np.array_equal(expected.content, seen.content):
        return none()
    return _differences(f"sent by {port}", expected, seen)


def _differences(what: str, expected: Arrivals, seen: Passages) -> pl.DataFrame:
    """What passed otherwise: pairs of the same content in order of time, then what is left of both."""
    due = pl.DataFrame({"due_ns": expected.time_ns, "content": expected.content, "cause": expected.cause})
    came = pl.DataFrame({"came_ns": seen.time_ns, "content": seen.content, "row": seen.row})
    due, came = (each.head(MOST) for each in _without_equal(due, came))
    number = pl.int_range(pl.len()).over("content").alias("number")
    paired = due.with_columns(number).join(
        came.with_columns(number), on=["content", "number"], how="full", coalesce=True
    )
    paired = paired.sort(pl.min_horizontal("due_ns", "came_ns"), "cause", "row").with_columns(
        call=pl.lit(None, pl.UInt32), rows=pl.concat_list("cause", "row").list.drop_nulls()
    )
    where = pl.lit(f"time on the wire: {what}")
    return findings(
        paired,
        pl.lit(True),
        where,
        pl.coalesce(pl.format("at {} ns", "due_ns"), pl.lit("none")),
        pl.coalesce(pl.format("at {} ns", "came_ns"), pl.lit("none")),
    )


def _without_equal(due: pl.DataFrame, came: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Without those that are there at the same time with the same content, as often as both have them."""
    one = due.with_columns(number=pl.int_range(pl.len()).over("content", "due_ns"), at=pl.col("due_ns"))
    other = came.with_columns(number=pl.int_range(pl.len()).over("content", "came_ns"), at=pl.col("came_ns"))
    keys = ["content", "at", "number"]
    return (
        one.join(other, on=keys, how="anti", maintain_order="left").drop("number", "at"),
        other.join(one, on=keys, how="anti", maintain_order="left").drop("number", "at"),
    )


def queue_starts(ready: Numbers, busy: Numbers) -> Numbers:
    """When each begins at a server that takes one at a time, in the order given: max(ready, end of the one before).

    The recursion of a queue with one server (Lindley 1952), solved with a running maximum.
    """
    behind = _sums_before(busy, ready)
    return np.asarray(np.maximum.accumulate(ready - behind) + behind)


def _sums_before(each: Numbers, like: Numbers) -> Numbers:
    """The sum of those before each, in Python's numbers where `like` is, or where 64 bits do not hold the whole sum."""
    if like.dtype == np.object_ or float(each.sum(dtype=np.float64)) > _INT64 / 2:
        each = each.astype(object)
    return np.asarray(np.cumsum(each) - each)


@dataclass(frozen=True)
class Line:
    """A line of one rate, which carries fractions of a ns exactly: its times are in `parts` of a ns.

    The fabric rounds up to whole ps between one line and the next: of a line behind another `second` is SECOND_PS, and
    its times are ps.
    """

    rate_bps: int
    second: int = SECOND_NS

    @property
    def parts(self) -> int:
        """So many of them make a ns in which each bit takes a whole number of them."""
        return self.rate_bps // gcd(self.second, self.rate_bps)

    def time(self, bits: Numbers) -> Numbers:
        """How long so many bits take, in parts."""
        return bits * (self.second // gcd(self.second, self.rate_bps))

    def fine(self, time_ns: Numbers) -> Numbers:
        """Whole ns in parts, in Python's numbers where 64 bits do not hold them."""
        if len(time_ns) and int(np.abs(time_ns).max()) > _INT64 // (2 * self.parts):
            return np.asarray(time_ns.astype(object) * self.parts)
        return time_ns * self.parts

    def whole(self, time: Numbers) -> Numbers:
        """Parts in ns, rounded up: a bit is there when all of it is."""
        return np.asarray(-(-time // self.parts)).astype(np.int64)

    def starts(self, seen_ns: Numbers, bits: Numbers) -> Numbers:
        """When transmissions began that are stamped in whole ns: one that follows at once begins in between."""
        seen, busy = self.fine(seen_ns), self.time(bits + GAP_BITS)
        if self.parts == 1 or len(seen) < 2:
            return seen
        head = np.append(True, np.abs(np.diff(seen_ns) * float(self.parts) - busy[:-1]) > 1.5 * self.parts)
        behind = _sums_before(busy, seen)
        last = np.maximum.accumulate(np.where(head, np.arange(len(head)), 0))
        return np.asarray(seen[last] + behind - behind[last])

    def ends(self, starts: Numbers, bits: Numbers) -> Numbers:
        """When the last bits leave, in whole ns."""
        return self.whole(starts + self.time(bits))

    def ends_ps(self, starts: Numbers, bits: Numbers) -> Numbers:
        """The same in ps, rounded up, of a line whose times are ns."""
        ends = starts + self.time(bits)
        parts_ps = ends % self.parts * PS_PER_NS
        return np.asarray(ends // self.parts * PS_PER_NS - (-parts_ps // self.parts)).astype(np.int64)


def whole_ns(time_ps: Numbers) -> Numbers:
    """Whole ns, rounded up."""
    return np.asarray(-(-time_ps // PS_PER_NS))


_INT64 = (1 << 63) - 1


def check_line(port: str, sent: Passages, rate_bps: int) -> pl.DataFrame:
    """A port sends one frame at a time, with a gap between (full duplex: IEEE 802.3, 4.2.3.2.1)."""
    line, bits = Line(rate_bps), bits_of(sent.length)
    starts = line.starts(sent.time_ns, bits)
    free = line.whole(starts + line.time(bits + GAP_BITS))
    wrong = np.zeros(len(sent), np.bool_)
    wrong[1:] = sent.time_ns[1:] < free[:-1]
    before = np.append(-1, sent.row[:-1])[: len(sent)]
    places = np.flatnonzero(wrong)
    return problem(
        f"gap at {port}",
        wrong,
        [before, sent.row],
        (f"no start before {free[place - 1]} ns" for place in places),
        (f"begins at {sent.time_ns[place]} ns" for place in places),
    )


def problem(
    what: str, wrong: Mask, rows: Sequence[Numbers], expected: Iterable[str], seen: Iterable[str]
) -> pl.DataFrame:
    """A finding for each place that is `wrong`, up to MOST. `expected` and `seen` are of those places only."""
    places = np.flatnonzero(wrong)[:MOST]
    if not len(places):
        return none()
    return pl.DataFrame(
        {
            "call": pl.Series([None] * len(places), dtype=pl.UInt32),
            "field": [f"time on the wire: {what}"] * len(places),
            "expected": list(islice(expected, len(places))),
            "seen": list(islice(seen, len(places))),
            "rows": [[int(column[place]) for column in rows if column[place] >= 0] for place in places],
        },
        schema=FINDING,
    )
