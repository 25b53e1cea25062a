# SPDX-License-Identifier: Apache-2.0
"""What LAN emulation clients and the LES must do, though nothing follows from it: give LEC IDs in turn, send READY_IND
after each of their calls, and flush a data direct channel only when they leave it (af-lane-0021, clauses 5, 8, 9)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from sundial.expect.atm import CELL_OCTETS, UNITS_PER_PS, UNITS_PER_S
from sundial.segments.atm.model import Atm
from sundial.segments.atm.verify_channels import DATA_DIRECT
from sundial.segments.atm.verify_lane_fields import Problem
from sundial.segments.atm.verify_lane_messages import (
    ARP,
    BROADCAST,
    FLUSH,
    JOIN,
    NAMES,
    NARP,
    READY_IND,
    RESPONSE,
    Clients,
    Message,
)
from sundial.segments.atm.verify_lane_uplink import ROUNDING_NS, Uplink
from sundial.segments.atm.verify_lane_vccs import NEVER_NS

_CONTROL_CELLS = 3
_NS = 1000 * UNITS_PER_PS
_WAIT_NS = 100_000_000
"""So long a control frame waits for its line at the very most."""

Answers = dict[int, list[tuple[int, int | None]]]
"""By the MAC address that a client asked for: when an answer came, and the port of the client that it names; None: it
came too late to be believed."""


def check_duties(
    segment: Atm, clients: Clients, messages: Sequence[Message], lines: Sequence[Uplink], end_ns: int | None
) -> Iterator[Problem]:
    """Of all clients of an emulated LAN with LE_ARP."""
    yield from _turns(segment, messages)
    at_ports = [[each for each in messages if each.port == line.number and not each.lost] for line in lines]
    answers = [_answers(segment, clients, own, line.number) for own, line in zip(at_ports, lines, strict=True)]
    for line, own, heard in zip(lines, at_ports, answers, strict=True):
        for peer in range(len(lines)):
            if peer != line.number:
                named_ns, other_ns = _first(heard, peer), _first(answers[peer], line.number)
                yield from _called(segment, line, own, peer, named_ns, other_ns, end_ns)
        yield from _needless(segment, line, own, heard)


def _turns(segment: Atm, messages: Sequence[Message]) -> Iterator[Problem]:
    """The LES gives LEC IDs from 1 on, as requests to join reach it: in the order in which their last cells join the
    queue in front of it. Where some were lost, or delays vary, that is not known."""
    if segment.cdv or any(each.lost and (each.opcode == JOIN or not each.whole) for each in messages):
        return
    reached: dict[int, int] = {}
    given: dict[int, Message] = {}
    for each in messages:
        if each.opcode == JOIN and each.out:
            reached.setdefault(each.port, each.at_ns + _way_ns(segment, each.port))
        elif each.opcode == JOIN + RESPONSE and not each.out:
            given.setdefault(each.port, each)
    for port, response in given.items():
        fields, at_ns = response.fields, reached.get(port)
        others = [other_ns for other, other_ns in reached.items() if other != port]
        if fields is None or at_ns is None or any(abs(at_ns - other) <= 2 * ROUNDING_NS for other in others):
            continue
        turn = 1 + sum(other_ns < at_ns for other_ns in others)
        if fields.requester != turn:
            yield response, "LEC ID", f"{turn}, in the order of requests", str(fields.requester)


def _way_ns(segment: Atm, port: int) -> int:
    """From the first bit of a control frame to its last at the switch."""
    name = segment.ports[port]
    cell, shaped = segment.cell_time_units(name), segment.shaping_bps(name)
    spacing = max(cell, CELL_OCTETS * 8 * UNITS_PER_S // shaped) if shaped else cell
    return ((_CONTROL_CELLS - 1) * spacing + cell) // _NS + segment.by_port(segment.propagation)[port]


def _answers(segment: Atm, clients: Clients, own: Sequence[Message], number: int) -> Answers:
    """The LE_ARP answers to one client. It believes an answer to its last question within C20."""
    found: Answers = defaultdict(list)
    asked: dict[int, Message] = {}
    latency_ns = segment.by_port(segment.rx_latency)[number]
    for each in own:
        fields = each.fields
        if fields is None or each.target_mac == BROADCAST:
            continue
        if each.opcode == ARP and each.out:
            asked[each.target_mac] = each
        elif each.opcode == ARP + RESPONSE and not each.out:
            at_ns, last = each.at_ns + latency_ns, asked.get(each.target_mac)
            answers = last is not None and last.fields is not None and last.fields.transaction == fields.transaction
            in_time = last is not None and at_ns < last.at_ns + segment.lan_emulation.le_arp_response_time
            found[each.target_mac].append((at_ns, clients.peer(fields.target_address) if answers and in_time else None))
    return found


def _first(answers: Answers, peer: int) -> int | None:
    """When a client first learnt of another; NEVER_NS: it did not. None: something before was not believed."""
    named = sorted((at_ns, -1 if where is None else where) for each in answers.values() for at_ns, where in each)
    first = next(((at_ns, where) for at_ns, where in named if where in (-1, peer)), (NEVER_NS, peer))
    return first[0] if first[1] == peer else None


def _called(
    segment: Atm,
    line: Uplink,
    own: Sequence[Message],
    peer: int,
    named_ns: int | None,
    other_ns: int | None,
    end_ns: int | None,
) -> Iterator[Problem]:
    """A client that learns of another, and was not called by it before, calls it, and reports when that is complete."""
    if named_ns is None or other_ns is None or named_ns == NEVER_NS:
        return
    due_ns = named_ns + segment.lan_emulation.vc_setup
    was_called = other_ns + segment.lan_emulation.vc_setup <= named_ns + ROUNDING_NS
    if was_called or (end_ns is not None and due_ns + _WAIT_NS >= end_ns):
        return
    vci = DATA_DIRECT + peer
    said = [each for each in own if each.out and each.opcode == READY_IND and each.vci == vci]
    if not any(line.left_at(each.record, due_ns) for each in said):
        latency_ns = segment.by_port(segment.rx_latency)[line.number]
        answer = next(each for each in own if not each.out and each.at_ns + latency_ns == named_ns)
        yield answer, "call", f"{NAMES[READY_IND]} of this client on {vci} at {due_ns} ns", "none"


def _needless(segment: Atm, line: Uplink, own: Sequence[Message], answers: Answers) -> Iterator[Problem]:
    """A data direct channel is flushed when a station that was behind it is believed elsewhere, or nowhere."""
    for each in own:
        if not each.out or each.opcode != FLUSH or each.vci < DATA_DIRECT:
            continue
        at_ns = line.asked_ns(line.at(each.record)) + ROUNDING_NS
        moved = any(other.opcode == NARP and other.at_ns <= at_ns for other in own)
        peer, ageing_ns = each.vci - DATA_DIRECT, segment.lan_emulation.ageing
        if not moved and not any(_left(each, peer, at_ns, ageing_ns) for each in answers.values()):
            expected = f"none while its stations are behind {each.vci}"
            yield each, "time", expected, f"{NAMES[FLUSH]} on {each.vci} at {at_ns - ROUNDING_NS} ns"


def _left(answers: Sequence[tuple[int, int | None]], peer: int, at_ns: int, ageing_ns: int) -> bool:
    """Whether a station was believed behind a client, and at an instant no longer is."""
    believed = [(heard, where) for heard, where in answers if where is not None and heard <= at_ns]
    if all(where != peer for _, where in believed):
        return False
    heard, where = believed[-1]
    return where != peer or heard + ageing_ns <= at_ns
