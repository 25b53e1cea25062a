# SPDX-License-Identifier: Apache-2.0
"""Who must answer to a control frame of LAN emulation: once, and a client at once (af-lane-0021, clauses 5, 7 and 9).

The LECS and the LES answer themselves, about members and the BUS; for an address that is not registered the LES
asks all clients, of which those that are proxies may answer. A flush is answered by the client that it names.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sundial.expect.atm import UNITS_PER_PS
from sundial.segments.atm.model import Atm
from sundial.segments.atm.verify_channels import DISTRIBUTE
from sundial.segments.atm.verify_lane_fields import Problem
from sundial.segments.atm.verify_lane_messages import (
    ARP,
    BROADCAST,
    CONFIGURE,
    FLUSH,
    JOIN,
    NAMES,
    READY,
    RESPONSE,
    Clients,
    Message,
)
from sundial.segments.atm.verify_lane_uplink import Uplink

_NS = 1000 * UNITS_PER_PS
NEVER_NS = 1 << 62
_LES, _PROXIES, _NOBODY, _UNCLEAR = range(4)
Key = tuple[int, int, bytes]
"""Opcode of the request, transaction, ATM address of who asked."""


def key_of(message: Message) -> Key | None:
    """What a request and all that follows from it have in common."""
    fields = message.fields
    return None if fields is None else (message.opcode & ~RESPONSE, fields.transaction, fields.source_address)


def check_answers(
    segment: Atm, clients: Clients, messages: Sequence[Message], lines: Sequence[Uplink], end_ns: int | None
) -> Iterator[Problem]:
    """Problems of all that ask for an answer, and of all answers."""
    yield from _Answers(segment, clients, messages, lines, end_ns).check()


def unanswerable(
    segment: Atm, clients: Clients, messages: Sequence[Message], lines: Sequence[Uplink], end_ns: int | None
) -> list[tuple[int, int]]:
    """By port, how many LE_ARP requests came to the LES for which it knows neither an answer nor a proxy to ask:
    surely, and perhaps."""
    return _Answers(segment, clients, messages, lines, end_ns).unanswerable()


@dataclass
class _Answers:
    segment: Atm
    clients: Clients
    messages: Sequence[Message]
    lines: Sequence[Uplink]
    end_ns: int | None

    def __post_init__(self) -> None:
        # When each client surely was no member for the LES yet, and when it surely was one.
        self.not_yet, self.surely = ([NEVER_NS] * len(self.lines) for _ in range(2))
        for each in reversed(self.messages):
            if each.opcode == JOIN and each.out:
                self.not_yet[each.port] = each.at_ns
            if each.opcode == JOIN | RESPONSE and not each.out and not each.lost:
                self.surely[each.port] = each.at_ns

    def check(self) -> Iterator[Problem]:
        lost = {key_of(each) for each in self.messages if each.lost}
        unclear = [each.at_ns for each in self.messages if each.lost and not each.whole]
        heard: defaultdict[tuple[Key | None, int], list[Message]] = defaultdict(list)
        given: defaultdict[tuple[Key | None, int], list[Message]] = defaultdict(list)
        for each in self.messages:
            if not each.lost and each.whole and each.opcode not in READY and each.opcode >= RESPONSE:
                (given if each.out else heard)[key_of(each), each.port].append(each)
        for request in self.messages:
            if request.lost or not request.whole or request.opcode >= RESPONSE or request.opcode in READY:
                continue
            key = key_of(request)
            if request.out:
                answers = heard[key, request.port]
                for more in answers[1:]:
                    yield more, "answer", "one to a transaction", f"another one to {NAMES[request.opcode]}"
                yield from self._passed_on(answers[:1], given, key)
                known = key in lost or any(at >= request.at_ns for at in unclear)
                if not answers and not known and self._is_due(request, given, key) and self._in_time(request):
                    yield request, "answer", f"{NAMES[request.opcode | RESPONSE]}", "none"
            elif request.opcode in (ARP, FLUSH):
                yield from self._given(request, given[key, request.port])
        yield from self._asked_all(lost)

    def _is_due(
        self, request: Message, given: defaultdict[tuple[Key | None, int], list[Message]], key: Key | None
    ) -> bool:
        if request.opcode in (CONFIGURE, JOIN, FLUSH):
            return True
        if request.opcode != ARP:
            return False
        mac, macs = request.target_mac, self.clients.macs
        registered = mac in macs and self.surely[macs.index(mac)] <= request.at_ns
        return mac == BROADCAST or registered or any(given[key, port] for port in range(len(macs)))

    def _passed_on(
        self, answers: list[Message], given: defaultdict[tuple[Key | None, int], list[Message]], key: Key | None
    ) -> Iterator[Problem]:
        """What a client answered, by way of the LES."""
        for answer in answers:
            fields = answer.fields
            assert fields is not None
            if answer.opcode == ARP | RESPONSE and (
                answer.target_mac == BROADCAST or answer.target_mac in self.clients.macs
            ):
                continue
            if answer.opcode in (ARP | RESPONSE, FLUSH | RESPONSE):
                sender = self.clients.peer(fields.target_address)
                if not any(each.at_ns < answer.at_ns for each in given[key, sender]):
                    yield answer, "answer", "one that the client has given which it names", "none of that client"

    def _given(self, request: Message, answers: list[Message]) -> Iterator[Problem]:
        """A client answers once, and as soon as it has the request."""
        fields, port = request.fields, request.port
        assert fields is not None
        named = request.opcode == FLUSH and fields.target_address == self.clients.addresses[port]
        for more in answers[1:]:
            yield more, "answer", "one", "another one"
        if not answers:
            if named and self._in_time(request):
                yield request, "answer", f"{NAMES[FLUSH | RESPONSE]} of the client that it names", "none"
            return
        may = named or (request.opcode == ARP and self.clients.relays[port] and request.vci == DISTRIBUTE)
        if not may:
            yield answers[0], "answer", "none of this client", NAMES[answers[0].opcode]
        at_ns = request.at_ns + self.segment.by_port(self.segment.rx_latency)[port]
        if not self.lines[port].left_at(answers[0].record, at_ns):
            seen = answers[0].at_ns - self.lines[port].latency_ns
            yield answers[0], "time", f"an answer at {at_ns} ns", f"at {seen} ns"

    def _asked_all(self, lost: set[Key | None]) -> Iterator[Problem]:
        """The LES asks all clients for what no client has registered, once, if there is a proxy beside who asks."""
        copies = Counter(
            (key_of(each), each.port)
            for each in self.messages
            if each.vci == DISTRIBUTE and not each.out and not each.lost and each.opcode == ARP
        )
        for request in self.messages:
            if not request.out or request.lost or request.opcode != ARP or request.target_mac == BROADCAST:
                continue
            key, whom = key_of(request), self._whom(request)
            asked = [copies[key, port] for port in range(len(self.clients.macs))]
            if whom in (_LES, _NOBODY) and any(asked):
                yield request, "control distribute", "an answer of the LES itself, or none", "all clients asked"
            elif whom != _PROXIES or key in lost or not self._in_time(request):
                continue
            elif any(number != 1 for number in asked):
                yield request, "control distribute", "all clients asked once", ", ".join(map(str, asked))

    def unanswerable(self) -> list[tuple[int, int]]:
        """See above."""
        lost = {key_of(each) for each in self.messages if each.lost}
        found = [(0, 0) for _ in self.lines]
        for request in self.messages:
            asks = request.out and not request.lost and request.opcode == ARP and request.target_mac != BROADCAST
            if asks and key_of(request) not in lost and self._whom(request) in (_NOBODY, _UNCLEAR):
                least, most = found[request.port]
                sure = self._whom(request) == _NOBODY and self._in_time(request)
                found[request.port] = least + sure, most + 1
        return found

    def _whom(self, request: Message) -> int:
        """Who knows the station that a client asks for, while others may be joining."""
        macs, relays, mac = self.clients.macs, self.clients.relays, request.target_mac
        latest = request.at_ns + self._margin_ns()
        own = macs.index(mac) if mac in macs else -1
        proxies = [port for port, relay in enumerate(relays) if relay and port != request.port]
        joining = [port for port in [own, *proxies] if port >= 0]
        if any(self.not_yet[port] <= latest and self.surely[port] > request.at_ns for port in joining):
            return _UNCLEAR
        if own >= 0 and self.surely[own] <= request.at_ns:
            return _LES
        return _PROXIES if any(self.surely[port] <= request.at_ns for port in proxies) else _NOBODY

    def _in_time(self, request: Message) -> bool:
        """Whether an answer must have come before the end."""
        return self.end_ns is None or request.at_ns + 4 * self._margin_ns() < self.end_ns

    def _margin_ns(self) -> int:
        """To the services and back to a client through full queues."""
        segment = self.segment
        cells = segment.queue.cells + 400
        slowest = max(segment.cell_time_units(port) for port in segment.ports)
        service = segment.lan_emulation.service_line.cell_time_units
        ways = 2 * max(segment.by_port(segment.propagation)) + 2 * (segment.cell_latency + segment.cdv)
        adapters = max(segment.by_port(segment.tx_latency)) + max(segment.by_port(segment.rx_latency))
        return cells * (2 * slowest + 2 * service) // _NS + ways + adapters + segment.lan_emulation.service_latency
