# SPDX-License-Identifier: Apache-2.0
"""The client's side of an activity, replayed (C706 chapter 10; the states of guest-apps/dce/README.md).

Its events are the calls of the job, what was whole at its port, and its timers.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Self
from uuid import UUID

from sundial.judge.machine import NEVER
from sundial.workloads.dce.expect_pdu import NO_HINT, BadPdu, Flags, Pdu, Type, parse_status
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
    payload,
)

OK = "ok"
NO_ANSWER = "no answer"
UNKNOWN_ACTIVITY, YOU_CRASHED = 0x1C01000A, 0x1C010009
BROADCAST_NS = 5_000_000_000
CANCEL_NS = 1_000_000_000
_YOUNG, _OLD = 5, 15
"""A call of so many ping intervals is asked after later and later."""

_PRECISION = 1000
"""poll(2) may take one in so many parts more, each time."""
WORK_NS = 5_000_000
"""A turn of the program and a tick of its kernel, which poll(2) waits for."""

State = Literal["idle", "xmit", "recv", "final"]


@dataclass(frozen=True)
class Call:
    """One call, as the job and the sample have it."""

    sequence: int
    interface: UUID
    opnum: int
    semantics: Flags = NO_FLAGS
    sizes: tuple[int, int] = (0, 0)
    """Of arguments and results."""
    body: bytes | None = None
    """Its arguments, where they are not a payload's pattern."""
    id: int | None = None
    """Of its sample."""
    start_ns: int = -NEVER
    """When it begins at the earliest."""
    begins: bool = False
    """It is the first of its batch."""
    settles: bool = True
    """Its client waits behind it until it has been acknowledged: it is the last of its batch."""

    @property
    def arguments(self) -> bytes:
        return payload(self.sequence, self.sizes[0]) if self.body is None else self.body


def kept(semantics: Flags, fragments: int) -> bool:
    """Whether the end of a call is acknowledged: of an idempotent one only what is longer than a fragment."""
    return not semantics & (Flags.IDEMPOTENT | Flags.MAYBE) or fragments > 1


