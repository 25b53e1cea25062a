# SPDX-License-Identifier: Apache-2.0
"""Cells in turn on one line, and bits that a line has flipped: what the verifier concludes from them."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from sundial.segments.atm.verify_flips import restored
from sundial.segments.atm.verify_turns import departures, in_turn
from tests.segments.pdus import cpcs

CELL, NS = 331_250_000, 117_000


def whole(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def slots(times: np.ndarray, since: int = 0) -> list[int]:
    return [round((time - since) / CELL) for time in times.tolist()]


def stamps(*units: int) -> np.ndarray:
    return np.array([-(-each // NS) * NS for each in units], np.int64)


def test_channels_take_turns_once_both_have_something() -> None:
    """Three cells on 33 from slot 0, two on 35 from slot 1."""
    seen = stamps(0, CELL)
    times, first, _ = departures(seen, np.array([True, False]), whole(33, 35), whole(3, 2), CELL, CELL, NS)
    assert slots(times) == [0, 2, 4, 1, 3]
    assert first.tolist() == [0, CELL]


def test_one_that_begins_a_slot_later_finds_another_order() -> None:
    seen = stamps(0, 2 * CELL)
    times, _, _ = departures(seen, np.array([True, False]), whole(33, 35), whole(3, 2), CELL, CELL, NS)
    assert slots(times) == [0, 1, 3, 2, 4]


def test_a_channel_waits_for_its_own_pace_and_lets_others_pass() -> None:
    """Spaced by three cell times."""
    seen = stamps(0, CELL)
    times, _, _ = departures(seen, np.array([True, False]), whole(64, 65), whole(3, 2), CELL, 3 * CELL, NS)
    assert slots(times) == [0, 3, 6, 1, 4]


@pytest.mark.parametrize(("begins", "known"), [(6, True), (5, False)])
def test_a_pdu_that_waits_for_its_channels_pace_among_others_begins_then(begins: int, known: bool) -> None:
    """To the unit, though its stamp is of whole ns; what begins sooner is known by its stamp alone."""
    seen = stamps(0, CELL, begins * CELL)
    pdus = np.array([True, False, False]), whole(64, 65, 64), whole(2, 10, 1)
    times, first, slack = departures(seen, *pdus, CELL, 3 * CELL, NS)
    assert slots(times)[:5] == [0, 3, 1, 4, 7]
    assert (first[2], slack[2]) == ((6 * CELL, 0) if known else (seen[2], NS - 1))


def test_an_idle_line_begins_at_the_stamp_and_may_have_in_the_ns_before() -> None:
    seen = stamps(0, 100 * CELL)
    times, first, slack = departures(seen, np.array([True, False]), whole(33, 33), whole(1, 1), CELL, CELL, NS)
    assert first.tolist() == seen.tolist() == times.tolist()
    assert slack.tolist() == [0, NS - 1]


def test_servers_send_a_cell_of_each_channel_that_is_ready() -> None:
    """The third has its channel's turn behind the first."""
    times = in_turn(whole(0, CELL, CELL), whole(1, 3, 2), whole(3, 2, 1), CELL)
    assert slots(times) == [0, 3, 5, 2, 4, 1]


def test_pdus_of_one_channel_follow_one_another() -> None:
    times = in_turn(whole(0, 1, 50 * CELL), whole(1, 1, 1), whole(2, 2, 1), CELL)
    assert slots(times) == [0, 1, 2, 3, 50]


def in_a_heap(ready: list[int], channel: list[int], cells: list[int]) -> list[int]:
    """The same, slot by slot."""
    left = list(cells)
    begin = np.cumsum(cells) - cells
    times = [0] * sum(cells)
    at, last = 0, -1
    while any(left):
        heads = {
            each: min(place for place, own in enumerate(channel) if own == each and left[place])
            for each in set(channel)
            if any(left[place] for place, own in enumerate(channel) if own == each)
        }
        waiting = sorted(each for each, place in heads.items() if ready[place] <= at)
        if not waiting:
            at = min(ready[place] for place in heads.values())
            continue
        last = next((each for each in waiting if each > last), waiting[0])
        place = heads[last]
        times[int(begin[place]) + cells[place] - left[place]] = at
        left[place] -= 1
        at += CELL
    return times


@pytest.mark.parametrize("seed", range(40))
def test_turns_are_those_of_slot_by_slot(seed: int) -> None:
    random = Random(seed)
    number = random.randrange(1, 12)
    ready = sorted(random.randrange(30 * CELL) for _ in range(number))
    channel = [random.randrange(4) for _ in range(number)]
    cells = [random.randrange(1, 6) for _ in range(number)]
    due = in_a_heap(ready, channel, cells)
    assert in_turn(whole(*ready), whole(*channel), whole(*cells), CELL).tolist() == due
    # And back from the stamps of the first cells.
    begin = np.cumsum(cells) - cells
    order = np.argsort(np.array(due)[begin], kind="stable")
    firsts = np.array(due, np.int64)[begin][order]
    times, _, _ = departures(
        -(-firsts // NS) * NS, np.zeros(number, np.bool_), whole(*channel)[order], whole(*cells)[order], CELL, CELL, NS
    )
    expected = np.concatenate([due[begin[place] : begin[place] + cells[place]] for place in order.tolist()])
    assert (np.abs(times - expected) < NS).all()


FRAME = cpcs(bytes(range(108)))


def flipped(octets: bytes, *bits: int) -> bytes:
    value = int.from_bytes(octets)
    for bit in bits:
        value ^= 1 << (8 * len(octets) - 1 - bit)
    return value.to_bytes(len(octets))


def test_each_flipped_bit_of_a_control_frame_is_found() -> None:
    assert len(FRAME) == 144
    for bit in range(8 * len(FRAME)):
        assert restored(flipped(FRAME, bit)) == FRAME, bit


@pytest.mark.parametrize("bits", [(3, 400), (3, 5), (17, 1151), (0, 500, 1000), (383, 384, 768)])
def test_two_flipped_bits_or_one_of_each_cell_are_found(bits: tuple[int, ...]) -> None:
    assert restored(flipped(FRAME, *bits)) == FRAME


def test_what_so_few_bits_do_not_explain_stays_as_it_came() -> None:
    came = flipped(FRAME, 1, 2, 3, 4, 5, 6, 7)
    assert restored(came) == came
    assert restored(FRAME + bytes(48)) == FRAME + bytes(48)
    ready = cpcs(bytes.fromhex("ff0001010103"))
    assert restored(flipped(ready, 40)) == ready
