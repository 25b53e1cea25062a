# SPDX-License-Identifier: Apache-2.0
"""The server's side of an activity, replayed (C706 chapter 10; the states of guest-apps/dce/README.md).

Its events are what was whole at its port, its timers, and the ends of its procedures, of which the capture shows no
more than the responses.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, Self
from uuid import UUID

from sundial.judge import machine as judge
from sundial.judge.machine import NEVER
from sundial.workloads.dce.expect_pdu import CANCEL_PENDING, NO_HINT, Flags, Pdu, Type
from sundial.workloads.dce.verify_stream import (
    BACKOFF,
    CONV,
    NIL,
    NO_FLAGS,
    WHO_ARE_YOU,
    Arrival,
    Machine,
    Outgoing,
    Receiver,
    blank,
    control,
    fack_body,
)

PROTOCOL_ERROR, WRONG_BOOT_TIME, NOT_ANSWERED, CANCELLED = 0x1C01000B, 0x1C010006, 0x1C00000B, 0x1C00000D
TOO_BUSY = 0x1C010014
HALF_NS, IDLE_NS = 60_000_000_000, 300_000_000_000
"""Half a request without another packet; an activity without a call."""
_ONCE = Flags.IDEMPOTENT | Flags.MAYBE | Flags.BROADCAST
EXECUTED, EITHER = "executed ", "either "
"""Counts of operations, with their number behind: those that ran, and requests of maybe calls that ran or were not
taken, which no response shows."""
State = Literal["unknown", "way", "recv", "run", "final", "idle"]

Results = Callable[[Pdu], bytes | None]
"""What the procedure that a request calls returns; None where there is no such procedure."""


@dataclass(frozen=True)
class Given:
    """If the server does not know the activity, its next request gets this place in the server's table."""

    at_ns: int
    place: int | None
    """None: all are in use, so the request is rejected."""
    conv: UUID = NIL
    """The activity of the questions that are asked from there."""
    conv_sequence: int = 0
    """Of the latest of them."""
    message: None = None


@dataclass(frozen=True)
class Taken:
    """Another activity gets its place; the server forgets it."""

    at_ns: int
    message: None = None


@dataclass(frozen=True)
class Begun:
    """A thread of the server runs the procedure of the present call, from then on at the earliest."""

    at_ns: int
    message: None = None


