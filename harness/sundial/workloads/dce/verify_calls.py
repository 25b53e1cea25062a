# SPDX-License-Identifier: Apache-2.0
"""What was seen of each call: its packets, when it was on the wire, and why its fragments went again."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sundial.expect.ip import udp_packets
from sundial.verify.findings import Finding
from sundial.workloads.dce.expect_pdu import HEADER, Flags, Pdu, Type
from sundial.workloads.dce.verify_client import WORK_NS, Call
from sundial.workloads.dce.verify_datagrams import Datagram
from sundial.workloads.dce.verify_message import words
from sundial.workloads.dce.verify_names import Activity
from sundial.workloads.dce.verify_stream import Settings

REQUEST, RESPONSE = (Type.REQUEST,), (Type.RESPONSE, Type.FAULT)


@dataclass
class Exchange:
    """All datagrams of one call, in the order of their time; those that were sent by what they are."""

    sent: list[tuple[Datagram, Pdu]] = field(default_factory=list)
    arrived: list[tuple[Datagram, Pdu]] = field(default_factory=list)

    def without(self, not_taken: Collection[int]) -> Exchange:
        """Without requests that came at these times: their server did not take them."""
        arrived = [each for each in self.arrived if each[1].type != Type.REQUEST or each[0].whole_ns not in not_taken]
        return Exchange(self.sent, arrived) if not_taken else self

    def first(self, kinds: Sequence[Type]) -> dict[int, Datagram]:
        """The first transmission of each fragment."""
        found: dict[int, Datagram] = {}
        for each, pdu in self.sent:
            if pdu.type in kinds:
                found.setdefault(pdu.fragment, each)
        return found

    def again(self, kinds: Sequence[Type]) -> list[tuple[Datagram, Pdu]]:
        """Transmissions beyond them."""
        seen: set[int] = set()
        found = []
        for each, pdu in self.sent:
            if pdu.type in kinds and pdu.fragment in seen:
                found.append((each, pdu))
            elif pdu.type in kinds:
                seen.add(pdu.fragment)
        return found

    def whole_ns(self, kinds: Sequence[Type]) -> int | None:
        """When the last of its fragments came that was not there before."""
        first: dict[int, int] = {}
        end: int | None = None
        for each, pdu in self.arrived:
            if pdu.type in kinds:
                first.setdefault(pdu.fragment, each.whole_ns)
                end = pdu.fragment if pdu.last else end
        if end is None or not set(range(end + 1)) <= first.keys():
            return None
        return max(first[number] for number in range(end + 1))


def observed(call: Call, activity: Activity, exchange: Exchange, mtus: tuple[int, int]) -> dict[str, Any]:
    """A row of `workload.OBSERVED`. `mtus`: of the client's port and of the server's."""
    row: dict[str, Any] = {"call": call.id, "transport": "udp"}
    sides = (("request", "call", REQUEST, call.sizes[0], mtus[0]), ("reply", "reply", RESPONSE, call.sizes[1], mtus[1]))
    for way, stamp, kinds, size, mtu in sides:
        first = exchange.first(kinds)
        counts = [len(each.layout) for each in first.values()]
        # A maybe call has no response; whether all of its request waited for ARP says the replay.
        silent = bool(call.semantics & Flags.MAYBE) and (way == "reply" or not first)
        packets = [len(udp_packets(HEADER + body, mtu)) for body in activity.settings.bodies(size)]
        packets = [] if silent else packets
        row |= {
            f"{stamp}_first_tx_ns": min((each.at_ns for each in first.values()), default=None),
            f"{stamp}_last_rx_ns": exchange.whole_ns(kinds),
            f"{way}_packets": sum(counts),
            f"{way}_packets_expected": sum(packets),
            f"{way}_fragments": sum(count for count in counts if count > 1),
            f"{way}_fragments_expected": sum(count for count in packets if count > 1),
            f"{way}_retransmissions": len(exchange.again(kinds)),
        }
    return row


def check_packets(row: Mapping[str, Any], ok: bool) -> Iterator[Finding]:
    """A call that succeeded has all of its packets."""
    for way in ("request", "reply"):
        expected, seen = row[f"{way}_packets_expected"], row[f"{way}_packets"]
        if ok and expected != seen:
            yield Finding(row["call"], f"{way}.packets", str(expected), str(seen))


def uncaused(call: Call, exchange: Exchange, later: Exchange, settings: Settings) -> Iterator[Finding]:
    """Fragments that were sent again though all that the two sides of the call had sent by then had come, in order.

    `exchange`: without what its server did not take. `later`: of the next call of the activity, whose request
    acknowledges this one: it may have been lost, too. A ping that crosses the response asks for it. A server whose
    clients acknowledge later than it sends again needs no other cause, nor one whose response was under way for long.
    """
    for way, kinds in (("request", REQUEST), ("reply", RESPONSE)):
        hasty = way == "reply" and settings.resend_ns <= settings.ack_delay_ns
        for each, pdu in exchange.again(kinds) if not hasty else ():
            asked = way == "reply" and (
                _disturbed(later, each.at_ns)
                or _crossed(exchange, each.at_ns)
                or _not_acknowledged(exchange, later, each.at_ns, settings)
            )
            if not asked and not _disturbed(exchange, each.at_ns):
                seen = f"{words(pdu)}, when all had come"
                yield Finding(
                    call.id, f"{way}.retransmissions", "a loss, a drop or an overtaking before", seen, each.rows
                )


def _not_acknowledged(exchange: Exchange, later: Exchange, at_ns: int, settings: Settings) -> bool:
    """Whether a server has sent its response for so long that it sends it again, and its client has not acknowledged it
    yet, or only in the server's present turn: it has to so long after all of it has come (C706 chapter 10), which the
    replay of the client checks."""
    left = [each.at_ns for each, pdu in exchange.sent if pdu.type in RESPONSE]
    replies = [each for each, pdu in exchange.sent if pdu.type == Type.ACK]
    replies += [each for each, pdu in later.sent if pdu.type == Type.REQUEST]
    is_due = bool(left) and at_ns - left[0] >= settings.resend_ns
    return is_due and all(each.at_ns >= at_ns - WORK_NS for each in replies)


def _crossed(exchange: Exchange, at_ns: int) -> bool:
    """Whether more pings had come by then than the server has answered with working or nocall: it read one in state
    `final`, and answers it with the response (C706 chapter 10). The pings must have left before the response came."""
    came_ns = exchange.whole_ns(RESPONSE)
    left = [each for each, pdu in exchange.sent if pdu.type == Type.PING and (came_ns is None or each.at_ns < came_ns)]
    came = [each for each, pdu in exchange.arrived if pdu.type == Type.PING and each.whole_ns < at_ns]
    answered = sum(pdu.type in (Type.WORKING, Type.NOCALL) and each.at_ns < at_ns for each, pdu in exchange.sent)
    return min(len(left), len(came)) > answered


def _disturbed(exchange: Exchange, at_ns: int) -> bool:
    """Whether something that was sent before had not come by then, or not once and in order."""
    for machine, end in {(each.machine, each.source) for each, _ in exchange.sent}:
        sent = [each.data for each, _ in exchange.sent if each.source == end and each.at_ns < at_ns]
        others = (each for each, _ in exchange.arrived if each.machine != machine or each.source == end)
        came = [each.data for each in others if each.whole_ns < at_ns]
        if sent != came:
            return True
    return False
