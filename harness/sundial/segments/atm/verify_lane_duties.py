# SPDX-License-Identifier: Apache-2.0
"""What LAN emulation clients and the LES must do, though nothing follows from it: give LEC IDs in turn, say READY_IND
after a call of one's own, and flush a data direct channel only when it is left (af-lane-0021, clauses 5, 8 and 9)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sundial.expect.atm import UNITS_PER_PS
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
from sundial.segments.atm.verify_lane_paths import Known, known_of
from sundial.segments.atm.verify_lane_uplink import ROUNDING_NS, Uplink

_CONTROL_CELLS = 3
_NS = 1000 * UNITS_PER_PS
_WAIT_NS = 100_000_000
"""So long a control frame waits for its line at the very most."""
NEVER_NS = 1 << 62


def check_duties(
    segment: Atm, clients: Clients, told: Sequence[Message], lines: Sequence[Uplink], end_ns: int | None
) -> Iterator[Problem]:
    """Of all clients of an emulated LAN with LE_ARP."""
    yield from _turns(segment, told)
    named = _named(segment, clients, told)
    for line in lines:
        own = [each for each in told if each.port == line.number and not each.lost]
        for (number, peer), at_ns in named.items():
            if number == line.number and peer >= 0 and peer != number:
                yield from _called(segment, line, own, peer, at_ns, named.get((peer, number), NEVER_NS), end_ns)
        yield from _needless(segment, clients, line, own)


def _turns(segment: Atm, told: Sequence[Message]) -> Iterator[Problem]:
    """The LES gives LEC IDs from 1 on, as requests to join reach it: in the order in which their last cells join the
    queue in front of it. Where some were lost, or delays vary, that is not known."""
    if segment.cdv or any(each.lost and (each.opcode == JOIN or not each.whole) for each in told):
        return
    propagation_ns = segment.by_port(segment.propagation)
    reached: dict[int, int] = {}
    given: dict[int, Message] = {}
    for each in told:
        if each.opcode == JOIN and each.out:
            cells_ns = _CONTROL_CELLS * segment.cell_time_units(segment.ports[each.port]) // _NS
            reached.setdefault(each.port, each.at_ns + cells_ns + propagation_ns[each.port])
        elif each.opcode == JOIN + RESPONSE and not each.out and each.fields is not None:
            given.setdefault(each.port, each)
    for port, response in given.items():
        at_ns = reached.get(port)
        others = [other_ns for other, other_ns in reached.items() if other != port]
        if at_ns is None or response.fields is None or any(abs(at_ns - other) <= 2 * ROUNDING_NS for other in others):
            continue
        turn = 1 + sum(other_ns < at_ns for other_ns in others)
        if response.fields.requester != turn:
            yield response, "LEC ID", f"{turn}, in the order of requests", str(response.fields.requester)


def _named(segment: Atm, clients: Clients, told: Sequence[Message]) -> dict[tuple[int, int], int]:
    """When an LE_ARP_RESPONSE first named another client to each, if it was not too late to be believed."""
    found: dict[tuple[int, int], int] = {}
    asked: dict[tuple[int, int], Message] = {}
    latency_ns = segment.by_port(segment.rx_latency)
    for each in told:
        fields = each.fields
        if fields is None or each.lost or each.target_mac == BROADCAST:
            continue
        if each.opcode == ARP and each.out:
            asked[each.port, each.target_mac] = each
        elif each.opcode == ARP + RESPONSE and not each.out:
            at_ns, last = each.at_ns + latency_ns[each.port], asked.get((each.port, each.target_mac))
            believed = (
                last is not None
                and last.fields is not None
                and last.fields.transaction == fields.transaction
                and at_ns < last.at_ns + segment.lan_emulation.le_arp_response_time
            )
            # What was not believed leaves open whether the next answer finds a channel.
            found.setdefault((each.port, clients.peer(fields.target_address)), at_ns if believed else NEVER_NS)
    return found


def _called(
    segment: Atm, line: Uplink, own: Sequence[Message], peer: int, named_ns: int, other_ns: int, end_ns: int | None
) -> Iterator[Problem]:
    """Who is told of another client, and has not been called by it before, calls it, and says when that is complete."""
    due_ns = named_ns + segment.lan_emulation.vc_setup
    was_called = other_ns + segment.lan_emulation.vc_setup <= named_ns + ROUNDING_NS
    if named_ns == NEVER_NS or was_called or (end_ns is not None and due_ns + _WAIT_NS >= end_ns):
        return
    vci = DATA_DIRECT + peer
    said = [each for each in own if each.out and each.opcode == READY_IND and each.vci == vci]
    if not any(line.left_at(each.record, due_ns) for each in said):
        latency_ns = segment.by_port(segment.rx_latency)[line.number]
        answer = next(each for each in own if not each.out and each.at_ns + latency_ns == named_ns)
        yield answer, "call", f"{NAMES[READY_IND]} of this client on {vci} at {due_ns} ns", "none"


def _needless(segment: Atm, clients: Clients, line: Uplink, own: Sequence[Message]) -> Iterator[Problem]:
    """A data direct channel is flushed when a station that was behind it is believed elsewhere, or nowhere."""
    latency_ns = segment.by_port(segment.rx_latency)[line.number]
    known = known_of(clients, own, line.number, latency_ns)
    for each in own:
        if not each.out or each.opcode != FLUSH or each.vci < DATA_DIRECT:
            continue
        at_ns = line.asked_ns(line.at(each.record)) + ROUNDING_NS
        moved = any(other.opcode == NARP and other.at_ns <= at_ns for other in own)
        peer, ageing_ns = each.vci - DATA_DIRECT, segment.lan_emulation.ageing
        if not moved and not any(_left(station, peer, at_ns, ageing_ns) for station in known.values()):
            expected = f"none while its stations are behind {each.vci}"
            yield each, "time", expected, f"{NAMES[FLUSH]} on {each.vci} at {at_ns - ROUNDING_NS} ns"


def _left(station: Known, peer: int, at_ns: int, ageing_ns: int) -> bool:
    """Whether a station was known behind a client, and at an instant no longer is."""
    told = [(heard, where) for heard, where in zip(station.at_ns, station.peer, strict=True) if heard <= at_ns]
    return any(where == peer for _, where in told) and (told[-1][1] != peer or told[-1][0] + ageing_ns <= at_ns)
