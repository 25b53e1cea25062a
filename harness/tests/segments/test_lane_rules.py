# SPDX-License-Identifier: Apache-2.0
"""LAN emulation's rules against conversations written down by hand, and against what is wrong in them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sundial.segments.atm.verify_lane import check_lane, lec_ids
from sundial.segments.atm.verify_lane_fields import check_fields
from sundial.segments.atm.verify_lane_messages import Clients, Message
from sundial.segments.atm.verify_lines import NS
from sundial.segments.atm.verify_pdus import read_pdus
from sundial.segments.atm.verify_times import walk
from tests.segments.lane_tape import ASKED_NS, CELL_NS, READY_IND, WAY_NS, Lan, control, mac
from tests.segments.pdus import IN, OUT
from tests.segments.test_line_laws import segment

TWO = ["a:eth0", "b:eth0"]
THREE = ["a:eth0", "b:eth0", "x:e0"]
LATER = 10_000_000
FAR = bytes.fromhex("025344000009")
"""A station behind the device."""


def lan(ports: list[str] = TWO, relays: tuple[str, ...] = ()) -> Lan:
    made = Lan(ports, relays)
    made.join_all()
    return made


def check(made: Lan, folder: Path, end_ns: int | None = None, **lane: Any) -> list[tuple[str, str, str]]:
    written = segment("atm", made.ports, **({"lane": lane} if lane else {}))
    wire = made.wire(folder, end_ns)
    found = check_lane(written, wire, read_pdus(written, wire))
    return [(row["field"].removeprefix("wire/atm/elan.pdus.pcapng: "), row["expected"], row["seen"])
            for part in found for row in part.iter_rows(named=True)]  # fmt: skip


def test_services_answer_a_request_and_no_response_of_its_transaction(tmp_path: Path) -> None:
    made = Lan(TWO)
    request, answer = (control(opcode, 5, 2, mac(1), lan=b"\0\1" + mac(0)) for opcode in (6, 0x106))
    passed_on = control(0x106, 5, 1, mac(0), lan=b"\0\1" + mac(1))
    made.out(0, 1, 33, request)
    made.out(20_000, 1, 33, passed_on)
    made.came(WAY_NS, 1, 33, answer)
    made.came(WAY_NS + 1, 0, 33, passed_on)
    written = segment("atm", TWO)
    copies = walk(written, read_pdus(written, made.wire(tmp_path)), keep_cells=False).copies
    left = {int(copies.to[place]): int(copies.left.likely[place]) // NS for place in np.flatnonzero(copies.sender == 2)}
    assert left[1] == left[0] - 20_000


def whole() -> Lan:
    """Three clients join; one calls the other, both ways, and a station behind the device."""
    made = lan(THREE, ("x:e0",))
    at = made.first_frame(LATER, 0, 1)
    for name in range(5):
        at = made.data(at + 1_000, 0, mac(1), 1, name)
    # The other end has the channel, and has sent nothing by the BUS.
    answered = made.ask(at + 5_000, 1, mac(0))
    made.data(answered + 1, 1, mac(0), 0)
    at = answered + 10_000_000
    named = made.ask_proxies(at, 0, FAR, 2)
    made.data(at + ASKED_NS, 0, FAR)
    ready = made.flush(made.call(named, 0, 2) + CELL_NS, 0, 2)
    made.data(ready, 0, FAR, 2)
    made.data(ready + 50_000, 2, bytes.fromhex("ffffffffffff"))
    return made


def test_a_conversation_that_keeps_the_rules_passes(tmp_path: Path) -> None:
    assert check(whole(), tmp_path) == []


def test_lec_ids_are_those_of_the_responses(tmp_path: Path) -> None:
    made = whole()
    written = segment("atm", made.ports)
    wire = made.wire(tmp_path)
    assert lec_ids(written, wire, read_pdus(written, wire)).tolist() == [1, 2, 3]


def controls(made: Lan) -> list[int]:
    return [place for place, pdu in enumerate(made.tape.pdus) if pdu.sdu[:2] == b"\xff\0"]


def said(made: Lan) -> list[Message]:
    return [
        Message(place, pdu.interface, pdu.direction == OUT, False, pdu.vci, pdu.at, pdu.sdu)
        for place, pdu in sorted(enumerate(made.tape.pdus), key=lambda each: (each[1].at, each[0]))
        if pdu.sdu[:2] == b"\xff\0"
    ]


def test_each_octet_of_each_control_frame_is_looked_at() -> None:
    """In the marker it would be a frame of data. What a client asks LE_ARP for is its own choice, if all that follows
    repeats it."""
    made = whole()
    clients = Clients(tuple(int.from_bytes(mac(port)) for port in range(3)), (False, False, True), b"elan", 1)
    messages = said(made)
    assert list(check_fields(clients, messages)) == []
    kinds = {(message.opcode, message.out, message.vci): place for place, message in enumerate(messages)}
    for place in kinds.values():
        message = messages[place]
        for octet in range(2, len(message.octets)):
            octets = bytearray(message.octets)
            octets[octet] ^= 0x10
            others = [*messages[:place], replace(message, octets=bytes(octets)), *messages[place + 1 :]]
            assert list(check_fields(clients, others)), (octet, message)


def test_each_control_frame_that_is_missing_is_missed(tmp_path: Path) -> None:
    """But for what arrives of those that were sent, which the law of PDUs demands."""
    made = whole()
    for place in controls(made):
        pdu = made.tape.pdus[place]
        if pdu.direction == IN and (pdu.vci >= 34 or pdu.sdu == READY_IND):
            continue
        del made.tape.pdus[place]
        assert check(made, tmp_path), (place, pdu)
        made.tape.pdus.insert(place, pdu)


@pytest.mark.parametrize("by_ns", [-3_000_000, 3_000_000])
def test_each_request_answer_and_ready_has_its_instant(by_ns: int, tmp_path: Path) -> None:
    made = whole()
    for place in controls(made):
        pdu = made.tape.pdus[place]
        opcode = int.from_bytes(pdu.sdu[4:6])
        asks = opcode == 6 and pdu.vci == 33 and pdu.at >= LATER
        if pdu.direction == OUT and not asks:
            made.tape.pdus[place] = replace(pdu, at=max(pdu.at + by_ns, 0) if pdu.at + by_ns > 0 else pdu.at + 500_000)
            assert check(made, tmp_path), (place, pdu)
            made.tape.pdus[place] = pdu


def test_each_control_frame_is_there_once(tmp_path: Path) -> None:
    made = whole()
    for place in controls(made):
        pdu = made.tape.pdus[place]
        if len(pdu.sdu) > 6:
            made.tape.pdus.insert(place + 1, replace(pdu, at=pdu.at + 5_000))
            if not (pdu.direction == IN and pdu.vci in (34, 36)) or pdu.vci == 34:
                assert check(made, tmp_path), (place, pdu)
            made.tape.pdus.pop(place + 1)
