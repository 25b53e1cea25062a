# SPDX-License-Identifier: Apache-2.0
"""Data direct channels: calls, READY_IND and READY_QUERY, flushes and the release of what is not used (af-lane-0021,
clauses 8 and 9).

A client calls another one when an LE_ARP response names it. Both ends have the channel `vc_setup` later, when who
called says READY_IND; who was called may send once it has heard that, or data, and asks after C28 without. Whatever
carries no data for C12 is released.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from sundial.segments.atm.model import Atm
from sundial.segments.atm.verify_channels import DATA_DIRECT, MULTICAST_SEND
from sundial.segments.atm.verify_lane_fields import Problem
from sundial.segments.atm.verify_lane_messages import (
    ARP,
    BROADCAST,
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
from sundial.segments.atm.verify_pdus import Pdus
from sundial.verify.frames import INBOUND
from sundial.verify.wire import Numbers

C28_NS = 4_000_000_000
"""Connection complete timer."""
NEVER_NS = 1 << 62
_TRANSIT_NS = 100_000_000
"""By so much the two ends may see the last use of a channel apart, at the very most."""


class Calls:
    """Of all clients: when an LE_ARP response named another client to each, and what they then could have called."""

    def __init__(self, segment: Atm, clients: Clients, told: Sequence[Message]) -> None:
        self.setup_ns = segment.lan_emulation.vc_setup
        self.named: dict[tuple[int, int], list[int]] = {}
        latency_ns = segment.by_port(segment.rx_latency)
        for each in told:
            fields = each.fields
            answer = each.opcode == ARP + RESPONSE and not each.out and not each.lost and each.target_mac != BROADCAST
            if answer and fields is not None:
                peer = clients.peer(fields.target_address)
                self.named.setdefault((each.port, peer), []).append(each.at_ns + latency_ns[each.port])

    def complete(self, number: int, peer: int) -> list[int]:
        """When calls that the two may have made to each other were complete."""
        both = [*self.named.get((number, peer), []), *self.named.get((peer, number), [])]
        return sorted(at + self.setup_ns for at in both)


class Channels:
    """Those of one client."""

    def __init__(self, segment: Atm, line: Uplink, pdus: Pdus, told: Sequence[Message], calls: Calls) -> None:
        self.segment, self.lane, self.line, self.calls = segment, segment.lan_emulation, line, calls
        self.number = number = line.number
        self.told = [each for each in told if each.port == number and not each.lost]
        self.latency_ns = segment.by_port(segment.rx_latency)[number]
        here = (pdus.port == number) & ~pdus.fate & ~pdus.control & (pdus.vci >= DATA_DIRECT)
        came = here & (pdus.direction == INBOUND)
        self.came_vci, self.came_ns = pdus.vci[came], pdus.time_ns[came] + self.latency_ns
        left = np.flatnonzero(here[line.place])
        self.left = left
        self.left_vci = pdus.vci[line.place][left]

    # ---- Which are ready ----

    def ready(self, peer: int) -> list[int]:
        """When a channel became ready, or may have."""
        vci = DATA_DIRECT + peer
        said = [
            self.line.asked_ns(self.line.at(each.record)) if each.out else each.at_ns + self.latency_ns
            for each in self.told
            if each.vci == vci and each.opcode == READY_IND
        ]
        return sorted([*said, *self._came(peer)[:1].tolist()])

    def _came(self, peer: int) -> Numbers:
        return np.asarray(self.came_ns[self.came_vci == DATA_DIRECT + peer])

    @cached_property
    def _used(self) -> dict[int, Numbers]:
        """By peer: what shows a channel to be there, in order."""
        found = {}
        for peer in range(len(self.segment.ports)):
            sent = self.line.time_ns[self.left[self.left_vci == DATA_DIRECT + peer]] - self.line.latency_ns
            found[peer] = np.sort(np.concatenate([sent, self._came(peer), np.array(self.ready(peer), np.int64)]))
        return found

    def is_ready(self, peer: int, at_ns: int) -> bool:
        """Whether a channel was surely ready."""
        starts, used = self.ready(peer), self._used[peer]
        if not starts or starts[0] > at_ns:
            return False
        last = int(used[np.searchsorted(used, at_ns, "right") - 1])
        return at_ns < last + self.lane.vcc_time_out - _TRANSIT_NS

    # ---- Flushes ----

    @cached_property
    def flushes(self) -> list[tuple[Message, int]]:
        """Each request of this client, and when it had the answer; NEVER_NS: it never had."""
        answers = {
            each.fields.transaction: each.at_ns + self.latency_ns
            for each in reversed(self.told)
            if each.opcode == FLUSH + RESPONSE and not each.out and each.fields is not None
        }
        return [
            (each, answers.get(each.fields.transaction, NEVER_NS))
            for each in self.told
            if each.opcode == FLUSH and each.out and each.fields is not None
        ]

    @cached_property
    def flush_records(self) -> list[int]:
        """Of those requests."""
        return [each.record for each, _ in self.flushes]

    # ---- Checks ----

    def check(self, clients: Clients, end_ns: int | None) -> Iterator[Problem]:
        """Control frames on these channels, and what must be there after a call."""
        for each in self.told:
            peer = each.vci - DATA_DIRECT
            if each.out and each.opcode == READY_IND:
                yield from self._ready_ind(each, peer)
            elif each.out and each.opcode == READY_QUERY:
                yield from self._ready_query(each, peer)
            elif each.out and each.opcode == FLUSH and each.vci == MULTICAST_SEND:
                yield from self._flush(each, clients)
        yield from self._called(end_ns)

    def check_data(self) -> Iterator[tuple[int, str, str, str]]:
        """Frames on a channel that is not ready, or was released since."""
        for peer in range(len(self.segment.ports)):
            places = self.left[self.left_vci == DATA_DIRECT + peer]
            starts = self.ready(peer)
            asked = self.line.time_ns[places] - self.line.latency_ns
            earliest = self.line.earliest_ns(places)
            used = self._used[peer]
            before = used[np.maximum(np.searchsorted(used, asked, "left") - 1, 0)]
            never = asked < starts[0] - ROUNDING_NS if starts else np.ones(len(places), np.bool_)
            released = earliest > before + self.lane.vcc_time_out + ROUNDING_NS
            for place in np.flatnonzero(never | released):
                expected = (
                    f"none before channel {DATA_DIRECT + peer} is ready"
                    if never[place]
                    else (f"a new call, since channel {DATA_DIRECT + peer} was released after {before[place]} ns")
                )
                yield int(self.line.record[places[place]]), "data frame", expected, f"one at {asked[place]} ns"

    def _ready_ind(self, message: Message, peer: int) -> Iterator[Problem]:
        """When a call is complete, or asked."""
        asked = [
            each.at_ns + self.latency_ns
            for each in self.told
            if not each.out and each.vci == message.vci and each.opcode == READY_QUERY
        ]
        complete = self.calls.complete(self.number, peer)
        if any(self.line.left_at(message.record, at) for at in [*asked, *complete]):
            return
        before = self._used[peer]
        at_ns = self.line.asked_ns(self.line.at(message.record))
        earlier = before[before < at_ns - ROUNDING_NS]
        # Once released, a channel is called for again when a frame needs it.
        idle_ns = self.lane.vcc_time_out + self.lane.vc_setup - _TRANSIT_NS
        if len(earlier) and at_ns - int(earlier[-1]) >= idle_ns:
            return
        due = ", ".join(map(str, complete)) or "never"
        yield message, "time", f"{NAMES[READY_IND]} when a call is complete: {due} ns", f"at {at_ns} ns"

    def _ready_query(self, message: Message, peer: int) -> Iterator[Problem]:
        """C28 after a call was complete, and again, where nothing has shown that the other end is ready."""
        at_ns = self.line.asked_ns(self.line.at(message.record))
        heard = [each for each in self.told if not each.out and each.vci == message.vci and each.opcode == READY_IND]
        shown = [each.at_ns for each in heard if each.at_ns < message.at_ns]
        times = range(1, self.lane.retries + 2)
        due = [at + number * C28_NS for at in self.calls.complete(self.number, peer) for number in times]
        if shown or not any(self.line.left_at(message.record, at) for at in due):
            yield (
                message,
                "time",
                f"{NAMES[READY_QUERY]} after {C28_NS} ns without {NAMES[READY_IND]}",
                f"at {at_ns} ns",
            )

    def _flush(self, message: Message, clients: Clients) -> Iterator[Problem]:
        """As soon as a channel is ready whose frames went by the BUS; again after C21 without an answer."""
        fields = message.fields
        peer = -1 if fields is None else clients.peer(fields.target_address)
        if peer < 0 or peer == self.number:
            return
        due = [*self.ready(peer), *self.calls.named.get((self.number, peer), []), *self._came(peer).tolist()[:1]]
        due += [
            self.line.asked_ns(self.line.at(each.record)) + self.lane.flush_time_out
            for each, answered_ns in self.flushes
            if each.record < message.record and each.fields is not None and answered_ns > message.at_ns
            and each.fields.target_address == clients.addresses[peer]
        ]  # fmt: skip
        moved = any(each.opcode == NARP for each in self.told)
        if not moved and not any(self.line.left_at(message.record, at) for at in due):
            at_ns = self.line.asked_ns(self.line.at(message.record))
            yield message, "time", f"{NAMES[FLUSH]} when a channel becomes ready, or again", f"at {at_ns} ns"

    def _called(self, end_ns: int | None) -> Iterator[Problem]:
        """Whoever is named has a channel `vc_setup` later."""
        for (number, peer), named in self.calls.named.items():
            if number != self.number or peer < 0 or peer == number:
                continue
            first = named[0] + self.lane.vc_setup
            starts = self.ready(peer)
            place = bisect_right(starts, first + _TRANSIT_NS)
            if place == 0 and (end_ns is None or first + _TRANSIT_NS < end_ns):
                answer = next(each for each in self.told if each.at_ns + self.latency_ns == named[0])
                yield answer, "call", f"{NAMES[READY_IND]} on {DATA_DIRECT + peer} at {first} ns", "none"
