# SPDX-License-Identifier: Apache-2.0
"""When acknowledgements are due: times in microseconds by hand, and what holds for every order of frames."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sundial.verify.contention import contention_of
from sundial.workloads.mbcf.expect_acks import Receiver, after, following

US = 1000
MOST = 2**32 - 1


def receiver(*arrivals: tuple[int, int]) -> Receiver:
    """(us, sequence number) of frames that came."""
    made = Receiver(slack_ns=100 * US, own_ns=100 * US)
    for at, seq in arrivals:
        made.arrive(at * US, seq, False)
    return made


def test_nothing_waits_at_first() -> None:
    assert receiver().due_ns() is None
    assert receiver().sent(5, 0, alone=True) == "nothing waits to be acknowledged"


def test_two_ms_after_the_last_frame() -> None:
    assert receiver((0, 1)).due_ns() == 2000 * US
    assert receiver((0, 1), (500, 2)).due_ns() == 2500 * US
    assert receiver((0, 1)).sent(2000 * US, 1, alone=True) is None
    assert receiver((0, 1)).sent(1999 * US, 1, alone=True) == "1 frames wait, the ACK is not due for another 1000 ns"


def test_not_later_than_eight_ms_and_some_for_each_frame() -> None:
    frames = [(at * 1900, at + 1) for at in range(12)]  # the last at 20900
    assert receiver(*frames).due_ns() == 22_900 * US
    # 8 ms and 13 times 1.25 ms after the first, before 22800 and 2 ms.
    assert receiver(*frames, (22_800, 13)).due_ns() == 24_250 * US


def test_at_the_last_frame_that_a_window_holds() -> None:
    frames = [(at, at + 1) for at in range(64)]
    assert receiver(*frames[:63]).due_ns() == 2062 * US
    made = receiver(*frames)
    assert made.due_ns() == 63 * US
    assert made.sent(64 * US, 64, alone=True) is None
    assert made.due_ns() is None


@pytest.mark.parametrize(("taken_us", "wrong"), [(0, "nothing waits to be acknowledged"), (27_950, None)])
def test_an_ack_of_what_came_again_waits_for_the_wire(taken_us: int, wrong: str | None) -> None:
    wire = contention_of([(0, taken_us * US)])
    made = Receiver(slack_ns=100 * US, own_ns=100 * US, idle=wire.idle_ns)
    made.arrive(0, 1, True)
    made.arrive(1 * US, 1, True)
    assert made.sent(2 * US, 1, alone=False) is None
    assert made.sent(28_000 * US, 1, alone=True) == wrong


def test_other_frames_carry_it() -> None:
    made = receiver((0, 1))
    assert made.sent(10 * US, 1, alone=False) is None
    assert made.due_ns() is None
    assert made.sent(3000 * US, 1, alone=True) == "nothing waits to be acknowledged"


def test_a_frame_that_came_while_another_waited_is_still_owed() -> None:
    made = receiver((0, 1), (10, 2))
    assert made.sent(20 * US, 1, alone=False) is None
    assert made.due_ns() == 2010 * US


def test_at_once_where_it_is_asked_for() -> None:
    made = receiver()
    assert made.arrive(0, 1, True) == "accepted"
    assert made.due_ns() == 0
    assert made.sent(1 * US, 1, alone=True) is None
    made.asked(5 * US)
    assert made.due_ns() == 5 * US
    assert made.sent(6 * US, 1, alone=True) is None


def test_four_acks_at_once_behind_a_gap() -> None:
    made = receiver((0, 1))
    assert made.sent(1 * US, 1, alone=False) is None
    for place in range(4):
        assert made.arrive((10 + place) * US, 3 + place, False) == "gap"
        assert made.sent((11 + place) * US, 1, alone=True) is None
    made.arrive(20 * US, 7, False)
    assert made.sent(21 * US, 1, alone=True) == "1 frames wait, the ACK is not due for another 1999000 ns"


def test_duplicates_wait_like_others() -> None:
    made = receiver((0, 1))
    made.sent(1 * US, 1, alone=False)
    assert made.arrive(10 * US, 1, False) == "duplicate"
    assert made.sent(2010 * US, 1, alone=True) is None


def test_nobody_acknowledges_what_has_not_come() -> None:
    assert receiver((0, 1)).sent(5000 * US, 2, alone=True) == "acknowledges 2, but no more than 1 has come"


def test_a_missing_one_is_told_once() -> None:
    made = receiver((0, 1))
    assert made.late(2099 * US) is None
    assert made.late(2101 * US) == 2000 * US
    assert made.late(9000 * US) is None


def test_numbers_go_round_without_zero() -> None:
    assert following(MOST) == 1
    assert after(1, MOST)
    assert not after(MOST, 1)
    made = Receiver(0, 0, received=MOST)
    assert made.arrive(0, 1, False) == "accepted"


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 3000), st.integers(1, 12), st.booleans()), max_size=60))
def test_every_number_is_accepted_once_and_in_order(frames: list[tuple[int, int, bool]]) -> None:
    made, now, accepted = Receiver(0, 0), 0, []
    for wait, seq, ack_now in frames:
        now += wait * US
        if made.arrive(now, seq, ack_now) == "accepted":
            accepted.append(seq)
        due = made.due_ns()
        assert due is None or due <= made.waiting[0][1] + (8_000 + 1_250 * 60) * US if made.waiting else True
    assert accepted == list(range(1, len(accepted) + 1))
    assert made.received == len(accepted)
    assert len(made.waiting) == len(accepted)


def test_an_ack_that_crosses_what_is_to_be_answered_at_once() -> None:
    # The delayed ACK was made before the frame behind a gap came, and left the adapter after it: both are right.
    made = receiver((0, 1))
    assert made.arrive(2005 * US, 3, False) == "gap"
    assert made.sent(2006 * US, 1, alone=True) is None
    assert made.sent(2030 * US, 1, alone=True) is None
    assert made.sent(2040 * US, 1, alone=True) == "nothing waits to be acknowledged"


def test_a_frame_that_leaves_does_not_answer_what_is_owed_at_once() -> None:
    made = receiver((0, 1))
    assert made.arrive(10 * US, 3, False) == "gap"
    assert made.sent(11 * US, 1, alone=False) is None
    assert made.due_ns() == 10 * US
    assert made.sent(20 * US, 1, alone=True) is None


@pytest.mark.parametrize(("idle_us", "due_us"), [(100, None), (101, 2000)])
def test_a_wait_for_the_wire_is_not_the_nodes(idle_us: int, due_us: int | None) -> None:
    made = replace(receiver((0, 1)), idle=lambda low, high: idle_us * US)
    assert made.late(5000 * US) == (due_us and due_us * US)
