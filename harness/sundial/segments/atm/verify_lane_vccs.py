# SPDX-License-Identifier: Apache-2.0
"""Data direct VCCs of two clients, from what both ends sent and received: since when each end may send on one, and when
it was released (af-lane-0021, clauses 8 and 9).

The caller sends READY_IND as soon as the call is complete, also where that is lost on its way. The other end has the
VCC from then on, and may send once it has heard READY_IND or data. Either end releases it C12 after the last frame that
it sent or received there, so one that hears nothing does, however much the other sends; and who was called, when it has
asked in vain for READY_IND.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from sundial.segments.atm.model import Atm
from sundial.segments.atm.verify_channels import DATA_DIRECT
from sundial.segments.atm.verify_lane_messages import (
    ARP,
    BROADCAST,
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
Span = tuple[int, int]
"""The earliest and the latest instant of what happened once."""
NEVER: Span = (NEVER_NS, NEVER_NS)


@dataclass(frozen=True)
class Call:
    """`message`: READY_IND of who called, which is said when the call is complete."""

    complete: Span
    message: Message


@dataclass
class Vcc:
    """One of two clients, from a call until it is released."""

    complete: Span
    """When the call was; of two that cross, the first."""
    calls: list[Call]
    ready: dict[int, Span] = field(default_factory=dict)
    """By end: since when it may send."""
    released: Span = NEVER

    def called(self, port: int) -> bool:
        """Whether the end at a port has not called itself."""
        return all(each.message.port != port for each in self.calls)


class Vccs:
    """Those of all clients."""

    def __init__(
        self, segment: Atm, clients: Clients, pdus: Pdus, lines: Sequence[Uplink], messages: Sequence[Message]
    ) -> None:
        self.segment, self.lane, self.lines = segment, segment.lan_emulation, lines
        self._latency_ns = segment.by_port(segment.rx_latency)
        self.named: dict[tuple[int, int], list[int]] = {}
        """Client and peer: when LE_ARP responses named the peer."""
        self.queries: dict[tuple[int, int], list[int]] = {}
        """When a client was asked for READY_IND by a peer."""
        self.unanswered: dict[tuple[int, int], list[int]] = {}
        """Those of them that no READY_IND followed."""
        self._said: dict[tuple[int, int], list[Message]] = {}
        self._heard: dict[tuple[int, int], list[int]] = {}
        for each in messages:
            if not each.lost:
                self._note(each, clients)
        data = ~pdus.fate & ~pdus.control & (pdus.vci >= DATA_DIRECT)
        came = data & (pdus.direction == INBOUND)
        self._came = pdus.port[came], pdus.vci[came] - DATA_DIRECT, pdus.time_ns[came]
        self._data, self._vci = data, pdus.vci
        ports = range(len(lines))
        self._by_pair = {(one, two): self._of(one, two) for one in ports for two in ports if one < two}

    def _note(self, each: Message, clients: Clients) -> None:
        peer, at_ns = each.vci - DATA_DIRECT, each.at_ns + self._latency_ns[each.port]
        fields = each.fields
        if each.opcode == ARP + RESPONSE and not each.out and each.target_mac != BROADCAST and fields is not None:
            self.named.setdefault((each.port, clients.peer(fields.target_address)), []).append(at_ns)
        elif each.opcode == READY_QUERY and not each.out:
            self.queries.setdefault((each.port, peer), []).append(at_ns)
        elif each.opcode == READY_IND and each.out:
            self._said.setdefault((each.port, peer), []).append(each)
        elif each.opcode == READY_IND:
            self._heard.setdefault((each.port, peer), []).append(at_ns)

    def between(self, one: int, two: int) -> list[Vcc]:
        """In order of time."""
        return self._by_pair.get((min(one, two), max(one, two)), [])

    def ready(self, port: int, peer: int) -> list[Span]:
        """When each got ready at a port."""
        return [each.ready[port] for each in self.between(port, peer) if each.ready[port] != NEVER]

    def is_ready(self, port: int, peer: int, at_ns: int) -> bool:
        """Whether one was surely ready at a port."""
        known = self.between(port, peer)
        return any(each.ready[port][1] <= at_ns < each.released[0] - 2 * ROUNDING_NS for each in known)

    def sent(self, port: int, peer: int) -> Numbers:
        """Places on the line from a port, of data frames to a peer."""
        place = self.lines[port].place
        return np.flatnonzero(self._data[place] & (self._vci[place] == DATA_DIRECT + peer))

    def came(self, port: int, peer: int) -> Numbers:
        """When data frames from a peer came."""
        at, whose, time_ns = self._came
        return np.asarray(time_ns[(at == port) & (whose == peer)] + self._latency_ns[port])

    # ---- From call to release ----

    def _of(self, one: int, two: int) -> list[Vcc]:
        found: list[Vcc] = []
        for call in sorted(self._calls(one, two), key=lambda each: each.complete):
            # One that began before another was complete crosses that.
            crosses = found and call.complete[0] <= found[-1].complete[1] + self.lane.vc_setup
            if crosses and found[-1].called(call.message.port):
                found[-1].calls.append(call)
            else:
                found.append(Vcc(call.complete, [call]))
        uses = {port: self._uses(port, peer) for port, peer in ((one, two), (two, one))}
        for vcc, after in zip(found, [*found[1:], None][: len(found)], strict=True):
            end_ns = NEVER_NS if after is None else after.complete[0]
            released = []
            for port, peer in ((one, two), (two, one)):
                vcc.ready[port] = self._ready(vcc, port, peer, end_ns)
                released.append(self._released(vcc, port, uses[port], end_ns))
            low, high = (min(each[bound] for each in released) for bound in (0, 1))
            vcc.released = low, high
        return found

    def _calls(self, one: int, two: int) -> Iterator[Call]:
        """From READY_IND that answers no question."""
        for port, peer in ((one, two), (two, one)):
            line, asked = self.lines[port], list(self.queries.get((port, peer), []))
            named = sorted(at + self.lane.vc_setup for at in self.named.get((port, peer), []))
            for message in self._said.get((port, peer), []):
                answered = [at for at in asked if line.left_at(message.record, at)]
                if answered:
                    asked.remove(answered[0])
                    continue
                known = max((at for at in named if line.left_at(message.record, at)), default=None)
                yield Call(line.asked_between(message.record) if known is None else (known, known), message)
            self.unanswered[port, peer] = asked

    def _ready(self, vcc: Vcc, port: int, peer: int, end_ns: int) -> Span:
        """Who calls is ready when the call is complete, the other when it hears of that; NEVER: not before `end_ns`."""
        own = [call.complete for call in vcc.calls if call.message.port == port]
        heard = [at for at in self._heard.get((port, peer), []) if vcc.complete[0] <= at < end_ns]
        came = self.came(port, peer)
        place = int(np.searchsorted(came, vcc.complete[0]))
        first = [int(came[place])] if place < len(came) and came[place] < end_ns else []
        shown = [(at - ROUNDING_NS, at + ROUNDING_NS) for at in (*heard[:1], *first)]
        return min([*own, *shown], default=NEVER)

    def _uses(self, port: int, peer: int) -> tuple[Numbers, Numbers]:
        """Of a channel at one end, in order: the earliest and the latest instant of each frame."""
        line, places, came = self.lines[port], self.sent(port, peer), self.came(port, peer)
        low = np.concatenate([line.earliest_ns(places), came - ROUNDING_NS])
        high = np.concatenate([line.time_ns[places] - line.latency_ns + ROUNDING_NS, came + ROUNDING_NS])
        order = np.argsort(high, kind="stable")
        return np.maximum.accumulate(low[order]), high[order]

    def _released(self, vcc: Vcc, port: int, uses: tuple[Numbers, Numbers], end_ns: int) -> Span:
        """By the end at a port."""
        ready = vcc.ready[port]
        if ready == NEVER:
            asking_ns = C28_NS * (self.lane.retries + 2)
            return vcc.complete[0] + asking_ns, vcc.complete[1] + asking_ns
        low, high = uses
        which = slice(*np.searchsorted(high, [ready[0], end_ns]))
        low, high = np.append(ready[0], low[which]), np.append(ready[1], high[which])
        pauses = np.flatnonzero(low[1:] > high[:-1] + self.lane.vcc_time_out)
        last = int(pauses[0]) if len(pauses) else len(low) - 1
        return int(low[last]) + self.lane.vcc_time_out, int(high[last]) + self.lane.vcc_time_out
