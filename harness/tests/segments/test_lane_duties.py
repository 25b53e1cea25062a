# SPDX-License-Identifier: Apache-2.0
"""What must be said though nothing follows from it: LEC IDs in turn, READY_IND after a call, no flush without need."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.segments.lane_tape import ASKED_NS, CELL_NS, READY_IND, WAY_NS, Lan, mac
from tests.segments.pdus import OUT
from tests.segments.test_lane_paths import SECOND_NS, whats
from tests.segments.test_lane_rules import LATER, TWO, check, lan

END_NS = 20 * SECOND_NS


def exchange_ids(made: Lan) -> None:
    """In all that bears them."""
    for place, pdu in enumerate(made.tape.pdus):
        begin = 12 if pdu.sdu[:2] == b"\xff\0" else 0
        requester = int.from_bytes(pdu.sdu[begin : begin + 2])
        if requester and len(pdu.sdu) > len(READY_IND):
            sdu = pdu.sdu[:begin] + (3 - requester).to_bytes(2, "big") + pdu.sdu[begin + 2 :]
            made.tape.pdus[place] = replace(pdu, sdu=sdu)


def test_lec_ids_in_another_order_than_the_requests_are_found(tmp_path: Path) -> None:
    made = lan()
    made.first_frame(LATER, 0, 1)
    assert check(made, tmp_path) == []
    exchange_ids(made)
    assert whats(check(made, tmp_path)) == {"LE_JOIN_RESPONSE LEC ID"}


def test_of_requests_at_one_instant_either_may_be_the_first(tmp_path: Path) -> None:
    made = Lan(TWO)
    made.join(0, at=1000)
    made.join(1, at=1000)
    exchange_ids(made)
    assert "LE_JOIN_RESPONSE LEC ID" not in whats(check(made, tmp_path))


def both_call(made: Lan, apart_ns: int) -> None:
    """Each learns of the other, the second so much later, and has a channel 2 ms after that."""
    named = []
    for port, at in ((0, LATER), (1, LATER + apart_ns)):
        named.append(made.ask(at, port, mac(1 - port)))
        made.data(at + ASKED_NS, port, mac(1 - port))
    for port in (0, 1):
        made.call(named[port], port, 1 - port)


@pytest.mark.parametrize(("apart_ns", "found"), [(300_000, True), (1_999_990, True), (2_000_010, False)])
def test_who_has_called_says_so_though_the_channel_is_there(apart_ns: int, found: bool, tmp_path: Path) -> None:
    made = lan()
    both_call(made, apart_ns)
    said = [pdu for pdu in made.tape.pdus if pdu.sdu == READY_IND and (pdu.interface, pdu.direction) == (1, OUT)]
    silent = [pdu for pdu in made.tape.pdus if pdu.sdu == READY_IND and pdu.at in (said[0].at, said[0].at + WAY_NS)]
    made.tape.pdus = [pdu for pdu in made.tape.pdus if pdu not in silent]
    # A client that is called before it learns of the other does not call.
    assert ("LE_ARP_RESPONSE call" in whats(check(made, tmp_path, END_NS))) == found


@pytest.mark.parametrize(("after_ns", "found"), [(SECOND_NS, True), (5 * SECOND_NS, False)])
def test_a_channel_is_flushed_when_it_is_left(after_ns: int, found: bool, tmp_path: Path) -> None:
    made = lan()
    at = made.first_frame(LATER, 0, 1)
    made.data(at, 0, mac(1), 1)
    # After 4 s what the client knows is too old, and its next frame goes by the BUS.
    made.flush(LATER + after_ns, 0, 1, vci=65)
    assert ("LE_FLUSH_REQUEST time" in whats(check(made, tmp_path, ageing="4 s"))) == found


def test_a_channel_is_flushed_when_a_station_has_moved(tmp_path: Path) -> None:
    made = lan()
    made.data(made.first_frame(LATER, 0, 1), 0, mac(1), 1)
    asked = LATER + SECOND_NS
    answered = made.ask(asked, 0, mac(1), answer=bytes.fromhex("47000580ffe1") + bytes(7) + mac(0) + b"\0")
    made.flush(answered + CELL_NS, 0, 1, vci=65)
    assert "LE_FLUSH_REQUEST time" not in whats(check(made, tmp_path))
