# SPDX-License-Identifier: Apache-2.0
"""Which way frames go over LAN emulation, and what clients drop: what is right and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.segments.lane_tape import ASKED_NS, BROADCAST, CELL_NS, WAY_NS, Lan, mac
from tests.segments.test_lane_rules import FAR, LATER, THREE, TWO, check, lan

SECOND_NS = 10**9
C20_NS, C21_NS, C22_NS, C17_NS = SECOND_NS, 4 * SECOND_NS, 6 * SECOND_NS, 300 * SECOND_NS


def whats(found: list[tuple[str, str, str]]) -> set[str]:
    return {what for what, _, _ in found}


def called() -> tuple[Lan, int]:
    """One client has a channel to the other, from an instant on."""
    made = lan()
    return made, made.first_frame(LATER, 0, 1)


def test_a_second_frame_by_the_bus_within_c11_is_found(tmp_path: Path) -> None:
    made = lan()
    made.ask(LATER, 0, mac(1))
    made.data(LATER + ASKED_NS, 0, mac(1))
    made.data(LATER + 500_000, 0, mac(1), name=1)
    assert "frame by the BUS" in whats(check(made, tmp_path))


def unanswered(made: Lan, first: int, *others: int) -> None:
    """LE_ARP for an unknown station."""
    for at in (first, *others):
        made.ask_proxies(at, 0, FAR, None)


@pytest.mark.parametrize(("after", "found"), [(SECOND_NS, False), (SECOND_NS - 100_000, True)])
def test_c11_lets_one_more_frame_go(after: int, found: bool, tmp_path: Path) -> None:
    made = lan(THREE, ("x:e0",))
    unanswered(made, LATER, LATER + C20_NS)
    made.data(LATER + ASKED_NS, 0, FAR)
    made.data(LATER + ASKED_NS + after, 0, FAR, name=1)
    assert bool(check(made, tmp_path)) == found


def test_a_frame_by_the_bus_that_nobody_asks_for_is_found(tmp_path: Path) -> None:
    made = lan()
    made.data(LATER, 0, mac(1))
    assert "frame by the BUS" in whats(check(made, tmp_path))


def test_frames_on_a_channel_need_an_answer_a_call_and_a_flush(tmp_path: Path) -> None:
    made = lan()
    made.data(LATER, 0, mac(1), 1)
    assert "channel of a frame" in whats(check(made, tmp_path))
    made = lan()
    answered = made.ask(LATER, 0, mac(1))
    made.data(LATER + ASKED_NS, 0, mac(1))
    ready = made.call(answered, 0, 1)
    made.flush(ready + CELL_NS, 0, 1)
    made.data(ready + 20_000, 0, mac(1), 1)
    assert "change of path" in whats(check(made, tmp_path))


@pytest.mark.parametrize(("after", "found"), [(C22_NS, False), (C22_NS - 100_000, True)])
def test_c22_after_the_last_frame_the_path_changes_without_an_answer(after: int, found: bool, tmp_path: Path) -> None:
    made = lan()
    answered = made.ask(LATER, 0, mac(1))
    sent = LATER + ASKED_NS
    made.data(sent, 0, mac(1))
    ready = made.call(answered, 0, 1)
    for at in (ready + CELL_NS, ready + C21_NS):
        made.flush(at, 0, 1, answered=False)
    made.data(sent + after, 0, mac(1), 1)
    changed = "change of path" in whats(check(made, tmp_path))
    assert changed == found


def test_a_flush_at_another_time_or_for_nothing_is_found(tmp_path: Path) -> None:
    made, at = called()
    made.flush(at + 50_000, 0, 1)
    assert "LE_FLUSH_REQUEST time" in whats(check(made, tmp_path))


def test_the_bus_where_there_is_a_channel_is_found(tmp_path: Path) -> None:
    made, at = called()
    made.data(at, 0, mac(1), 1)
    made.data(at + 2 * SECOND_NS, 0, mac(1), name=1)
    assert "frame by the BUS" in whats(check(made, tmp_path))


def test_a_group_on_a_data_direct_channel_is_found(tmp_path: Path) -> None:
    made, at = called()
    made.data(at, 0, mac(1), 1)
    made.data(at + 50_000, 0, BROADCAST, 1)
    assert whats(check(made, tmp_path)) == {"channel of a group's frame"}


def test_data_before_its_client_is_a_member_are_found(tmp_path: Path) -> None:
    made = lan()
    made.data(300_000, 0, BROADCAST)
    assert whats(check(made, tmp_path)) == {"data frame"}


@pytest.mark.parametrize(("after", "found"), [(C17_NS - 1000, False), (C17_NS + 1_000_000, True)])
def test_an_answer_is_believed_for_c17(after: int, found: bool, tmp_path: Path) -> None:
    made = lan()
    at = made.first_frame(LATER, 0, 1)
    made.data(at, 0, mac(1), 1)
    answered = LATER + 2 * WAY_NS + 50_000
    # Asked again in its last seconds, and not answered.
    made.data(answered + after, 0, mac(1), 1)
    assert ("channel of a frame" in whats(check(made, tmp_path))) == found


def test_a_channel_that_nobody_used_for_c12_is_called_for_again(tmp_path: Path) -> None:
    made, at = called()
    made.data(at, 0, mac(1), 1)
    made.data(at + SECOND_NS, 0, mac(1), 1, name=1)
    assert check(made, tmp_path) == []
    assert "data frame" in whats(check(made, tmp_path, vcc_time_out="500 ms"))


def test_a_call_that_nobody_makes_is_missed(tmp_path: Path) -> None:
    made = lan()
    made.ask(LATER, 0, mac(1))
    made.data(LATER + ASKED_NS, 0, mac(1))
    assert "LE_ARP_RESPONSE call" in whats(check(made, tmp_path, end_ns=10 * SECOND_NS))


@pytest.mark.parametrize("repeated", [LATER + C20_NS, LATER + C20_NS - 5_000, LATER + C20_NS + 5_000])
def test_who_hears_nothing_asks_again_after_c20(repeated: int, tmp_path: Path) -> None:
    made = lan(THREE, ("x:e0",))
    unanswered(made, LATER, repeated)
    made.data(LATER + ASKED_NS, 0, FAR)
    assert bool(check(made, tmp_path)) == (repeated != LATER + C20_NS)


def test_who_is_never_asked_again_is_missed(tmp_path: Path) -> None:
    made = lan(THREE, ("x:e0",))
    unanswered(made, LATER)
    made.data(LATER + ASKED_NS, 0, FAR)
    assert "LE_ARP_REQUEST repetition" in whats(check(made, tmp_path, end_ns=10 * SECOND_NS))


def test_what_a_client_drops(tmp_path: Path) -> None:
    made = lan(THREE, ("x:e0",))
    made.dropped(500, 0, BROADCAST, "not joined")
    unanswered(made, LATER, LATER + C20_NS)
    made.data(LATER + ASKED_NS, 0, FAR)
    made.dropped(LATER + 20_000, 0, FAR, "8 frames wait", "02:53:44:00:00:09")
    for _ in range(8):
        made.dropped(LATER + 2 * C20_NS, 0, FAR, "no answer", "02:53:44:00:00:09")
    assert check(made, tmp_path, end_ns=20 * SECOND_NS) == []


@pytest.mark.parametrize(
    ("at", "target", "why", "address"),
    [
        (LATER, BROADCAST, "not joined", ""),
        (LATER + C20_NS, FAR, "no answer", "02:53:44:00:00:09"),
        (LATER + 2 * C20_NS, mac(1), "no answer", "02:53:44:00:00:09"),
        (LATER + 20_000, FAR, "8 frames wait", "02:53:44:00:00:09"),
    ],
)
def test_what_a_client_drops_without_need_is_found(
    at: int, target: bytes, why: str, address: str, tmp_path: Path
) -> None:
    made = lan(THREE, ("x:e0",))
    unanswered(made, LATER, LATER + C20_NS)
    made.data(LATER + ASKED_NS, 0, FAR)
    for _ in range(7):
        made.dropped(LATER + 2 * C20_NS, 0, FAR, "no answer", "02:53:44:00:00:09")
    made.dropped(at, 0, target, why, address)
    assert check(made, tmp_path, end_ns=20 * SECOND_NS)


def test_without_le_arp_there_are_no_control_frames(tmp_path: Path) -> None:
    made = Lan(TWO)
    made.data(0, 0, mac(1), 1)
    made.data(1_000_000, 0, BROADCAST)
    assert check(made, tmp_path, resolution="static") == []
    made.data(2_000_000, 0, mac(1))
    assert whats(check(made, tmp_path, resolution="static")) == {"channel of a frame"}
    joined = lan()
    assert "LE_JOIN_REQUEST control frame" in whats(check(joined, tmp_path, resolution="static"))


def test_without_le_arp_what_is_no_ports_address_is_behind_the_only_device(tmp_path: Path) -> None:
    made = Lan(THREE, ("x:e0",))
    made.data(0, 0, FAR, 2)
    assert check(made, tmp_path, resolution="static") == []
    made.data(1_000_000, 2, bytes.fromhex("02534400000a"))
    assert check(made, tmp_path, resolution="static") == []
    made.data(2_000_000, 0, FAR)
    assert whats(check(made, tmp_path, resolution="static")) == {"channel of a frame"}


def test_both_ends_that_call_at_once_both_say_so(tmp_path: Path) -> None:
    made = lan()
    first, second = (made.ask(at, port, mac(1 - port)) for port, at in ((0, LATER), (1, LATER + 300_000)))
    for port, at in ((0, LATER), (1, LATER + 300_000)):
        made.data(at + ASKED_NS, port, mac(1 - port))
    for port, named in ((0, first), (1, second)):
        made.call(named, port, 1 - port)
    assert check(made, tmp_path) == []
