# SPDX-License-Identifier: Apache-2.0
"""Data direct channels: calls, READY_IND and READY_QUERY, flushes and the release of what is not used (af-lane-0021,
clauses 8 and 9).

A client calls another one when an LE_ARP response names it, or when it has a frame for one that it knows. Both ends
have the channel `vc_setup` later, when who called says READY_IND; who was called may send once it has heard that, or
data, and asks after C28 without. Whatever carries no data for C12 is released. What each message is for follows from
what both ends have sent, also where that was lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from sundial.segments.atm.model import Atm
from sundial.segments.atm.verify_channels import DATA_DIRECT, MULTICAST_SEND
from sundial.segments.atm.verify_lane_fields import Problem
from sundial.segments.atm.verify_lane_messages import (
    FLUSH,
    NAMES,
    NARP,
    READY_IND,
    READY_QUERY,
    RESPONSE,
    Clients,
    Message,
)
from sundial.segments.atm.verify_lane_uplink import ROUNDING_NS, Uplink
from sundial.segments.atm.verify_lane_vccs import C28_NS, NEVER, NEVER_NS, Span, Vcc, Vccs


class Channels:
    """Those of one client."""

    def __init__(self, segment: Atm, line: Uplink, messages: Sequence[Message], vccs: Vccs) -> None:
        self.segment, self.lane, self.line, self.vccs = segment, segment.lan_emulation, line, vccs
        self.number = line.number
        self.messages = [each for each in messages if each.port == self.number and not each.lost]
        self.latency_ns = segment.by_port(segment.rx_latency)[self.number]

    def ready(self, peer: int) -> list[Span]:
        """When a channel became ready."""
        return self.vccs.ready(self.number, peer)

    def is_ready(self, peer: int, at_ns: int) -> bool:
        """Whether a channel was surely ready."""
        return self.vccs.is_ready(self.number, peer, at_ns)

    # ---- Flushes ----

    @cached_property
    def flushes(self) -> list[tuple[Message, int]]:
        """Each request of this client, and when it had the answer; NEVER_NS: it never had."""
        answers = {
            each.fields.transaction: each.at_ns + self.latency_ns
            for each in reversed(self.messages)
            if each.opcode == FLUSH + RESPONSE and not each.out and each.fields is not None
        }
        return [
            (each, answers.get(each.fields.transaction, NEVER_NS))
            for each in self.messages
            if each.opcode == FLUSH and each.out and each.fields is not None
        ]

    @cached_property
    def flush_records(self) -> list[int]:
        """Of those requests."""
        return [each.record for each, _ in self.flushes]

    # ---- Checks ----

    def check(self, clients: Clients, end_ns: int | None) -> Iterator[Problem]:
        """Control frames on these channels, and what must be there after a call."""
        for each in self.messages:
            peer = each.vci - DATA_DIRECT
            here = 0 <= peer < len(self.segment.ports) and peer != self.number
            if each.out and each.opcode in (READY_IND, READY_QUERY) and not here:
                yield each, "channel of READY", f"{DATA_DIRECT} and above", f"{each.vci}"
        for peer in range(len(self.segment.ports)):
            if peer != self.number:
                yield from self._ready_inds(peer, end_ns)
                yield from self._ready_queries(peer, end_ns)
                yield from self._called(peer, end_ns)
        yield from self._flushed(clients)

    def check_data(self) -> Iterator[tuple[int, str, str, str]]:
        """Frames on a channel that is not ready, or was released since."""
        for peer in range(len(self.segment.ports)):
            if peer == self.number:
                continue
            places = self.vccs.sent(self.number, peer)
            known = [each for each in self.vccs.between(self.number, peer) if each.ready[self.number] != NEVER]
            ready = np.array([each.ready[self.number][0] for each in known], np.int64)
            released = np.array([each.released[1] for each in known], np.int64)
            asked, earliest = self.line.time_ns[places] - self.line.latency_ns, self.line.earliest_ns(places)
            own = np.searchsorted(ready, asked + ROUNDING_NS, "right") - 1
            never = own < 0
            over = ~never & (earliest > released[own] + ROUNDING_NS) if len(known) else never
            for place in np.flatnonzero(never | over):
                expected = (
                    f"none before channel {DATA_DIRECT + peer} is ready"
                    if never[place]
                    else f"a new call, since channel {DATA_DIRECT + peer} was released at {released[own[place]]} ns"
                )
                yield int(self.line.record[places[place]]), "data frame", expected, f"one at {asked[place]} ns"

    def _ready_inds(self, peer: int, end_ns: int | None) -> Iterator[Problem]:
        """When a call is complete, or asked. A call is made where there is no channel, to who is known to be there."""
        before: Vcc | None = None
        named = self.vccs.named.get((self.number, peer), [])
        for vcc in self.vccs.between(self.number, peer):
            for call in vcc.calls:
                if call.message.port != self.number:
                    continue
                begun_ns = call.complete[1] - self.lane.vc_setup
                free_ns = max(0 if before is None else before.released[0], min(named, default=NEVER_NS))
                if begun_ns < free_ns - 2 * ROUNDING_NS:
                    expected = f"{NAMES[READY_IND]} {self.lane.vc_setup} ns after a call that is possible"
                    due = f"from {free_ns} ns on" if free_ns < NEVER_NS else "when its station is known"
                    yield call.message, "time", f"{expected}, {due}", f"at {call.complete[1]} ns"
            before = vcc
        for at_ns in self.vccs.unanswered.get((self.number, peer), []):
            if end_ns is not None and at_ns + self.line.latency_ns >= end_ns:
                continue
            asked = next(each for each in self.messages if not each.out and each.opcode == READY_QUERY
                         and each.vci == DATA_DIRECT + peer and each.at_ns + self.latency_ns == at_ns)  # fmt: skip
            yield asked, "answer", f"{NAMES[READY_IND]} at {at_ns} ns", "none"

    def _ready_queries(self, peer: int, end_ns: int | None) -> Iterator[Problem]:
        """C28 after a call of the other end was complete, and again, where nothing shows that this is ready."""
        asked = [each for each in self.messages
                 if each.out and each.opcode == READY_QUERY and each.vci == DATA_DIRECT + peer]  # fmt: skip
        for vcc in self.vccs.between(self.number, peer):
            if not vcc.called(self.number):
                continue
            # Until it is ready, or the other end has released it.
            over = [min(vcc.ready[self.number][bound], vcc.released[bound]) for bound in (0, 1)]
            for number in range(1, self.lane.retries + 2):
                due = vcc.complete[0] + number * C28_NS, vcc.complete[1] + number * C28_NS
                own = next((each for each in asked if self.line.left_between(each.record, due)), None)
                if own is not None and due[0] <= over[1]:
                    asked.remove(own)
                elif due[1] < over[0] and (end_ns is None or due[1] + self.line.latency_ns < end_ns):
                    yield vcc.calls[0].message, "other end", f"{NAMES[READY_QUERY]} at {due[1]} ns", "none"
        for each in asked:
            seen = f"at {self.line.asked_ns(self.line.at(each.record))} ns"
            yield each, "time", f"{NAMES[READY_QUERY]} after {C28_NS} ns without {NAMES[READY_IND]}", seen

    def _flushed(self, clients: Clients) -> Iterator[Problem]:
        """As soon as a channel is ready whose frames went by the BUS; again C21 after a request without an answer.
        C21 counts from when a client wanted to ask: on its line, READY_IND may be in front of that."""
        begins: dict[int, list[Span]] = {}
        asked: dict[int, list[tuple[Span, int]]] = {}
        again_ns = self.lane.flush_time_out
        for message, answered_ns in self.flushes:
            peer = -1 if message.fields is None else clients.peer(message.fields.target_address)
            if message.vci != MULTICAST_SEND or peer < 0 or peer == self.number:
                continue
            if peer not in begins:
                begins[peer] = self._begins(peer)
            repeats = [(low + again_ns, high + again_ns) for (low, high), at in asked.get(peer, [])
                       if at >= low + again_ns]  # fmt: skip
            low, high = self.line.asked_between(message.record)
            own = [each for each in (*begins[peer], *repeats) if low <= each[1] and each[0] <= high + ROUNDING_NS]
            if not own:
                yield message, "time", f"{NAMES[FLUSH]} when a channel becomes ready, or again", f"at {high} ns"
                continue
            first, last = max(low, min(each[0] for each in own)), min(high, max(each[1] for each in own))
            asked.setdefault(peer, []).append(((first, last), answered_ns))

    def _begins(self, peer: int) -> list[Span]:
        """When a client may begin to flush the way to another: its channel gets ready, or it is named or moves there
        while that is."""
        moved = [
            (self.line.asked_between(each.record) if each.out else (each.at_ns + self.latency_ns,) * 2)
            for each in self.messages
            if each.opcode == NARP
        ]
        return [
            *self.ready(peer),
            *((at, at) for at in self.vccs.named.get((self.number, peer), [])),
            *moved,
        ]

    def _called(self, peer: int, end_ns: int | None) -> Iterator[Problem]:
        """A client that is named has a channel `vc_setup` later."""
        known = self.vccs.between(self.number, peer)
        for named_ns in self.vccs.named.get((self.number, peer), []):
            due_ns = named_ns + self.lane.vc_setup
            if end_ns is not None and due_ns + self.line.latency_ns >= end_ns:
                continue
            if not any(
                each.complete[0] <= due_ns + ROUNDING_NS and named_ns <= each.released[1] + ROUNDING_NS
                for each in known
            ):
                answer = next(each for each in self.messages if each.at_ns + self.latency_ns == named_ns)
                yield answer, "call", f"{NAMES[READY_IND]} on {DATA_DIRECT + peer} at {due_ns} ns", "none"
