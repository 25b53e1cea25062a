# SPDX-License-Identifier: Apache-2.0
"""When acknowledgements are due: times in microseconds by hand, and what holds for every order of frames."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sundial.workloads.mbcf.expect_acks import Receiver, after, following

US = 1000
MOST = 2**32 - 1


def receiver(*arrivals: tuple[int, int]) -> Receiver:
    """(us, sequence number) of frames that came."""
    made = Receiver(slack_ns=100 * US, own_ns=100 * US)
    for at, seq in arrivals:
        made.arrive(at * US, seq, False)
    return made


def free(low: int, high: int) -> int:
    """A wire that nothing takes."""
    return high - low


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
    assert made.late(2099 * US, free) is None
    assert made.late(2101 * US, free) == 2000 * US
    assert made.late(9000 * US, free) is None


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


def test_a_wait_for_the_wire_is_not_the_nodes() -> None:
    made = receiver((0, 1))
    assert made.late(5000 * US, lambda low, high: 100 * US) is None
    assert made.late(5000 * US, lambda low, high: 101 * US) == 2000 * US


def test_what_leaves_with_the_answer_to_a_question_may_carry_it() -> None:
    made = receiver((0, 1))
    assert made.sent(1 * US, 1, alone=True) == "1 frames wait, the ACK is not due for another 1999000 ns"
    made.asked(10 * US)
    assert made.sent(11 * US, 1, alone=False) is None
    assert made.due_ns() is None
    assert made.sent(12 * US, 1, alone=True) is None


def test_the_ack_when_an_error_is_known() -> None:
    made = receiver((0, 1))
    assert made.sent(2000 * US, 1, alone=True, unsure=True) is None
    made.errors_known(2500 * US)
    assert made.due_ns() == 2500 * US
    assert made.sent(2501 * US, 1, alone=True) is None
    made.errors_known(2600 * US)
    assert made.due_ns() is None


def test_an_ack_that_acknowledges_less_was_made_before() -> None:
    made = receiver(*((at, at + 1) for at in range(64)))
    for place in range(3):
        made.arrive((70 + place) * US, 65 + place, place == 2)
    # That of the frame before waited for the wire; then comes the one that was asked for.
    assert made.sent(100 * US, 64, alone=True) is None
    assert made.sent(101 * US, 67, alone=True) is None
    assert made.sent(102 * US, 67, alone=True) == "nothing waits to be acknowledged"
