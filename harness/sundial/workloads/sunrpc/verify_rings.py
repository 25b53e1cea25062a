# SPDX-License-Identifier: Apache-2.0
"""Rings of vRPC, whatever carries them: what each side has written into the other's memory, and the messages that this
makes (guest-apps/sss-core/rpc/ring.h, rpc/vrpc_line.h)."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from sundial.verify.findings import Finding
from sundial.workloads.sunrpc.expect import CALL, REPLY

CONTROL, TAIL, HEAD, WORD = 4096, 256, 264, 8
"""Bytes of the control page, where its words are, and of one."""
OWN_BYTES = TAIL
"""The fields in front of those belong to the protocol that binds the two sides."""
RING = 131072
BUFFER = CONTROL + RING
QUARTERS = 4
MESSAGE_MOST = RING // QUARTERS * (QUARTERS - 1) - WORD
SKIP = 0xFFFFFFFF
TAIL_MARK, HEAD_MARK = int.from_bytes(b"TAIL", "little"), int.from_bytes(b"HEAD", "little")

_PAIR = struct.Struct("<II")
_POSITIONS = 1 << 32
_TYPES = (0, 1)
"""CALL and REPLY (RFC 5531 section 9)."""


class Write(NamedTuple):
    """Something that one side wrote into the other's memory, as it was sent first."""

    row: int
    offset: int
    length: int
    sent_ns: int
    arrived_ns: int | None
    deliberate: bool
    at: int
    """Where its data begin in what carried it, in bytes."""


class Piece(NamedTuple):
    """Bytes of a message that a write carries."""

    row: int
    begin: int
    at: int
    length: int


@dataclass(frozen=True)
class Record:
    """One message in a ring, with the tail that showed it to the other side."""

    xid: int
    reply: bool
    length: int
    writes: tuple[Write, ...]
    """Without the tail."""
    tail: Write
    pieces: tuple[Piece, ...]

    @property
    def rows(self) -> list[int]:
        return [*(write.row for write in self.writes), self.tail.row]

    @property
    def sent_ns(self) -> int:
        return min(write.sent_ns for write in (*self.writes, self.tail))

    @property
    def arrived_ns(self) -> int | None:
        """When the other side could see it."""
        return self.tail.arrived_ns


@dataclass
class Ring:
    """One way of a line, from the client or from the server."""

    replies: bool
    records: list[Record] = field(default_factory=list)
    heads: list[tuple[Write, int]] = field(default_factory=list)
    """What this side said that it has taken of the other way, with the position."""
    tails: list[tuple[Write, int]] = field(default_factory=list)
    steps: list[tuple[int, bool]] = field(default_factory=list)
    """Positions behind each record and skip, and whether it is a skip."""
    beside: list[int] = field(default_factory=list)
    """Rows of heads and skips, which are no call's."""
    findings: list[Finding] = field(default_factory=list)


