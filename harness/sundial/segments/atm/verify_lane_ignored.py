# SPDX-License-Identifier: Apache-2.0
"""Control frames of LAN emulation that no client waits for any more, which are counted where they end: answers that
come too late, or after their purpose is over, and questions that cannot be answered."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sundial.segments.atm.model import Atm
from sundial.segments.atm.verify_lane_answers import unanswerable
from sundial.segments.atm.verify_lane_join import Joining
from sundial.segments.atm.verify_lane_messages import (
    ARP,
    BROADCAST,
    CONFIGURE,
    FLUSH,
    JOIN,
    NARP,
    RESPONSE,
    Message,
    clients_of,
    read_messages,
)
from sundial.segments.atm.verify_lane_uplink import ROUNDING_NS, Uplink, uplink
from sundial.segments.atm.verify_pdus import Pdus
from sundial.verify.law import Bounds
from sundial.verify.wire import Wire


def ignored(segment: Atm, wire: Wire, pdus: Pdus) -> list[Bounds]:
    """By port, as many as were surely and as many as may have been."""
    control, clients = read_messages(pdus), clients_of(segment, wire)
    lines = [uplink(segment, pdus, number) for number in range(len(segment.ports))]
    if segment.lan_emulation.resolution == "static":
        return [(0, 0) for _ in lines]
    at_services = unanswerable(segment, clients, control, lines, wire.end_ns)
    found = []
    for line, (least, most) in zip(lines, at_services, strict=True):
        own = [each for each in control if each.port == line.number and not each.lost]
        joining = Joining(segment, line, own, wire.end_ns)
        list(joining.check())
        waits = [_waits(segment, line, pdus, own, joining, each) for each in own if not each.out]
        found.append((least + waits.count((False,)), most + sum(False in each for each in waits)))
    return found


def _waits(
    segment: Atm, line: Uplink, pdus: Pdus, own: Sequence[Message], joining: Joining, answer: Message
) -> tuple[bool, ...]:
    """Whether a client waits for what came; both where the captures do not tell."""
    fields, lane = answer.fields, segment.lan_emulation
    if fields is None or answer.opcode < RESPONSE:
        return (True,)
    request = answer.opcode - RESPONSE
    if request in (CONFIGURE, JOIN) or (request == ARP and answer.target_mac == BROADCAST):
        return ((request, fields.transaction) in joining.accepted,)
    asked = next((each for each in own if each.out and each.opcode == request
                  and each.fields is not None and each.fields.transaction == fields.transaction), None)  # fmt: skip
    if asked is None:
        return (True, False)
    at_ns = answer.at_ns + segment.by_port(segment.rx_latency)[line.number]
    patience_ns = lane.le_arp_response_time if request == ARP else lane.flush_time_out
    low, high = line.asked_between(asked.record)
    if at_ns > high + patience_ns + ROUNDING_NS:
        return (False,)
    unclear = at_ns >= low + patience_ns - ROUNDING_NS
    if request == ARP:
        unclear |= any(each.opcode == NARP and each.target_mac == asked.target_mac
                       and asked.at_ns <= each.at_ns <= answer.at_ns for each in own)  # fmt: skip
    elif request == FLUSH:
        # A frame behind it on the old path, and C22 after the last one before it, make it needless.
        data = np.flatnonzero(~pdus.control[line.place] & (pdus.vci[line.place] == asked.vci))
        before = data[line.record[data] < asked.record]
        earliest = line.earliest_ns(before[-1:])
        unclear |= bool((earliest + lane.path_switching_delay <= at_ns).any())
        times = line.time_ns[data]
        unclear |= bool(((times >= asked.at_ns) & (times <= answer.at_ns)).any())
    return (True, False) if unclear else (True,)
