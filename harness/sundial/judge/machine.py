# SPDX-License-Identifier: Apache-2.0
"""One side of a protocol as a pure machine: messages come in, time passes, messages go out.

A kind derives a client and a server from `Machine` and says with a `Reading` how its messages read. A machine follows
the specification of the protocol. `sundial.judge.replay` compares it with what a port showed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Hashable, Iterator
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

NEVER = 1 << 62
UNREAD_NS = 250_000_000
"""Time that a message may wait in a socket for its program."""

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class Reading(Protocol[T_contra]):
    """How the messages of a protocol read."""

    def name(self, message: T_contra) -> Hashable:
        """What distinguishes a message from all others of its side."""

    def kind(self, message: T_contra) -> Hashable:
        """Its type."""

    def alike(self, one: T_contra, other: T_contra) -> bool:
        """Whether one was probably meant to be the other, though their names differ."""

    def words(self, message: T_contra) -> str:
        """It, in a finding."""

    def encode(self, message: T_contra) -> bytes:
        """Its bytes."""

    def field_at(self, place: int) -> str:
        """The field that has the byte `place`."""


class Arrival(Protocol):
    """A message that was whole at the port of its receiver; a kind adds what its machines read of it."""

    @property
    def at_ns(self) -> int:
        """When."""

    @property
    def message(self) -> Any:
        """What came."""


@dataclass(kw_only=True)
class Machine(ABC, Generic[T]):
    """One side of a conversation. Times are the earliest at which an event can have happened."""

    reading: ClassVar[Reading[Any]]
    PROMPT: ClassVar[frozenset[str]] = frozenset({"arrival"})
    """Steps that happen as soon as they can. Every other step is a timer, which may be late."""

    unread_ns: int = UNREAD_NS
    now_ns: int = -NEVER
    inbox: deque[Any] = field(default_factory=deque)
    """`Arrival`s that the machine may not have read yet."""
    outbox: deque[T] = field(default_factory=deque)
    """What it must send before anything else happens."""
    counts: Counter[str] = field(default_factory=Counter)

    @abstractmethod
    def steps(self, until_ns: int) -> Iterator[str]:
        """What may happen next, up to `until_ns`, as arguments of `take`."""

    @abstractmethod
    def take(self, step: str) -> None:
        """The step happens."""

    @abstractmethod
    def deadline(self) -> int:
        """When its next timer is due, at the earliest."""

    def left(self, at_ns: int) -> None:
        """The message that it had to send next was at the port then: it has happened no later."""

    @property
    def reads(self) -> bool:
        """Whether it reads what comes."""
        return True

    def fires(self, until_ns: int) -> bool:
        """Whether its next timer may be what happens next: it is due, and nothing has waited too long to be read."""
        waits = self.reads and bool(self.inbox)
        latest = self.inbox[0].at_ns + self.unread_ns if waits else NEVER - 1
        return self.deadline() <= min(until_ns, latest)

    def at(self, time_ns: int) -> int:
        """The time of an event that happens no earlier than at `time_ns`."""
        self.now_ns = max(self.now_ns, time_ns)
        return self.now_ns

    def tally(self) -> list[Counter[str]]:
        """What it may have counted, and what of its state is counted."""
        return [Counter(self.counts)]

    def joins(self, other: Machine[T]) -> bool:
        """Takes up a history that does not differ from this one; false: it does."""
        return self == other

    def clone(self) -> Self:
        """An independent copy."""
        other = copy(self)
        other.inbox, other.outbox, other.counts = deque(self.inbox), deque(self.outbox), Counter(self.counts)
        return other
