# SPDX-License-Identifier: Apache-2.0
"""Which channel a client's frames to one address take, and when they may change to another (af-lane-0021, clauses 7
to 9).

Frames for a group go by the BUS. So do at most C10 frames within C11 to a station that no LE_ARP response has named;
once one has and the data direct channel is ready, they take that, but not before a flush has come back the way of the
frames before, or C22 after the last of those.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sundial.segments.atm.model import Atm
from sundial.segments.atm.verify_channels import DATA_DIRECT, MULTICAST_SEND
from sundial.segments.atm.verify_lane_calls import Channels
from sundial.segments.atm.verify_lane_messages import (
    ARP,
    BROADCAST,
    NARP,
    RESPONSE,
    Clients,
    Message,
)
from sundial.segments.atm.verify_lane_uplink import Uplink
from sundial.segments.atm.verify_pdus import Pdus
from sundial.verify.learning import GROUP_BIT
from sundial.verify.wire import Mask, Numbers

Wrong = tuple[int, str, str, str]
"""Record of a PDU, what is wrong with it, what it should be and what it is."""

BUS = MULTICAST_SEND


@dataclass(frozen=True)
class Known:
    """At one client, of one MAC address: behind which port it is, from when on; -1: it is forgotten."""

    at_ns: list[int]
    peer: list[int]

    def peer_at(self, at_ns: int, ageing_ns: int) -> int:
        """Where it was, at an instant; -1: not known."""
        place = bisect_right(self.at_ns, at_ns) - 1
        if place < 0 or at_ns > self.at_ns[place] + ageing_ns:
            return -1
        return self.peer[place]


def known_of(clients: Clients, messages: Sequence[Message], number: int, rx_latency_ns: int) -> dict[int, Known]:
    """By MAC address, what a client has learnt: from answers to its own questions, and from NARP."""
    found: dict[int, Known] = {}
    for each in messages:
        fields = each.fields
        if each.port != number or each.out or each.lost or fields is None:
            continue
        known = found.setdefault(each.target_mac, Known([], []))
        if each.opcode == ARP + RESPONSE and each.target_mac != BROADCAST:
            peer = clients.peer(fields.target_address)
        elif each.opcode == NARP and known.peer and clients.peer(fields.target_address) == known.peer[-1]:
            peer = clients.peer(fields.source_address)
        else:
            continue
        known.at_ns.append(each.at_ns + rx_latency_ns)
        known.peer.append(peer if peer != number else -1)
    return found


@dataclass(frozen=True)
class Paths:
    """The data frames that one client sent, in order: by channel, to an address."""

    segment: Atm
    clients: Clients
    line: Uplink
    vci: Numbers
    target: Numbers
    control: Mask
    messages: Sequence[Message]
    channels: Channels

    @classmethod
    def of(
        cls, segment: Atm, clients: Clients, pdus: Pdus, line: Uplink, messages: Sequence[Message], channels: Channels
    ) -> Paths:
        """From the capture; `messages` at that client."""
        target = pdus.octets.take(line.place).number(2, 6)
        return cls(segment, clients, line, pdus.vci[line.place], target, pdus.control[line.place], messages, channels)

    def sent(self) -> dict[int, Numbers]:
        """By address, when data frames for it left."""
        data = np.flatnonzero(~self.control)
        order = data[np.argsort(self.target[data], kind="stable")]
        parts = np.split(order, np.flatnonzero(np.diff(self.target[order])) + 1)
        return {int(self.target[part[0]]): self.line.time_ns[part] for part in parts if len(part)}

    def check(self, member_ns: int) -> Iterator[Wrong]:
        """Everything wrong with where they went."""
        data = ~self.control
        group = (self.target & GROUP_BIT) != 0
        yield from self._wrong(data & group & (self.vci != BUS), "channel of a group's frame", f"{BUS}")
        if self.segment.lan_emulation.resolution == "static":
            yield from self._static(data & ~group)
            return
        early = data & (self.line.time_ns - self.line.latency_ns < member_ns)
        yield from self._wrong(early, "data frame", f"none before {member_ns} ns, when its client is a member")
        rx_latency_ns = self.segment.by_port(self.segment.rx_latency)[self.line.number]
        known = known_of(self.clients, self.messages, self.line.number, rx_latency_ns)
        single = np.flatnonzero(data & ~group)
        order = single[np.argsort(self.target[single], kind="stable")]
        for part in np.split(order, np.flatnonzero(np.diff(self.target[order])) + 1):
            if len(part):
                yield from self._to_one(part, known.get(int(self.target[part[0]]), Known([], [])))

    def _wrong(self, wrong: Mask, what: str, expected: str) -> Iterator[Wrong]:
        for place in np.flatnonzero(wrong):
            at_ns, vci = self.line.time_ns[place], self.vci[place]
            yield int(self.line.record[place]), what, expected, f"on {vci} at {at_ns} ns"

    def _static(self, which: Mask) -> Iterator[Wrong]:
        """All channels are there from the start: to the port of an address, or to the only other device."""
        others = [port for port in range(len(self.clients.macs)) if port != self.line.number]
        relays = [port for port in others if self.clients.relays[port]]
        due = np.full(len(self.vci), DATA_DIRECT + relays[0] if len(relays) == 1 else BUS)
        for port in others:
            due[self.target == self.clients.macs[port]] = DATA_DIRECT + port
        for place in np.flatnonzero(which & (self.vci != due)):
            yield int(self.line.record[place]), "channel of a frame", f"{due[place]}", f"{self.vci[place]}"

    def _to_one(self, places: Numbers, known: Known) -> Iterator[Wrong]:
        yield from self._unknown(places[self.vci[places] == BUS], known)
        yield from self._first(places, known)
        direct = places[self.vci[places] != BUS]
        yield from self._behind(direct, known)
        change = np.flatnonzero(self.vci[places][1:] != self.vci[places][:-1])
        for place in change:
            yield from self._changed(int(places[place]), int(places[place + 1]), known)

    def _unknown(self, places: Numbers, known: Known) -> Iterator[Wrong]:
        """By the BUS: C10 frames within C11, only of an address that is asked for, and none that has a channel."""
        lane, line = self.segment.lan_emulation, self.line
        earliest = line.earliest_ns(places)
        latest = line.time_ns[places] - line.latency_ns + 1
        often = lane.unknown_frames
        close = np.flatnonzero(latest[often:] - earliest[:-often] < lane.unknown_frame_time) + often
        for place in close:
            expected = f"at most {often} frame(s) to an unknown station within {lane.unknown_frame_time} ns"
            yield int(line.record[places[place]]), "frame by the BUS", expected, "another one"
        if not len(places):
            return
        mac = int(self.target[places[0]])
        asked = [line.asked_between(each.record)[0] for each in self.messages
                 if each.out and each.opcode == ARP and each.target_mac == mac]  # fmt: skip
        for place, low, high in zip(places.tolist(), earliest.tolist(), latest.tolist(), strict=True):
            if not asked or asked[0] > high:
                yield int(line.record[place]), "frame by the BUS", "an LE_ARP_REQUEST for its station before it", "none"
            if self._has_channel(known, low) and self._has_channel(known, high):
                yield int(line.record[place]), "frame by the BUS", "its data direct channel, which is ready", "the BUS"

    def _first(self, places: Numbers, known: Known) -> Iterator[Wrong]:
        """A frame for which the client begins to ask goes by the BUS behind its question."""
        line = self.line
        mac = int(self.target[places[0]])
        asked = [line.asked_between(each.record) for each in self.messages
                 if each.out and each.opcode == ARP and each.target_mac == mac]  # fmt: skip
        quiet = self.segment.lan_emulation.path_switching_delay + self.segment.lan_emulation.unknown_frame_time
        begins = np.append(True, np.diff(line.time_ns[places]) > quiet)
        for place in places[begins & (self.vci[places] == BUS)]:
            record = int(line.record[place])
            # What is known, but has no channel, may go by the BUS without a question.
            here = known.peer_at(line.asked_ns(int(place)), self.segment.lan_emulation.ageing) >= 0
            if not here and not any(line.left_between(record, each) for each in asked):
                seen = f"at {line.time_ns[place]} ns"
                yield record, "frame by the BUS", "together with an LE_ARP_REQUEST for its station", seen

    def _has_channel(self, known: Known, at_ns: int) -> bool:
        peer = known.peer_at(at_ns - 1, self.segment.lan_emulation.ageing - 2)
        return peer >= 0 and self.channels.is_ready(peer, at_ns - 1)

    def _behind(self, places: Numbers, known: Known) -> Iterator[Wrong]:
        """On a data direct channel: to where LE_ARP says that the station is."""
        ageing_ns = self.segment.lan_emulation.ageing
        peers = self.vci[places] - DATA_DIRECT
        latest = self.line.time_ns[places] - self.line.latency_ns
        earliest = self.line.earliest_ns(places)
        at, where = np.array(known.at_ns, np.int64), np.array(known.peer, np.int64)
        entry = np.searchsorted(at, latest + 1, "right") - 1
        right = np.zeros(len(places), np.bool_)
        # What was handed over before the last answer came went by the one before.
        for back in (0, 1):
            which = np.maximum(entry - back, 0)
            there = (entry - back >= 0) & (where[which] == peers if len(at) else False)
            right |= there & ((at[which] + ageing_ns >= earliest) if len(at) else False)
        for place in places[~right]:
            yield (
                int(self.line.record[place]),
                "channel of a frame",
                "where LE_ARP says its station is",
                (f"{self.vci[place]} at {self.line.time_ns[place]} ns"),
            )

    def _changed(self, last: int, first: int, known: Known) -> Iterator[Wrong]:
        """Order over the change of path: a flush behind the last frame on the old one has come back, or C22 is over."""
        line, lane = self.line, self.segment.lan_emulation
        record, old, new = int(line.record[first]), int(self.vci[last]), int(self.vci[first])
        asked_ns = line.asked_ns(first) + 1
        peer = (new if new != BUS else old) - DATA_DIRECT
        if new == BUS and self._has_channel(known, asked_ns) and known.peer_at(asked_ns, lane.ageing) == peer:
            yield record, "change of path", "the data direct channel, which is ready", "the BUS"
        if asked_ns - int(line.earliest_ns(np.array([last]))[0]) >= lane.path_switching_delay:
            return
        begin = bisect_left(self._flushes_at, int(line.record[last]))
        for flush, answered_ns in self._flushes[begin:]:
            if flush.at_ns > line.time_ns[first]:
                break
            if flush.vci == old and answered_ns <= asked_ns:
                fields = flush.fields
                if fields is not None and (old != BUS or self.clients.peer(fields.target_address) == peer):
                    return
        expected = f"a flush on {old} answered, or {lane.path_switching_delay} ns after the last frame there"
        yield record, "change of path", expected, f"on {new} at {line.time_ns[first]} ns"

    @property
    def _flushes(self) -> list[tuple[Message, int]]:
        return self.channels.flushes

    @property
    def _flushes_at(self) -> list[int]:
        return self.channels.flush_records
