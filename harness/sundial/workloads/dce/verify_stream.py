# SPDX-License-Identifier: Apache-2.0
"""What both sides of a call do with fragments, replayed: a stream that comes in, one that goes out, and the PDUs that
have to be seen for it, to the last byte."""

from __future__ import annotations

import struct
from abc import abstractmethod
from copy import copy
from dataclasses import dataclass, field, replace
from functools import lru_cache
from uuid import UUID

import numpy as np

from sundial.expect.ip import IP_HEADER, UDP_HEADER
from sundial.judge import machine as judge
from sundial.judge.machine import NEVER
from sundial.verify.sockets.pattern import pattern
from sundial.workloads.dce.expect import bodies, slots
from sundial.workloads.dce.expect_pdu import (
    FACK_FIXED,
    HEADER,
    NO_HINT,
    NONE_IN_ORDER,
    Fack,
    Flags,
    Pdu,
    Type,
)
from sundial.workloads.dce.expect_window import Policy, Sender, window_fragments
from sundial.workloads.dce.verify_message import READING

NIL = UUID(int=0)
NO_FLAGS = Flags(0)
SUNDIAL = UUID("ca5ae9fd-9763-4fe8-aa55-b03fea95bd80")
CONV = UUID("333a2276-0000-0000-0d00-00809c000000")
EPM = UUID("e1af8308-5d1f-11c9-91a4-08002b14a0fa")
TWELVE = UUID("6bd58979-092c-4428-b8fa-492950ea8eab")
VERSIONS = {SUNDIAL: 1, TWELVE: 1, CONV: 3, EPM: 3}
"""The interfaces of guest-apps/dce/sundial.idl and twelve.idl, and those of C706 (appendices P and O)."""
WHO_ARE_YOU, EPT_MAP = 0, 3
MOST_TSDU = 65_535 - IP_HEADER - UDP_HEADER
FACK_VERSION = 1
"""What the OSF runtime writes, and ours with it."""
AHEAD = 96
"""How far a fragment may be ahead of the first one that is missing."""
DRIFT_NS = 500_000_000
"""By so much timers that follow one another may have become late: poll(2) may take 0.1 % more each time."""
BACKOFF = 4
"""Intervals double up to so many times the first."""
OSF_FIRST, OSF_MOST = 1024, 1464
"""Of the OSF runtime: its first fragment, and what each receiver must take (C706 section 12.5.2)."""


@dataclass(frozen=True)
class Settings:
    """The options of both programs of a job."""

    policy: Policy = "window"
    fragment: int = 4096
    window_kib: int = 32
    little_endian: bool = True
    resend_ns: int = 2_000_000_000
    ping_ns: int = 2_000_000_000
    ack_delay_ns: int = 1_000_000_000
    give_up_ns: int = 30_000_000_000
    cancel_ns: int = 0
    """A call that lasts so long is cancelled; 0: none is."""

    def bodies(self, size: int) -> tuple[int, ...]:
        """Body lengths of the PDUs of a message."""
        if self.policy != "osf" or size <= OSF_FIRST - HEADER:
            return bodies(size, OSF_FIRST if self.policy == "osf" else self.fragment)
        first = OSF_FIRST - HEADER
        return (first, *bodies(size - first, min(OSF_MOST, self.fragment)))

    @property
    def sent_fragment(self) -> int:
        """A fragment with its header, behind the OSF runtime's first one."""
        return min(OSF_MOST, self.fragment) if self.policy == "osf" else self.fragment

    @property
    def memory(self) -> int:
        """Fragments that a sender has room for."""
        return slots(self.fragment)


@lru_cache(maxsize=32)
def payload(sequence: int, size: int) -> bytes:
    """What a call with this number carries."""
    return bytes(pattern(np.array([sequence], dtype=np.int64), 0, size)[0].tobytes())


def fack_body(fack: Fack, order: str) -> bytes:
    """C706 section 12.5.3.4."""
    serial = 0 if fack.serial is None else fack.serial
    head = struct.pack(
        order + "BBHIIHH", fack.version, 0, fack.window, fack.most_tsdu, fack.most_fragment, serial, len(fack.selected)
    )
    assert len(head) == FACK_FIXED
    return head + struct.pack(f"{order}{len(fack.selected)}I", *fack.selected)