@dataclass
class Server(Machine):
    """One activity of a server."""

    activity: UUID = NIL
    boot_time: int = 0
    hint: int = NO_HINT
    """Of the activity, once it is known."""
    conv: UUID = NIL
    """The activity of its own questions."""
    conv_sequence: int = 0
    """Of the latest of them."""
    refused: bool = False
    """The server has no place for it while it does not know it."""
    results: Results = lambda pdu: b""
    work_ns: int = 0
    """What each procedure takes at least."""
    waits: bool = False
    """A procedure begins when a thread of the server is free: `Begun` says when."""
    state: State = "unknown"
    done_ns: int = 0
    """When the present one may be over."""
    sequence: int = 0
    header: Pdu | None = None
    incoming: Receiver = field(default_factory=Receiver)
    outgoing: Outgoing | None = None
    orphaned: bool = False
    cancelled: bool = False
    """Its client has asked to cancel the present call."""
    forget_when_sent: bool = False
    used_ns: int = 0
    kept_ns: int = 0
    spread: Counter[str] = field(default_factory=Counter)
    """By how much more than `counts` it may have counted."""
    not_taken: frozenset[int] = frozenset()
    """When requests came that it may have dropped, as the procedure of the call before was still running."""
    lagged: bool = False
    """Something waited longer to be read, or a procedure longer to end, than if its machine is not busy otherwise."""
    way_ns: int = 0
    way_at: int = NEVER
    way_every: int = 0

    def clone(self) -> Self:
        other = super().clone()
        other.incoming = self.incoming.clone()
        other.outgoing = None if self.outgoing is None else self.outgoing.clone()
        other.spread = Counter(self.spread)
        return other

    def tally(self) -> list[Counter[str]]:
        kept = Counter(kept=int(self.state == "final"))
        return [self.counts + kept, self.counts + self.spread + kept]

    def joins(self, other: judge.Machine[Pdu]) -> bool:
        """What it may have counted is bounded: only the sum of all activities is known."""
        assert isinstance(other, Server)
        mine, theirs = ((each.counts, each.spread, each.now_ns, each.not_taken, each.lagged) for each in (self, other))
        other.counts, other.spread, other.now_ns, other.not_taken, other.lagged = mine
        same = self == other
        other.counts, other.spread, other.now_ns, other.not_taken, other.lagged = theirs
        if same:
            names = {*self.counts, *other.counts, *self.spread, *other.spread}
            most = {
                name: max(self.counts[name] + self.spread[name], theirs[0][name] + theirs[1][name]) for name in names
            }
            self.counts = Counter({name: min(self.counts[name], theirs[0][name]) for name in names})
            self.spread = Counter({name: most[name] - self.counts[name] for name in names})
            self.now_ns = min(self.now_ns, theirs[2])
            self.not_taken |= theirs[3]
            self.lagged &= theirs[4]
        return same

    def deadline(self) -> int:
        if self.state == "way":
            return min(self.used_ns + self.half_ns, self.way_at, self.patience())
        if self.state == "recv":
            return self.used_ns + self.half_ns
        if self.state == "final" and self.outgoing is not None:
            return min(self.outgoing.deadline_ns, self.patience())
        return self.used_ns + IDLE_NS if self.state == "idle" else NEVER

    @property
    def half_ns(self) -> int:
        """Half a request without another packet is kept for so long: its client does not give up earlier."""
        return max(HALF_NS, self.settings.give_up_ns)

    def patience(self) -> int:
        if self.state == "way":
            return self.way_ns + self.settings.give_up_ns
        return self.kept_ns + self.settings.give_up_ns if self.state == "final" else NEVER

    @property
    def queued(self) -> bool:
        """Whether its call waits for a thread of the server."""
        return self.state == "run" and self.done_ns == NEVER

    def steps(self, until_ns: int) -> Iterator[str]:
        if self.state == "run" and self.done_ns <= until_ns and not self._hides_result:
            yield "result"
        if self.state == "run" and self.cancelled and self.work_ns and self.done_ns != NEVER:
            yield "cancelled"
        if self.inbox and self.inbox[0].at_ns <= until_ns:
            yield "arrival"
        if self.fires(until_ns):
            yield "timer"
        if self.gives_up(until_ns):
            yield "end"

    def take(self, step: str) -> None:
        if step == "arrival":
            arrival = self.inbox.popleft()
            self._arrive(arrival, self.at(arrival.at_ns))
        elif step == "timer":
            self._timeout(self.at(self.deadline()))
        elif step == "end":
            self._timeout(self.at(self.patience()))
        elif step == "cancelled":
            self._result(self.now_ns, CANCELLED)
        else:
            self._result(self.at(self.done_ns))
        self._act()

    def _act(self) -> None:
        out = self.outgoing
        if self.state != "final" or out is None:
            return
        while (pdu := out.next(self.now_ns)) is not None:
            self.outbox.append(pdu)
            self.counts["fragments"] += 1
        self.counts["fragments_resent"] += out.again
        out.again = 0
        if self.forget_when_sent and out.sender.all_sent:
            self._forget()
        else:
            out.sender.fill()

    def _forget(self) -> None:
        self.outgoing, self.state, self.used_ns = None, "idle", self.now_ns

    @property
    def is_maybe(self) -> bool:
        """Whether its call is."""
        return self.header is not None and bool(self.header.flags & Flags.MAYBE)

    @property
    def silent(self) -> bool:
        """Whether no response shows the end of its call."""
        is_broadcast = self.header is not None and bool(self.header.flags & Flags.BROADCAST)
        return self.orphaned or self.is_maybe or (self.cancelled and is_broadcast)

    @property
    def _hides_result(self) -> bool:
        """Whether it cannot be seen when its procedure ended, and does not matter for what comes next."""
        return self.is_maybe and bool(self.inbox) and _alone(self.inbox[0].message)

    # ---- answers ----

    def _answer(self, pdu: Pdu, kind: Type, count: str, **others: object) -> None:
        self.counts[count] += 1
        own: dict[str, object] = {"little_endian": self.settings.little_endian, "boot_time": self.boot_time}
        self.outbox.append(control(pdu, kind, **(own | others)))

    def _reject(self, pdu: Pdu, status: int) -> None:
        if pdu.flags & (Flags.MAYBE | Flags.BROADCAST):
            self.counts["strays"] += 1
            return
        self._answer(pdu, Type.REJECT, "rejects", body=struct.pack(self._order + "I", status))

    @property
    def _order(self) -> str:
        return "<" if self.settings.little_endian else ">"

    def _fack(self, kind: Type, serial: int) -> None:
        assert self.header is not None
        body = fack_body(self.incoming.fack(self.settings, serial), self._order)
        count = "facks" if kind == Type.FACK else "nocall"
        self._answer(self.header, kind, count, fragment=self.incoming.in_order, body=body)

    def _ask_who(self, now: int) -> None:
        self.way_at = now + self.way_every
        self.way_every = min(2 * self.way_every, BACKOFF * self.settings.resend_ns)
        question = blank(self.conv, CONV, self.conv_sequence, WHO_ARE_YOU, little=self.settings.little_endian)
        uuid = self.activity.bytes_le if self.settings.little_endian else self.activity.bytes
        self.counts["who_are_you"] += 1
        self.outbox.append(
            replace(question, flags=Flags.IDEMPOTENT, body=uuid + struct.pack(self._order + "I", self.boot_time))
        )

    # ---- packets ----

    def _arrive(self, arrival: Arrival | Given | Taken | Begun, now: int) -> None:
        if isinstance(arrival, Begun):
            if self.queued:
                self.done_ns = arrival.at_ns + self.work_ns
            return
        if isinstance(arrival, Taken):
            self.state = "unknown" if self.state == "idle" else self.state
            return
        if isinstance(arrival, Given):
            self._place(arrival)
            return
        pdu = arrival.message
        self.lagged |= now > arrival.at_ns + self.unread_ns
        self.lagged |= self.state == "run" and self.done_ns + self.unread_ns < arrival.at_ns
        if pdu.type == Type.REQUEST:
            self._request(pdu, now, arrival.at_ns)
        elif pdu.type == Type.PING:
            self._ping(pdu, now)
        elif pdu.type == Type.ACK:
            self.counts["acks"] += 1
            if self.state == "final" and pdu.sequence == self.sequence:
                self._forget()
            else:
                self.counts["strays"] += 1
        elif pdu.type == Type.FACK:
            if (
                self.state == "final"
                and pdu.sequence == self.sequence
                and self.outgoing is not None
                and self.outgoing.fack(pdu, arrival.fack)
            ):
                self.counts["facks_received"] += 1
                self.kept_ns = now
            else:
                self.counts["strays"] += 1
        elif pdu.type in (Type.RESPONSE, Type.FAULT, Type.REJECT):
            self._conv_answer(pdu, now)
        elif pdu.type == Type.CL_CANCEL:
            self._cancel(pdu)
        else:
            self.counts["strays"] += 1

    def _place(self, given: Given) -> None:
        if self.state != "unknown":
            return
        self.refused = given.place is None
        if given.place is not None:
            self.hint, self.conv, self.conv_sequence = given.place, given.conv, given.conv_sequence

    def _conv_answer(self, pdu: Pdu, now: int) -> None:
        if self.state != "way" or pdu.sequence != self.conv_sequence or pdu.activity != self.conv:
            self.counts["strays"] += 1
            return
        said = struct.unpack_from(pdu.order + "II", pdu.body) if len(pdu.body) == 8 else (None, None)
        if pdu.type != Type.RESPONSE or said != (self.sequence, 0):
            self.state = "unknown"
            return
        self.state, self.used_ns = "recv", now
        self._run_if_complete()

    def _cancel(self, pdu: Pdu) -> None:
        """A number of it; one without would quit the call, which no client here does."""
        self.counts["cancels"] += 1
        present = pdu.sequence == self.sequence and self.state in ("way", "recv", "run")
        self.cancelled |= present
        body = pdu.body if pdu.little_endian == self.settings.little_endian else b""
        self._answer(pdu, Type.CANCEL_ACK, "cancel_acks", body=body[:8] + bytes((present,)))

    def _request(self, pdu: Pdu, now: int, came_ns: int) -> None:
        if self.state == "run" and self.is_maybe and _alone(pdu) and self.done_ns + self.unread_ns <= came_ns:
            self._result(now)
        if pdu.boot_time not in (0, self.boot_time):
            self._reject(pdu, WRONG_BOOT_TIME)
        elif _alone(pdu) and self.state == "run" and self.done_ns <= came_ns + self.unread_ns:
            # Had the one before ended, it is executed; else it is dropped. Neither is answered.
            self.sequence = max(self.sequence, pdu.sequence)
            self.header = replace(pdu, activity_hint=self.hint, body=b"")
            self.counts[f"{EITHER}{pdu.opnum}"] += 1
        elif self.state == "unknown" and self.refused:
            self._reject(pdu, TOO_BUSY)
        elif self.state == "unknown":
            self.sequence = pdu.sequence
            self._begin(pdu, now, is_known=False)
        elif pdu.sequence == self.sequence:
            self._again(pdu, now)
        elif pdu.sequence > self.sequence:
            self._next(pdu, now, came_ns)
        elif self.state == "idle" and pdu.flags & Flags.MAYBE and not pdu.flags & Flags.FRAGMENT:
            self._begin(pdu, now, is_known=True)
        else:
            self.counts["strays"] += 1

    def _begin(self, pdu: Pdu, now: int, *, is_known: bool) -> None:
        asks = not is_known and not pdu.flags & _ONCE
        self.header = replace(pdu, activity_hint=self.hint, body=b"")
        self.orphaned = self.forget_when_sent = self.cancelled = False
        self.outgoing = None
        self.incoming = Receiver()
        self.state = "way" if asks else "recv"
        self._fragment(pdu, now)
        if asks:
            self.way_ns, self.way_every = now, self.settings.resend_ns
            self.conv_sequence += 1
            self._ask_who(now)

    def _fragment(self, pdu: Pdu, now: int) -> None:
        found = self.incoming.insert(pdu)
        self.used_ns = now
        if found != "new":
            self.counts["duplicates" if found == "old" else "dropped"] += 1
        if self.incoming.asks(pdu) and found != "dropped":
            self._fack(Type.FACK, pdu.serial)
        self._run_if_complete()

    def _run_if_complete(self) -> None:
        if self.state == "recv" and self.incoming.complete:
            self.state = "run"
            self.done_ns = NEVER if self.waits else self.now_ns + self.work_ns
            if self.header is not None and self.is_maybe:
                self.counts[f"{EITHER}{self.header.opnum}"] += 1

    def _again(self, pdu: Pdu, now: int) -> None:
        if self.state in ("way", "recv"):
            self._fragment(pdu, now)
            return
        if self.state == "idle" and not pdu.fragment and not pdu.flags & Flags.MAYBE:
            if pdu.flags & (Flags.IDEMPOTENT | Flags.BROADCAST):
                self._begin(pdu, now, is_known=True)
            else:
                self._reject(pdu, PROTOCOL_ERROR)
            return
        self.counts["duplicates"] += 1
        if self.state == "final" and self.outgoing is not None:
            self.outgoing.sender.again()

    def _next(self, pdu: Pdu, now: int, came_ns: int) -> None:
        if self.state == "run":
            self.orphaned = True
            self.counts["dropped"] += 1
            self.not_taken |= {came_ns}
            return
        known = self.state != "way"
        self.sequence = pdu.sequence
        self._begin(pdu, now, is_known=known)

    def _ping(self, pdu: Pdu, now: int) -> None:
        self.counts["pings"] += 1
        if pdu.boot_time not in (0, self.boot_time):
            self._reject(pdu, WRONG_BOOT_TIME)
        elif self.state != "unknown" and pdu.sequence < self.sequence:
            self.counts["strays"] += 1
        elif self.state in ("unknown", "idle") or pdu.sequence > self.sequence:
            self._answer(pdu, Type.NOCALL, "nocall")
        elif self.state == "run":
            self._answer(pdu, Type.WORKING, "working")
        elif self.state == "final" and self.outgoing is not None:
            self.outgoing.sender.again()
        else:
            self.used_ns = now
            self._fack(Type.NOCALL, self.incoming.high_serial)

    # ---- results and time ----

    def _result(self, now: int, status: int = 0) -> None:
        assert self.header is not None
        if not self.header.flags & Flags.MAYBE:
            self.counts[f"{EXECUTED}{self.header.opnum}"] += 1
        semantics = self.header.flags & _ONCE
        results = struct.pack(self._order + "I", status) if status else self.results(self.header)
        unheard = semantics & (Flags.MAYBE | (Flags.BROADCAST if status else NO_FLAGS))
        if self.orphaned or unheard or results is None:
            self._forget()
            return
        self.counts["faults"] += bool(status)
        header = replace(
            self.header, type=Type.FAULT if status else Type.RESPONSE, flags=NO_FLAGS,
            flags2=CANCEL_PENDING if self.cancelled else 0, auth=0, boot_time=self.boot_time,
            little_endian=self.settings.little_endian,
        )  # fmt: skip
        self.outgoing = Outgoing(self.settings, header, results, sent_ns=now)
        self.forget_when_sent = bool(semantics) and not self.outgoing.fragmented
        self.kept_ns = self.used_ns = now
        self.state = "final"

    def _timeout(self, now: int) -> None:
        if self.state == "way":
            if now >= self.patience():
                assert self.header is not None
                self._reject(self.header, NOT_ANSWERED)
                self.state = "unknown"
            elif now >= self.used_ns + self.half_ns:
                self.state = "unknown"
            else:
                self._ask_who(now)
        elif self.state == "final" and self.outgoing is not None:
            if now >= self.patience():
                self._forget()
            else:
                self.outgoing.timeout(now)
        else:
            self.state = "unknown"


def _alone(pdu: Pdu | None) -> bool:
    """Whether it is a maybe call in one PDU."""
    return (
        pdu is not None
        and pdu.type == Type.REQUEST
        and bool(pdu.flags & Flags.MAYBE)
        and not pdu.flags & Flags.FRAGMENT
    )