@dataclass
class Client(Machine):
    """One activity of a client."""

    activity: UUID = NIL
    calls: Sequence[Call] = ()
    place: int = -1
    """Of the present or latest call among `calls`."""
    state: State = "idle"
    semantics: Flags = NO_FLAGS
    boot_time: int = 0
    activity_hint: int = NO_HINT
    interface_hint: int = NO_HINT
    incoming: Receiver = field(default_factory=Receiver)
    outgoing: Outgoing | None = None
    everything_sent: bool = False
    began_ns: int = 0
    lag_ns: int = 0
    """By how much later than at the earliest it may have sent what its timers count from."""
    waiting_ns: int | None = None
    """Since when something is to be answered."""
    ping_at: int = NEVER
    ping_every: int = 0
    ack_at: int = NEVER
    cancel_at: int = NEVER
    cancels: int = 0
    """Calls that it has cancelled."""
    cancelling: bool = False
    ended: Mapping[int, tuple[str, int]] = field(default_factory=dict)
    """How calls ended, and when at the earliest, by place."""
    resent: Mapping[int, int] = field(default_factory=dict)
    """Fragments of their requests that were sent again."""
    before: Mapping[int, Counter[str]] = field(default_factory=dict)
    """What was counted before each batch, by the place of its first call."""

    def clone(self) -> Self:
        other = super().clone()
        other.incoming = self.incoming.clone()
        other.outgoing = None if self.outgoing is None else self.outgoing.clone()
        return other

    @property
    def call(self) -> Call:
        return self.calls[self.place]

    @property
    def in_call(self) -> bool:
        return self.state in ("xmit", "recv")

    @property
    def reads(self) -> bool:
        return self.in_call or (self.state == "final" and self.call.settles)

    def deadline(self) -> int:
        if self.state == "final":
            return self.ack_at if self.call.settles else NEVER
        if not self.in_call:
            return NEVER
        return min(self.patience(), *self._timers().values())

    def _timers(self) -> dict[str, int]:
        """When each of a call's own timers is due, at the earliest; each begins again when it has been."""
        ping_at = self.ping_at if self.state == "recv" else NEVER
        return {"resend": self._resend_at(), "ping": ping_at, "cancel": self.cancel_at}

    def steps(self, until_ns: int) -> Iterator[str]:
        if self.reads and self.inbox and self.inbox[0].at_ns <= until_ns:
            yield "arrival"
            if self.in_call and not self.cancelling and self.cancel_at <= self._read_by(until_ns):
                yield "arrival and cancel"
        if self.fires(until_ns):
            yield "timer"
            yield from self._overtaking(until_ns)
        if self.gives_up(until_ns):
            yield "end"
        free = self.state == "idle" or (self.state == "final" and not self.call.settles)
        if free and self.place + 1 < len(self.calls) and self.calls[self.place + 1].start_ns <= until_ns:
            yield "start"

    def take(self, step: str) -> None:
        if step == "arrival":
            arrival = self.inbox.popleft()
            self._arrive(arrival, self.at(arrival.at_ns))
        elif step == "arrival and cancel":
            # Both in one turn: what cancels the call goes before the fragments that a fack lets out.
            arrival = self.inbox.popleft()
            self._arrive(arrival, self.at(max(arrival.at_ns, self.cancel_at)))
            if self.in_call:
                self._cancel(self.now_ns)
        elif step == "timer":
            self._timeout(self.at(self.deadline()))
        elif step == "end":
            self._timeout(self.at(self.patience()))
        elif step == "start":
            self._start(self.at(self.calls[self.place + 1].start_ns))
        else:
            self._fire(step, self.at(self._timers()[step]))
        self._act()

    def left(self, at_ns: int) -> None:
        self.lag_ns = min(self.unread_ns, max(self.lag_ns, at_ns - self.now_ns))

    def _overtaking(self, until_ns: int) -> Iterator[str]:
        """Timers that may be due alone, before another that seems to be due at the same time or a little earlier; and
        before the call's end, whose time may have begun later."""
        soonest, patience = self.deadline(), self.patience()
        next_ns = max(soonest, self.now_ns)
        if not self.in_call or next_ns >= patience + self.lag_ns:
            return
        latest = min(until_ns, soonest + (soonest - self.began_ns) // _PRECISION + WORK_NS + self.lag_ns)
        due = {name: at_ns for name, at_ns in self._timers().items() if at_ns <= latest}
        is_one = next_ns < patience and list(due.values()).count(soonest) == 1
        yield from (name for name, at_ns in due.items() if not (is_one and at_ns == soonest))

    def _read_by(self, until_ns: int) -> int:
        """When it reads what came next, at the latest."""
        arrived_ns: int = self.inbox[0].at_ns
        return min(until_ns, arrived_ns + self.unread_ns)

    # ---- the call ----

    def _header(self, kind: Type, flags: Flags = NO_FLAGS) -> Pdu:
        call = self.call
        plain = blank(self.activity, call.interface, call.sequence, call.opnum, little=self.settings.little_endian)
        return replace(
            plain, type=kind, flags=flags, boot_time=self.boot_time, interface_hint=self.interface_hint,
            activity_hint=self.activity_hint,
        )  # fmt: skip

    def _start(self, now: int) -> None:
        self.place += 1
        self.began_ns, self.lag_ns = now, 0
        if self.call.begins:
            self.before = {**self.before, self.place: Counter(self.counts)}
        self.semantics = self.call.semantics
        self.incoming = Receiver()
        self.waiting_ns, self.ping_at, self.ack_at = None, NEVER, NEVER
        self.cancelling = False
        self.cancel_at = now + self.settings.cancel_ns if self.settings.cancel_ns else NEVER
        self.everything_sent = False
        self.outgoing = Outgoing(
            self.settings, self._header(Type.REQUEST, self.semantics), self.call.arguments, sent_ns=now
        )
        if self.outgoing.fragmented:
            # What a fack has acknowledged cannot be asked for again: such a call goes at most once.
            self.semantics &= ~Flags.IDEMPOTENT
            self.outgoing.header = self._header(Type.REQUEST, self.semantics)
        self.state = "xmit"

    def _act(self) -> None:
        while self.state == "xmit" and self.outgoing is not None:
            pdu = self.outgoing.next(self.now_ns)
            if pdu is None:
                break
            self.outbox.append(pdu)
            self._note_sent(pdu)
        if self.in_call and self.outgoing is not None:
            self.outgoing.sender.fill()

    def _note_sent(self, pdu: Pdu) -> None:
        assert self.outgoing is not None
        self.counts["fragments"] += 1
        if not pdu.flags & Flags.NO_FACK or pdu.flags & Flags.LAST_FRAGMENT:
            self._wait()
        if not self.outgoing.sender.all_sent:
            return
        self.everything_sent = True
        if self.semantics & Flags.MAYBE:
            self._finish(OK, is_kept=False)
            return
        self.state = "recv"
        self._begin_pinging()

    def _finish(self, status: str, *, is_kept: bool) -> None:
        again = 0 if self.outgoing is None else self.outgoing.again
        self.counts["fragments_resent"] += again
        self.resent = {**self.resent, self.place: self.resent.get(self.place, 0) + again}
        self.outgoing = None
        self.waiting_ns, self.ping_at, self.cancel_at = None, NEVER, NEVER
        self.cancelling = False
        self.ended = {**self.ended, self.place: (status, self.now_ns)}
        self.state = "idle"
        if is_kept and kept(self.semantics, self.incoming.next):
            self.state = "final"
            self.ack_at = self.now_ns + self.settings.ack_delay_ns

    def _release(self) -> None:
        """Its receiver has all of the request."""
        if self.outgoing is not None:
            again = self.outgoing.again
            self.counts["fragments_resent"] += again
            self.resent = {**self.resent, self.place: self.resent.get(self.place, 0) + again}
        self.outgoing = None

    # ---- time ----

    def _wait(self) -> None:
        if self.waiting_ns is None:
            self.waiting_ns = self.now_ns

    def _begin_pinging(self) -> None:
        self.ping_every = self.settings.ping_ns
        self.ping_at = NEVER if self.semantics & Flags.BROADCAST else self.now_ns + self.ping_every

    def _ping_later(self) -> None:
        """The server has answered a ping: the older the call, the later it is asked again."""
        first = self.settings.ping_ns
        age = self.now_ns - self.began_ns
        pause = first // 2 * 3
        if age >= _OLD * first:
            pause = _OLD * first
        elif age >= _YOUNG * first:
            pause = _YOUNG * first
        self.ping_every = first
        self.ping_at = self.now_ns + pause

    def patience(self) -> int:
        if not self.in_call:
            return NEVER
        if self.semantics & Flags.BROADCAST:
            return self.began_ns + BROADCAST_NS
        return NEVER if self.waiting_ns is None else self.waiting_ns + self.settings.give_up_ns

    def _resend_at(self) -> int:
        return self.outgoing.deadline_ns if self.state == "xmit" and self.outgoing is not None else NEVER

    def _timeout(self, now: int) -> None:
        if self.state == "final":
            self._control(Type.ACK, "acks")
            self.state, self.ack_at = "idle", NEVER
            return
        if now >= self.patience():
            self._finish(NO_ANSWER, is_kept=False)
            return
        for name, at_ns in self._timers().items():
            if now >= at_ns:
                self._fire(name, now)

    def _fire(self, timer: str, now: int) -> None:
        if timer == "cancel":
            self._cancel(now)
        elif timer == "ping":
            self._control(Type.PING, "pings")
            self._wait()
            self.ping_every = min(2 * self.ping_every, BACKOFF * self.settings.ping_ns)
            self.ping_at = now + self.ping_every
        elif self.outgoing is not None:
            self.outgoing.timeout(now)

    def _cancel(self, now: int) -> None:
        """Asked for at first by the call's time, then again each second until the server has heard it."""
        self.cancels += not self.cancelling
        self.cancelling = True
        order = "<" if self.settings.little_endian else ">"
        self._control(Type.CL_CANCEL, "cancels", body=struct.pack(order + "II", 0, self.cancels))
        self.cancel_at = now + CANCEL_NS

    def _control(self, kind: Type, count: str, **others: object) -> None:
        self.counts[count] += 1
        self.outbox.append(control(self._header(kind), kind, **others))

    # ---- packets ----

    def _arrive(self, arrival: Arrival, now: int) -> None:
        pdu = arrival.message
        if pdu.type == Type.REQUEST:
            self._who_are_you(pdu)
            return
        if pdu.sequence != self.call.sequence:
            self.counts["strays"] += 1
            return
        if self.in_call:
            self._learn(pdu)
        if pdu.type == Type.RESPONSE:
            self._response(pdu)
        elif pdu.type in (Type.FACK, Type.NOCALL):
            self._fack(arrival, now)
        elif pdu.type == Type.WORKING:
            self._working()
        elif pdu.type in (Type.FAULT, Type.REJECT):
            self._failure(pdu)
        elif pdu.type == Type.CANCEL_ACK:
            self.counts["cancel_acks"] += 1
            self.cancelling, self.cancel_at = False, NEVER if self.cancelling else self.cancel_at
        else:
            self.counts["strays"] += 1

    def _learn(self, pdu: Pdu) -> None:
        """What the server says of itself goes into all packets to it."""
        if pdu.boot_time:
            self.boot_time = pdu.boot_time
        if pdu.interface_hint != NO_HINT:
            self.interface_hint = pdu.interface_hint
        if pdu.activity_hint != NO_HINT:
            self.activity_hint = pdu.activity_hint
        self._renew()

    def _renew(self) -> None:
        if self.outgoing is not None:
            self.outgoing.header = self._header(Type.REQUEST, self.semantics)

    def _who_are_you(self, pdu: Pdu) -> None:
        """A server that does not know this activity asks which call it makes."""
        asked, boot_time = conv_question(pdu) or (None, 0)
        if pdu.interface != CONV or pdu.opnum != WHO_ARE_YOU or asked != self.activity or self.place < 0:
            self.counts["strays"] += 1
            return
        status = 0
        if not self.boot_time and self.in_call:
            self.boot_time = boot_time
            self._renew()
        if not self.in_call:
            status = UNKNOWN_ACTIVITY
        elif boot_time != self.boot_time:
            status = YOU_CRASHED
        self.counts["who_are_you"] += 1
        little = self.settings.little_endian
        body = struct.pack("<II" if little else ">II", self.call.sequence, status)
        self.outbox.append(replace(pdu, type=Type.RESPONSE, flags=Flags(0), flags2=0, little_endian=little, body=body))

    def _fack(self, arrival: Arrival, now: int) -> None:
        pdu = arrival.message
        is_nocall = pdu.type == Type.NOCALL
        if not self.in_call or self.incoming.started:
            self.counts["strays"] += 1
            return
        self.counts["nocall" if is_nocall else "facks_received"] += 1
        if is_nocall and not pdu.body and self.state == "recv":
            if self.outgoing is not None:
                self.outgoing.sender.again()
                self.outgoing.sent_ns = now
            self._after_fack(was_ping=False)
            return
        out = self.outgoing
        base = 0 if out is None else out.sender.base
        nothing_under_way = is_nocall and self.state == "recv"
        if (is_nocall and not pdu.body) or (
            out is not None and not out.fack(pdu, arrival.fack, nothing_under_way=nothing_under_way)
        ):
            self.counts["strays"] += 1
            return
        changed = out is not None and (out.sender.base != base or not out.sender.all_sent)
        self._after_fack(was_ping=is_nocall)
        if changed or not is_nocall:
            self.waiting_ns = None
        if out is not None and out.sender.outstanding:
            self._wait()

    def _after_fack(self, *, was_ping: bool) -> None:
        if self.outgoing is not None and not self.outgoing.sender.all_sent:
            self.state, self.ping_at = "xmit", NEVER
        elif self.state == "xmit":
            self.state = "recv"
            self._begin_pinging()
        elif was_ping:
            self._ping_later()

    def _working(self) -> None:
        if not self.in_call or not self.everything_sent:
            self.counts["strays"] += 1
            return
        self.counts["working"] += 1
        self.waiting_ns, self.state = None, "recv"
        if not self.semantics & (Flags.IDEMPOTENT | Flags.MAYBE):
            self._release()
        self._ping_later()

    def _response(self, pdu: Pdu) -> None:
        if not self.in_call:
            self.counts["duplicates"] += 1
            return
        if not self.everything_sent:
            self.counts["strays"] += 1
            return
        found = self.incoming.insert(pdu)
        if found != "new":
            self.counts["duplicates" if found == "old" else "dropped"] += 1
        self.waiting_ns, self.state = None, "recv"
        self._release()
        if self.incoming.complete:
            self._finish(OK, is_kept=True)
            return
        self._begin_pinging()
        if self.incoming.asks(pdu):
            fack = self.incoming.fack(self.settings, pdu.serial)
            order = "<" if self.settings.little_endian else ">"
            self._control(Type.FACK, "facks", fragment=self.incoming.in_order, body=fack_body(fack, order))

    def _failure(self, pdu: Pdu) -> None:
        is_fault = pdu.type == Type.FAULT
        try:
            status = parse_status(pdu)
        except BadPdu:
            status = 0
        if not status:
            self.counts["strays"] += 1
        elif not self.in_call:
            self.counts["duplicates"] += 1
        else:
            self.counts["faults" if is_fault else "rejects"] += 1
            self._finish(f"{'fault' if is_fault else 'reject'} {status:08x}", is_kept=is_fault)


def conv_question(pdu: Pdu) -> tuple[UUID, int] | None:
    """Whom a who_are_you asks about, and the server's boot time; None where it is none."""
    if len(pdu.body) != 20:
        return None
    uuid = UUID(bytes_le=pdu.body[:16]) if pdu.little_endian else UUID(bytes=pdu.body[:16])
    return uuid, struct.unpack_from(pdu.order + "I", pdu.body, 16)[0]