@dataclass
class Receiver:
    """A message that comes in: what is there in order, and what beyond."""

    next: int = 0
    early: set[int] = field(default_factory=set)
    last: int | None = None
    high_serial: int = 0
    started: bool = False
    complete: bool = False

    def clone(self) -> Receiver:
        return replace(self, early=set(self.early))

    def insert(self, pdu: Pdu) -> str:
        """`new`, `old` or `dropped`."""
        if not self.started or pdu.serial > self.high_serial:
            self.high_serial = pdu.serial
        if self.complete or pdu.fragment < self.next or pdu.fragment in self.early:
            return "old"
        if pdu.fragment >= self.next + AHEAD or (self.last is not None and pdu.fragment > self.last):
            return "dropped"
        self.started = True
        if pdu.last:
            self.last = pdu.fragment
        self.early.add(pdu.fragment)
        while self.next in self.early:
            self.early.remove(self.next)
            self.complete = self.next == self.last
            self.next += 1
        return "new"

    def asks(self, pdu: Pdu) -> bool:
        """Whether a fragment that has just come has to be acknowledged."""
        return bool(pdu.flags & Flags.FRAGMENT) and not pdu.flags & Flags.NO_FACK and not self.complete

    @property
    def in_order(self) -> int:
        """The highest fragment of those in order, as a fack names it."""
        return (self.next - 1) % (NONE_IN_ORDER + 1)

    def fack(self, settings: Settings, serial: int) -> Fack:
        """What a fack for transmission `serial` says at this instant."""
        words = [0] * (max((number - self.next for number in self.early), default=-1) // 32 + 1)
        for number in self.early:
            words[(number - self.next) // 32] |= 1 << (number - self.next) % 32
        return Fack(FACK_VERSION, settings.window_kib, MOST_TSDU, settings.fragment, serial, tuple(words))


@dataclass
class Outgoing:
    """A message that goes out: its fragments, window and resend timer."""

    settings: Settings
    header: Pdu
    """Of all fragments; `flags` without those of fragments."""
    content: bytes
    sent_ns: int
    sender: Sender = field(init=False)
    interval_ns: int = field(init=False)
    serial: int = 0
    again: int = 0
    """Transmissions beyond the first of their fragment."""
    _bodies: tuple[int, ...] = field(init=False)
    _seen: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._bodies = self.settings.bodies(len(self.content))
        self.sender = Sender(self.settings.policy, len(self._bodies), min(8, self.settings.memory))
        self.interval_ns = self.settings.resend_ns

    def clone(self) -> Outgoing:
        other = copy(self)
        other.sender = self.sender.clone()
        other._seen = set(self._seen)
        return other

    @property
    def fragmented(self) -> bool:
        return len(self._bodies) > 1

    def next(self, now: int) -> Pdu | None:
        """The fragment that must be sent now."""
        ready = self.sender.next()
        if ready is None:
            return None
        number, asks = ready
        end = number == len(self._bodies) - 1
        flags = self.header.flags
        if self.fragmented:
            flags |= Flags.FRAGMENT | (Flags.LAST_FRAGMENT if end else Flags(0))
            flags |= Flags(0) if asks else Flags.NO_FACK
        begin = sum(self._bodies[:number])
        pdu = replace(
            self.header, flags=flags, fragment=number, serial=self.serial,
            body=self.content[begin : begin + self._bodies[number]],
        )  # fmt: skip
        self.sender.sent(number, self.serial, asks)
        self.serial += 1
        self.again += number in self._seen
        self._seen.add(number)
        self.sent_ns = now
        return pdu

    def fack(self, pdu: Pdu, fack: Fack | None, *, nothing_under_way: bool = False) -> bool:
        """A fack or a nocall with a body; False: it makes no sense."""
        in_order = -1 if pdu.fragment == NONE_IN_ORDER else pdu.fragment
        if fack is None or fack.serial is None or in_order >= len(self._seen) or fack.serial >= self.serial:
            return False
        window = min(window_fragments(fack.window, self.settings.sent_fragment), self.settings.memory)
        if self.sender.fack(
            in_order, fack.beyond(pdu.fragment), fack.serial, window, nothing_under_way=nothing_under_way
        ):
            self.interval_ns = self.settings.resend_ns
        return True

    def timeout(self, now: int) -> None:
        """The resend timer is due."""
        self.sender.timeout()
        self.interval_ns = min(2 * self.interval_ns, BACKOFF * self.settings.resend_ns)
        self.sent_ns = now

    @property
    def deadline_ns(self) -> int:
        """When that is."""
        return NEVER if self.sender.done else self.sent_ns + self.interval_ns


@dataclass(frozen=True)
class Arrival:
    """A PDU that was whole at its receiver's port."""

    at_ns: int
    message: Pdu
    fack: Fack | None = None


@dataclass
class Machine(judge.Machine[Pdu]):
    """One side of an activity."""

    reading = READING
    PROMPT = frozenset({"arrival", "result"})

    settings: Settings

    @abstractmethod
    def patience(self) -> int:
        """When it ends its call for want of an answer, at the earliest."""

    def gives_up(self, until_ns: int) -> bool:
        """Whether that may happen before a timer that seems to be due a little earlier."""
        return self.deadline() < self.patience() <= min(until_ns, self.deadline() + DRIFT_NS)


def control(header: Pdu, kind: Type, **others: object) -> Pdu:
    """A PDU that is not a fragment, with the header of another one."""
    plain = replace(header, type=kind, flags=Flags(0), flags2=0, fragment=0, serial=0, auth=0, body=b"")
    return replace(plain, **others)  # type: ignore[arg-type]


def blank(activity: UUID, interface: UUID, sequence: int, opnum: int, *, little: bool) -> Pdu:
    """A header of which nothing is known beside these."""
    return Pdu(
        Type.REQUEST, Flags(0), 0, little, 0, NIL, interface, activity, 0, VERSIONS[interface], sequence, opnum,
        NO_HINT, NO_HINT, 0, 0, b"",
    )  # fmt: skip