def ring_bytes(length: int) -> int:
    """Bytes of the record of a message."""
    return WORD + -(-length // WORD) * WORD


def read_ring(writes: Iterable[Write], data: Callable[[Write], bytes], *, replies: bool) -> Ring:
    """What the writes of one side, in their order, come to."""
    ring = Ring(replies)
    reader = _Reader(ring, data)
    for write in writes:
        if not reader.take(write):
            break
    if reader.pending and not ring.findings:
        # Its writer has ended, or the run, before the tail.
        ring.beside += [write.row for write in reader.pending]
    return ring


def check_line(there: Ring, back: Ring) -> Iterator[Finding]:
    """What the two ways of a line say of one another: heads follow what has been written, and nothing is written over
    what has not been taken."""
    for own, other in ((there, back), (back, there)):
        yield from _check_heads(own, other)
        yield from _check_room(own, other)


@dataclass
class _Reader:
    ring: Ring
    data: Callable[[Write], bytes]
    memory: bytearray = field(default_factory=lambda: bytearray(RING))
    tail: int = 0
    head: int = 0
    sequence: int = 0
    pending: list[Write] = field(default_factory=list)

    def take(self, write: Write) -> bool:
        """Whether what follows can be understood."""
        if write.offset >= CONTROL:
            if write.offset + write.length > BUFFER:
                return self.fault("offset", f"below {BUFFER}", str(write.offset + write.length), [write.row])
            begin = write.offset - CONTROL
            self.memory[begin : begin + write.length] = self.data(write)
            self.pending.append(write)
            return True
        if write.length != WORD or write.offset not in (TAIL, HEAD):
            seen = f"{write.length} bytes at {write.offset}"
            return self.fault("control", f"{WORD} bytes at {TAIL} or {HEAD}", seen, [write.row])
        value, mark = _PAIR.unpack(self.data(write))
        due = TAIL_MARK if write.offset == TAIL else HEAD_MARK
        if mark != due:
            return self.fault("mark", f"0x{due:08x}", f"0x{mark:08x}", [write.row])
        if write.offset == HEAD:
            return self.take_head(write, value)
        return self.take_tail(write, value)

    def take_head(self, write: Write, value: int) -> bool:
        advance = (value - self.head) % _POSITIONS
        self.ring.beside.append(write.row)
        if not 0 < advance <= RING or advance % WORD:
            return self.fault("head", f"behind {self.head}, at most {RING} bytes", str(value), [write.row])
        self.head = value
        self.ring.heads.append((write, value))
        return True

    def take_tail(self, write: Write, value: int) -> bool:
        advance = (value - self.tail) % _POSITIONS
        if not 0 < advance <= RING or advance % WORD:
            return self.fault("tail", f"behind {self.tail}, at most {RING} bytes", str(value), [write.row])
        spans: list[tuple[int, int]] = []
        claimed = False
        while self.tail != value:
            place = self.tail % RING
            length, sequence = _PAIR.unpack_from(self.memory, place)
            if sequence != self.sequence + 1:
                return self.fault("sequence", str(self.sequence + 1), str(sequence), [write.row])
            if length == SKIP:
                spans.append((place, place + WORD))
                self.ring.beside += [each.row for each in self.within(place, place + WORD)]
                self.tail = (self.tail + RING - place) % _POSITIONS
                self.ring.steps.append((self.tail, True))
                continue
            if length > MESSAGE_MOST or place + ring_bytes(length) > RING:
                most = min(MESSAGE_MOST, RING - place - WORD)
                return self.fault("length", f"at most {most}", str(length), [write.row])
            spans.append((place, place + WORD + length))
            if not self.record(place, length, write):
                return False
            claimed = True
            self.sequence += 1
            self.tail = (self.tail + ring_bytes(length)) % _POSITIONS
            self.ring.steps.append((self.tail, False))
        if not claimed:
            self.ring.beside.append(write.row)
        self.ring.tails.append((write, value))
        self.check_written(spans, write)
        self.pending.clear()
        return True

    def within(self, begin: int, end: int) -> list[Write]:
        """What was written there since the last tail."""
        return [
            write
            for write in self.pending
            if write.offset - CONTROL < end and write.offset - CONTROL + write.length > begin
        ]

    def record(self, place: int, length: int, tail: Write) -> bool:
        least = REPLY if self.ring.replies else CALL
        if length < min(least, REPLY):
            return self.fault("message", f"{least} bytes or more", str(length), [tail.row])
        begin = place + WORD
        xid, kind = struct.unpack_from(">II", self.memory, begin)
        if kind != _TYPES[self.ring.replies]:
            return self.fault("message_type", str(_TYPES[self.ring.replies]), str(kind), [tail.row])
        writes = self.within(place, begin + length)
        pieces = []
        for write in writes:
            first = write.offset - CONTROL
            low, high = max(first, begin), min(first + write.length, begin + length)
            if low < high:
                pieces.append(Piece(write.row, low - begin, write.at + low - first, high - low))
        self.ring.records.append(Record(xid, self.ring.replies, length, tuple(writes), tail, tuple(pieces)))
        return True

    def check_written(self, spans: Sequence[tuple[int, int]], tail: Write) -> None:
        """Each byte of what the tail shows was written once, and nothing else."""
        written = sorted((write.offset - CONTROL, write.offset - CONTROL + write.length) for write in self.pending)
        if any(end > begin for (_, end), (begin, _) in pairwise(written)):
            self.fault("written", "each byte once", "some twice", [tail.row])
        if _joined(written) != _joined(sorted(spans)):
            self.fault("written", _text(_joined(sorted(spans))), _text(_joined(written)), [tail.row])

    def fault(self, name: str, expected: str, seen: str, rows: list[int]) -> bool:
        self.ring.findings.append(Finding(None, f"ring.{name}", expected, seen, rows))
        return False


def _joined(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for begin, end in spans:
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found


def _text(spans: Sequence[tuple[int, int]]) -> str:
    return " ".join(f"{begin}..{end}" for begin, end in spans) or "nothing"


def _check_heads(own: Ring, other: Ring) -> Iterator[Finding]:
    """A head is sent once a quarter of the ring has been taken, and behind each skip: these, and no others."""
    came = [tail.arrived_ns for tail, _ in other.tails if tail.arrived_ns is not None]
    due = list(_due_heads(other))
    taken = _last_taken(own, other)
    for place, (head, value) in enumerate(own.heads):
        shown = bisect_right(came, head.sent_ns)
        tail = other.tails[shown - 1][1] if shown else 0
        if (tail - value) % _POSITIONS > RING:
            yield Finding(None, "ring.head", f"at most {tail}, the tail that had come", str(value), [head.row])
        expected = str(due[place][0]) if place < len(due) else "none"
        if expected != str(value):
            yield Finding(None, "ring.head", expected, str(value), [head.row])
            return
    for position, records in due[len(own.heads) :]:
        if records <= taken:
            yield Finding(None, "ring.head", str(position), "none", [other.records[records].tail.row])
            return


def _due_heads(ring: Ring) -> Iterator[tuple[int, int]]:
    """The heads that its reader sends, each with the number of records in front of it."""
    last = records = 0
    for position, skip in ring.steps:
        records += not skip
        if skip or (position - last) % _POSITIONS >= RING // QUARTERS:
            last = position
            yield position, records


def _last_taken(own: Ring, other: Ring) -> int:
    """The last record of the other side, counted from 0, that this side has certainly taken: a request that it has
    answered, or a reply behind which it has made another call; -1: none."""
    if own.replies:
        answered = {each.xid for each in own.records}
        known = [place for place, each in enumerate(other.records) if each.xid in answered]
    else:
        called = {each.xid for each in own.records[:-1]}
        known = [place for place, each in enumerate(other.records) if each.xid in called]
    return max(known, default=-1)


def room_ns(own: Ring, other: Ring) -> Iterator[int | None]:
    """Of each record of one side, when the last head came that made room for one so far; None: there always was."""
    heads = ((head.arrived_ns, value) for head, value in other.heads if head.arrived_ns is not None)
    came, head = None, 0
    for position, skip in own.steps:
        while (position - head) % _POSITIONS > RING and (following := next(heads, None)) is not None:
            came, head = following
        if not skip:
            yield came


def _check_room(own: Ring, other: Ring) -> Iterator[Finding]:
    """The writer knows the heads that have come."""
    came = [head.arrived_ns for head, _ in other.heads if head.arrived_ns is not None]
    for tail, value in own.tails:
        known = bisect_right(came, tail.sent_ns)
        head = other.heads[known - 1][1] if known else 0
        if (value - head) % _POSITIONS > RING:
            yield Finding(None, "ring.room", f"{RING} bytes behind {head}", str(value), [tail.row])
