# SPDX-License-Identifier: Apache-2.0
"""LAN emulation where cells of its control frames are lost: what is repeated, asked and released, and when."""

from __future__ import annotations

from pathlib import Path

import pytest

from sundial.segments.atm.verify_lane_ignored import ignored
from sundial.segments.atm.verify_pdus import read_pdus
from tests.fates import cells
from tests.segments.lane_tape import (
    ASKED_NS,
    CELL_NS,
    READY_IND,
    READY_QUERY,
    SERVICE_NS,
    SETUP_NS,
    WAY_NS,
    Lan,
    atm,
    control,
    mac,
)
from tests.segments.pdus import IN
from tests.segments.test_lane_paths import C20_NS, C21_NS, whats
from tests.segments.test_lane_rules import LATER, check, lan
from tests.segments.test_line_laws import segment

C12_NS, C28_NS = 1200 * 10**9, 4 * 10**9
TWO_CELLS_NS = 5663
"""Of OC-3c, rounded up."""


def lose(made: Lan, at: int, vci: int, sdu: bytes, towards: str) -> None:
    """On the fate interface."""
    comment = cells(1, -(-(len(sdu) + 8) // 48), "cell loss", "towards", towards)
    made.tape.pdu(at, len(made.ports), 0, vci, sdu, comment=comment, lctr=1, bad=True)


def flush_in_vain(made: Lan, at: int, port: int, peer: int) -> None:
    """The answer is lost on its way to the LES."""
    there = made.flush(at, port, peer, answered=False)
    request = control(7, made.last[port], port + 1, mac(port), lan=bytes(8), to=atm(mac(peer)))
    answer = request[:4] + b"\1\7" + request[6:]
    made.out(there, peer, 33, answer)
    lose(made, there + 50_000, 33, answer, "service")


def asked(made: Lan) -> int:
    """A first frame, which makes a client call; when the call is complete."""
    answered = made.ask(LATER, 0, mac(1))
    made.data(LATER + ASKED_NS, 0, mac(1))
    return made.call(answered, 0, 1)


@pytest.mark.parametrize(("again_ns", "found"), [(C21_NS, False), (C21_NS + CELL_NS, True), (C21_NS - 10_000, True)])
def test_c21_counts_from_when_a_flush_was_wanted(again_ns: int, found: bool, tmp_path: Path) -> None:
    """The first leaves a cell behind READY_IND, the next finds its line idle."""
    made = lan()
    ready = asked(made)
    flush_in_vain(made, ready + CELL_NS, 0, 1)
    made.flush(ready + again_ns, 0, 1)
    assert ("LE_FLUSH_REQUEST time" in whats(check(made, tmp_path))) == found


def test_a_flush_is_not_repeated_that_was_answered(tmp_path: Path) -> None:
    made = lan()
    ready = asked(made)
    made.flush(ready + CELL_NS, 0, 1)
    made.flush(ready + C21_NS, 0, 1)
    assert "LE_FLUSH_REQUEST time" in whats(check(made, tmp_path))


def lost_ready() -> tuple[Lan, int]:
    """READY_IND does not come, so who was called does not know that it may send; when the call was complete."""
    made = lan()
    answered = made.ask(LATER, 0, mac(1))
    made.data(LATER + ASKED_NS, 0, mac(1))
    ready = answered + SETUP_NS
    made.out(ready, 0, 65, READY_IND)
    lose(made, ready + 50_000, 65, READY_IND, "b:eth0")
    flushed = made.flush(ready + CELL_NS, 0, 1)
    return made, flushed


def test_the_first_frame_shows_a_caller_whose_ready_ind_was_lost(tmp_path: Path) -> None:
    """The other end has sent one by the BUS meanwhile, and flushes as soon as it knows of the channel."""
    for early_ns, found in ((0, False), (1_000_000, True)):
        made, flushed = lost_ready()
        answered = made.ask(flushed + 1_000_000, 1, mac(0))
        made.data(flushed + 1_000_000 + ASKED_NS, 1, mac(0))
        came = made.data(answered + 2_000_000, 0, mac(1), 1)
        made.flush(came - early_ns, 1, 0)
        assert ("LE_FLUSH_REQUEST time" in whats(check(made, tmp_path))) == found


def ask_ready(made: Lan, at: int, *, answered: bool = True) -> None:
    made.out(at, 1, 64, READY_QUERY)
    made.came(at + WAY_NS, 0, 65, READY_QUERY)
    if answered:
        made.out(at + WAY_NS, 0, 65, READY_IND)
        made.came(at + 2 * WAY_NS, 1, 64, READY_IND)


def complete(made: Lan) -> int:
    """When the call was whose READY_IND was lost."""
    return next(each.at for each in made.tape.pdus if each.sdu == READY_IND)


def test_who_was_called_asks_after_c28(tmp_path: Path) -> None:
    made, _ = lost_ready()
    ask_ready(made, complete(made) + C28_NS)
    assert check(made, tmp_path, complete(made) + 3 * C28_NS) == []


def test_ready_query_that_is_missing_early_or_without_an_answer_is_found(tmp_path: Path) -> None:
    made, _ = lost_ready()
    assert whats(check(made, tmp_path, complete(made) + 2 * C28_NS)) == {"READY_IND other end"}
    ask_ready(made, complete(made) + C28_NS - 1_000)
    assert "READY_QUERY time" in whats(check(made, tmp_path))
    made, _ = lost_ready()
    ask_ready(made, complete(made) + C28_NS, answered=False)
    assert "READY_QUERY answer" in whats(check(made, tmp_path))


@pytest.mark.parametrize(("after_ns", "found"), [(C12_NS + SETUP_NS, False), (C12_NS - 10_000, True)])
def test_a_channel_is_called_for_again_when_an_end_that_heard_nothing_has_released_it(
    after_ns: int, found: bool, tmp_path: Path
) -> None:
    """Frames that the other one sends meanwhile are lost, so C12 counts from the last that came."""
    made = lan()
    ready = made.first_frame(LATER, 0, 1)
    last = made.data(ready + 1_000, 0, mac(1), 1)
    for second in range(1, 1200, 100):
        at = last + second * 10**9
        made.out(at, 0, 65, made.tape.pdus[-2].sdu)
        lose(made, at + 50_000, 65, made.tape.pdus[-2].sdu, "b:eth0")
    made.out(last + after_ns, 0, 65, READY_IND)
    made.came(last + after_ns + WAY_NS, 1, 64, READY_IND)
    problems = whats(check(made, tmp_path, last + after_ns + 1_000_000, ageing="2000 s"))
    assert ("READY_IND time" in problems) == found


def test_a_frame_after_the_release_is_found(tmp_path: Path) -> None:
    made = lan()
    ready = made.first_frame(LATER, 0, 1)
    last = made.data(ready + 1_000, 0, mac(1), 1)
    made.data(last + C12_NS + 1_000_000, 0, mac(1), 1, name=1)
    assert "data frame" in whats(check(made, tmp_path, ageing="2000 s"))


def late_answer(late_ns: int) -> Lan:
    """An answer to LE_ARP that comes so long after C20, and the next, which is in time."""
    made = lan()
    number = made.transaction(0)
    lan_of = {"target": b"\0\1" + mac(1)}
    made.out(LATER, 0, 33, control(6, number, 1, mac(0), **lan_of))
    made.came(LATER + C20_NS + late_ns, 0, 33, control(0x106, number, 1, mac(0), to=atm(mac(1)), **lan_of))
    made.ask(LATER + C20_NS, 0, mac(1))
    return made


def ignored_by(made: Lan, folder: Path) -> list[tuple[int, int]]:
    written = segment("atm", made.ports)
    wire = made.wire(folder)
    return ignored(written, wire, read_pdus(written, wire))


def test_an_answer_after_c20_is_ignored_and_counted(tmp_path: Path) -> None:
    assert ignored_by(late_answer(1_000), tmp_path) == [(1, 1), (0, 0)]
    assert ignored_by(late_answer(-1_000), tmp_path) == [(0, 0), (0, 0)]


def test_a_question_that_nobody_can_answer_is_ignored_and_counted(tmp_path: Path) -> None:
    made = lan()
    number = made.transaction(0)
    made.out(LATER, 0, 33, control(6, number, 1, mac(0), target=b"\0\1" + mac(8)))
    assert ignored_by(made, tmp_path) == [(1, 1), (0, 0)]


def test_le_arp_is_repeated_c20_after_it_was_wanted(tmp_path: Path) -> None:
    """It left behind a frame of two cells, the next finds its line idle."""
    for again_ns, found in ((C20_NS, False), (C20_NS + TWO_CELLS_NS + ASKED_NS, True)):
        made = lan()
        made.data(LATER, 0, bytes.fromhex("ffffffffffff"))
        number = made.transaction(0)
        request = control(6, number, 1, mac(0), target=b"\0\1" + mac(1))
        made.out(LATER + TWO_CELLS_NS, 0, 33, request)
        lose(made, LATER + 50_000, 33, request, "service")
        made.data(LATER + TWO_CELLS_NS + ASKED_NS, 0, mac(1))
        answered = made.ask(LATER + again_ns, 0, mac(1))
        made.flush(made.call(answered, 0, 1) + CELL_NS, 0, 1)
        assert ("LE_ARP_REQUEST time" in whats(check(made, tmp_path))) == found


def test_what_is_heard_tells_nothing_of_what_was_lost(tmp_path: Path) -> None:
    """A flush whose answer is on the wire and never arrives is one that waits."""
    made = lan()
    ready = asked(made)
    flush_in_vain(made, ready + CELL_NS, 0, 1)
    assert not any(each.direction == IN and each.vci == 33 and each.sdu[4:6] == b"\1\7" for each in made.tape.pdus)
    made.data(ready + SERVICE_NS + 1_000_000, 0, mac(1), 1)
    assert "change of path" in whats(check(made, tmp_path))
