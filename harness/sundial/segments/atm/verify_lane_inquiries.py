# SPDX-License-Identifier: Apache-2.0
"""When a client asks where a station is (af-lane-0021, clause 7): for a frame to an address of which nothing is known,
or what is known grows old; C20 later again, C13 times, if no answer comes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sundial.segments.atm.model import Atm
from sundial.segments.atm.verify_lane_fields import Problem
from sundial.segments.atm.verify_lane_messages import ARP, BROADCAST, NARP, RESPONSE, Message
from sundial.segments.atm.verify_lane_uplink import ROUNDING_NS, Uplink
from sundial.segments.atm.verify_lane_vccs import NEVER_NS, Span


def check_inquiries(
    segment: Atm, line: Uplink, messages: Sequence[Message], wanted: frozenset[int], end_ns: int | None
) -> Iterator[Problem]:
    """Of `messages` at one client; `wanted`: the addresses that it has sent or dropped frames to."""
    latency_ns = segment.by_port(segment.rx_latency)[line.number]
    asked: dict[int, list[Message]] = {}
    answered: dict[int, int] = {}
    moved: dict[int, list[int]] = {}
    for each in messages:
        fields = each.fields
        if fields is None or each.target_mac == BROADCAST:
            continue
        if each.opcode == ARP and each.out:
            asked.setdefault(each.target_mac, []).append(each)
        elif each.opcode == ARP + RESPONSE and not each.out:
            answered.setdefault(fields.transaction, each.at_ns + latency_ns)
        elif each.opcode == NARP:
            moved.setdefault(each.target_mac, []).append(each.at_ns)
    for mac, requests in asked.items():
        waits_ns = requests[0].at_ns + segment.lan_emulation.path_switching_delay
        if mac not in wanted and (end_ns is None or waits_ns < end_ns):
            yield requests[0], "target", "a station that there are frames for", "none"
        yield from _Inquiries(segment, line, requests, answered, moved.get(mac, []), end_ns).check()


class _Inquiries:
    """Of one address."""

    def __init__(
        self, segment: Atm, line: Uplink, requests: Sequence[Message], answered: dict[int, int],
        moved: Sequence[int], end_ns: int | None,
    ) -> None:  # fmt: skip
        self.lane, self.line, self.requests, self.end_ns = segment.lan_emulation, line, requests, end_ns
        self.answered, self.moved = answered, moved

    def check(self) -> Iterator[Problem]:
        """One request after the other."""
        lane, line = self.lane, self.line
        repetitions = 0
        due: Span | None = None
        for place, request in enumerate(self.requests):
            # One that is repeated was asked for when the time of the one before was over, whatever its line carried.
            low, high = line.asked_between(request.record)
            asked = (max(low, due[0]), min(high, due[1])) if due is not None else (low, high)
            fields = request.fields
            answer_ns = self.answered.get(fields.transaction if fields else 0, NEVER_NS)
            following = self.requests[place + 1] if place + 1 < len(self.requests) else None
            over = asked[0] + lane.le_arp_response_time, asked[1] + lane.le_arp_response_time
            again = following is not None and line.left_between(following.record, over)
            due = None
            if answer_ns <= over[0] or (answer_ns <= over[1] and not again):
                repetitions = 0
                yield from self._too_soon(answer_ns, following)
            elif any(asked[0] <= at <= over[1] for at in self.moved):
                repetitions = 0
            elif repetitions < lane.retries:
                repetitions += 1
                due = over
                yield from self._repeated(request, following, over, again=again)
            else:
                repetitions = 0
                if following is not None and line.asked_between(following.record)[1] < over[0] - ROUNDING_NS:
                    yield following, "time", f"not before {over[0]} ns", f"at {following.at_ns - line.latency_ns} ns"

    def _too_soon(self, answer_ns: int, following: Message | None) -> Iterator[Problem]:
        """What is known is believed for C17; asked again for only when little of that is left."""
        lane = self.lane
        asking_ns = min(lane.le_arp_response_time * (1 + lane.retries), lane.ageing // 2)
        old_ns = answer_ns + lane.ageing - asking_ns
        if following is None or self.line.asked_ns(self.line.at(following.record)) >= old_ns - 2 * ROUNDING_NS:
            return
        if not any(answer_ns <= at <= following.at_ns for at in self.moved):
            seen = f"at {following.at_ns - self.line.latency_ns} ns"
            yield following, "time", f"not before {old_ns} ns, when its answer is old", seen

    def _repeated(self, request: Message, following: Message | None, due: Span, *, again: bool) -> Iterator[Problem]:
        if following is not None:
            if not again:
                yield following, "time", f"again at {due[1]} ns", f"at {following.at_ns - self.line.latency_ns} ns"
        elif self.end_ns is not None and due[1] + self.line.latency_ns + self.lane.le_arp_response_time < self.end_ns:
            yield request, "repetition", f"again at {due[1]} ns, because no answer came", "none"
