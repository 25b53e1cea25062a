# SPDX-License-Identifier: Apache-2.0
"""How a client becomes a member of the emulated LAN, step by step and in time (af-lane-0021, clauses 5 and 7.1): it
asks the LECS for its configuration, joins at the LES, and asks that for the address of the BUS.

Client k begins k microseconds after the first. Each request follows the answer to the one before at once; without an
answer it is repeated C13 times, and then all starts again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sundial.segments.atm.model import Atm
from sundial.segments.atm.verify_lane_fields import Problem
from sundial.segments.atm.verify_lane_messages import ARP, BROADCAST, CONFIGURE, JOIN, NAMES, RESPONSE, Message
from sundial.segments.atm.verify_lane_uplink import Uplink

STAGGER_NS = 1000
NEVER_NS = 1 << 62

_STEPS = (CONFIGURE, JOIN, ARP)


def is_joining(message: Message) -> bool:
    """Whether a frame that a client sent belongs to its joining."""
    return message.opcode in (CONFIGURE, JOIN) or (message.opcode == ARP and message.target_mac == BROADCAST)


class Joining:
    """One client. `member_ns`: when it knew the BUS; NEVER_NS: it never did."""

    def __init__(self, segment: Atm, line: Uplink, messages: Sequence[Message], end_ns: int | None) -> None:
        self.lane, self.line, self.end_ns = segment.lan_emulation, line, end_ns
        self.asked = [each for each in messages if each.out and is_joining(each)]
        latency_ns = segment.by_port(segment.rx_latency)[line.number]
        self.answers = {
            (each.opcode - RESPONSE, each.fields.transaction): each.at_ns + latency_ns
            for each in reversed([one for one in messages if not one.out and one.opcode >= RESPONSE])
            if each.fields is not None
        }
        self.member_ns = NEVER_NS
        self.accepted: set[tuple[int, int]] = set()
        """Requests, by opcode and transaction, whose answers came in time."""

    def check(self) -> Iterator[Problem]:
        """Problems, and sets `member_ns` and `accepted`."""
        at_ns, step, left = STAGGER_NS * self.line.number, 0, self.lane.retries
        for message in self.asked:
            if message.opcode != _STEPS[step]:
                yield message, "step", NAMES[_STEPS[step]], NAMES[message.opcode]
                return
            if not self.line.left_at(message.record, at_ns):
                seen = message.at_ns - self.line.latency_ns
                yield message, "time", f"asked at {at_ns} ns", f"at {seen} ns"
                return
            patience = self.lane.le_arp_response_time if message.opcode == ARP else self.lane.control_time_out
            fields = message.fields
            answered_ns = self.answers.get((message.opcode, fields.transaction if fields else 0), NEVER_NS)
            if answered_ns <= at_ns + patience:
                self.accepted.add((message.opcode, fields.transaction if fields else 0))
                at_ns, step, left = answered_ns, step + 1, self.lane.retries
                if step == len(_STEPS):
                    self.member_ns = at_ns
                    break
            else:
                at_ns += patience
                step, left = (step, left - 1) if left else (0, self.lane.retries)
        yield from self._missing(at_ns, step)

    def _missing(self, at_ns: int, step: int) -> Iterator[Problem]:
        """What was never asked, or asked once more."""
        if step == len(_STEPS):
            behind = [each for each in self.asked if each.at_ns > self.member_ns + self.line.latency_ns]
            for message in behind[:1]:
                yield message, "step", "none: the client is a member", NAMES[message.opcode]
        elif self.end_ns is not None and at_ns + self.line.latency_ns < self.end_ns:
            busy = self.line.time_ns[-1:] >= at_ns
            last = self.asked[-1] if self.asked else None
            if last is not None and not busy.any():
                yield last, "step", f"{NAMES[_STEPS[step]]} at {at_ns} ns", "no further request"
