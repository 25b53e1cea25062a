# SPDX-License-Identifier: Apache-2.0
"""What a decoder gets and what it answers: the connections and datagrams of some services, in any run or capture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from sundial.units import counted
from sundial.verify.findings import Finding
from sundial.verify.sockets.conversations import End, Way
from sundial.verify.sockets.protocol import Units
from sundial.verify.sockets.stream import Stream

SECOND_NS = 1_000_000_000
SKEW_NS = 1_000_000
"""How much later a tap may stamp a frame than one that follows from it."""


class Wrong(Exception):
    """A message that is not one: its field, what is expected and what is there."""

    def __init__(self, field: str, expected: str, seen: str) -> None:
        super().__init__(field, expected, seen)
        self.field, self.expected, self.seen = field, expected, seen


class Service(NamedTuple):
    """Where something is served."""

    transport: str
    address: str | None
    """None: any of the machines."""
    port: int

    def __str__(self) -> str:
        return f"{self.transport.upper()} {self.address or '*'}:{self.port}"


@dataclass(frozen=True)
class Datagram:
    """One that was sent, put together."""

    source: End
    target: End
    data: bytes
    sent_ns: int
    arrived_ns: Sequence[int] = ()
    """When it was whole at its receiver, each time; as `sent_ns` where a capture has one view of both."""
    rows: Sequence[int] = ()
    to_all: bool = False
    """By broadcast or multicast."""


@dataclass(frozen=True)
class Lane:
    """One direction of a connection."""

    sender: End
    receiver: End
    stream: Stream
    way: Way
    """Times and rows of its segments."""
    opened: bool = True
    """It is captured from its first byte on."""

    def sent_ns(self, end: int) -> int:
        """When the byte before `end` was first sent; of one that is not there, when the last one was."""
        return self.way.sent_ns(min(end, self.stream.end))

    def rows(self, begin: int, end: int) -> list[int]:
        """Rows of all frames with any of some bytes."""
        return self.way.rows(begin, end)

    def arrived_ns(self, end: int, *, both_views: bool) -> Sequence[int]:
        """When all bytes before `end` had arrived; empty: never."""
        at_ns = self.way.arrived_ns(end) if both_views else self.sent_ns(end)
        return () if at_ns is None else (at_ns,)


@dataclass(frozen=True)
class Connection:
    """Both directions, by `reply` as in `Conversation`."""

    lanes: Mapping[bool, Lane]
    reset: bool = False

    @property
    def ended_ns(self) -> int | None:
        """When either end first ended it."""
        ends = [lane.way.ended_ns for lane in self.lanes.values() if lane.way.ended_ns is not None]
        return min(ends, default=None)


class Absence(Protocol):
    """When programs could not answer or ask."""

    def of_service(self, service: Service, since_ns: int, until_ns: int) -> bool:
        """Whether no program served there at some time of an interval."""

    def of_client(self, address: str, since_ns: int, until_ns: int) -> bool:
        """Whether a program of a machine was paused or killed at some time of an interval."""


class Present:
    """Of a capture from elsewhere, of which nothing is known."""

    def of_service(self, service: Service, since_ns: int, until_ns: int) -> bool:
        return False

    def of_client(self, address: str, since_ns: int, until_ns: int) -> bool:
        return False


@dataclass(frozen=True)
class Traffic:
    """All that was seen of the services of one decoder."""

    connections: Sequence[Connection] = ()
    datagrams: Sequence[Datagram] = ()
    until_ns: int = 0
    """When the last frame was seen."""
    both_views: bool = True
    """Each end was captured by itself, so that what arrived is known; else by one tap somewhere, whose stamps may be
    somewhat out of order."""
    absence: Absence = field(default_factory=Present)
    unreachable: frozenset[tuple[End, End]] = frozenset()
    """Ends of datagrams, source and target, that the target's machine or a router said are unreachable."""

    def is_cut_off(self, connection: Connection, lane: Lane) -> bool:
        """Whether a stream may end within a message: it was reset, or its sender's program had ended."""
        last_ns, ended_ns = lane.sent_ns(lane.stream.end), lane.way.finished_ns
        return connection.reset or (
            ended_ns is not None
            and (
                self.absence.of_client(lane.sender[0], last_ns, ended_ns)
                or self.absence.of_service(Service("tcp", *lane.sender), last_ns, ended_ns)
            )
        )


@dataclass(frozen=True)
class Exchanged:
    """A question and its answer, as their sender's port shows them."""

    transport: str
    client: End
    server: End
    procedure: str
    """What is asked for."""
    sent_ns: int
    """When the question was first sent."""
    answered_ns: int | None
    """When its answer was first there; None: never."""
    question_bytes: int | None = None
    answer_bytes: int | None = None
    retransmissions: int = 0
    after_loss: int = 0
    """Of these, before which the question or an answer was lost."""


@dataclass
class Judged:
    """What a decoder found."""

    findings: list[Finding] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    """Of messages, by what they are, as a noun in the singular."""
    calls: int = 0
    """Questions that have an answer, or are due one."""
    exchanges: list[Exchanged] = field(default_factory=list)
    """These, in the order in which they were found."""
    services: set[Service] = field(default_factory=set)
    """That the messages name, and that speak the same protocol."""

    def remark(self, name: str) -> str:
        """What was read, in a line."""
        parts = [counted(number, what) for what, number in sorted(self.counts.items())]
        if lost := sum(each.after_loss for each in self.exchanges):
            parts.append(f"{lost} of them after a loss")
        also = f"; named by answers: {', '.join(sorted(map(str, self.services)))}" if self.services else ""
        return f"{name}: {', '.join(parts) or 'no message'}{also}"


class Decoder(Protocol):
    """A protocol."""

    @property
    def name(self) -> str:
        """As scenarios and `verify --protocol` call it."""

    @property
    def transports(self) -> Sequence[str]:
        """That carry it."""

    @property
    def unproven(self) -> Sequence[str]:
        """What it does not check, each in a line."""

    @property
    def ports(self) -> Sequence[int]:
        """Where it is looked for in a capture from elsewhere."""

    @property
    def units(self) -> Units | None:
        """How connections to other ports are recognised in such a capture; None: they are not."""

    @property
    def asks(self) -> str | None:
        """Regular expression of the beginning of a datagram, in hexadecimal, that asks; None: there is none."""

    def judge(self, traffic: Traffic) -> Judged:
        """All findings about the traffic of its services."""


def named(end: End) -> str:
    """An end in words."""
    return f"{end[0]}:{end[1]}"
