# SPDX-License-Identifier: Apache-2.0
"""Bursts and facks: khandker's text and table 2, and the rules of the OSF runtime."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sundial.workloads.dce.expect_window import Policy, Sender, asks_at_most, window_fragments

POLICIES: list[Policy] = ["window", "halves", "osf"]


def lockstep(policy: Policy, count: int, window: int = 8) -> tuple[list[int], list[int]]:
    """Sizes of the bursts, and fragments that ask, where each fack comes when its burst is out."""
    sender, serial, bursts, asking = Sender(policy, count), 0, [], []
    while not sender.done:
        answers = []
        burst = 0
        while (ready := sender.next()) is not None:
            fragment, asks = ready
            sender.sent(fragment, serial, asks)
            if asks:
                asking.append(fragment)
                answers.append((fragment, serial))
            serial += 1
            burst += 1
        assert burst, "it waits for a fack that does not come"
        bursts.append(burst)
        for fragment, answered in answers:
            sender.fack(fragment, (), answered, window)
        if sender._unsent == count:
            break
    return bursts, asking


@pytest.mark.parametrize(
    ("count", "bursts"),
    [
        (1, [1]),
        (2, [1, 1]),
        (3, [1, 2]),
        (4, [1, 2, 1]),
        (7, [1, 2, 4]),
        (8, [1, 2, 4, 1]),
        (16, [1, 2, 4, 8, 1]),
        (24, [1, 2, 4, 8, 8, 1]),
    ],
)
def test_khandkers_text(count: int, bursts: list[int]) -> None:
    """A window of 4 KB, doubled by each acknowledgement, of 32 KB at most: 1, 2, 4, 8, 8 fragments of 4 KB."""
    assert lockstep("window", count) == (bursts, [sum(bursts[: n + 1]) - 1 for n in range(len(bursts) - 1)])


@pytest.mark.parametrize(("count", "facks"), [(1, 0), (2, 1), (4, 3), (6, 4)])
def test_khandkers_table_2(count: int, facks: int) -> None:
    """Row S8 has 1, 1, 1, 2, 4, 5 sends of the server: its response, and 1, 3, 4 facks for 2, 4 and 6 PDUs."""
    assert len(lockstep("halves", count)[1]) == facks


def test_osf_bursts_grow_while_nothing_is_lost() -> None:
    """Bursts of 4 at most, and of 6 and 8 after each 8 good facks; two at a loss."""
    assert max(lockstep("osf", 12)[0]) == 4
    assert max(lockstep("osf", 60)[0]) == 8
    sender = Sender("osf", 60)
    for fragment in range(3):
        sender.sent(fragment, fragment, asked=fragment != 1)
    sender.fack(0, {2}, 2, 16)
    assert sender.next() == (1, True)  # the middle of a burst of two is its first
    assert sender.burst_most == 4


@pytest.mark.parametrize(
    ("window", "asks"), [(0, 0), (1, 1), (2, 2), (4, 2), (5, 3), (8, 3), (10, 4), (16, 4), (17, 4), (32, 8)]
)
def test_facks_asked_for_at_a_time(window: int, asks: int) -> None:
    assert asks_at_most(window) == asks


@pytest.mark.parametrize(
    ("kib", "fragment", "fragments"), [(32, 4096, 8), (24, 1464, 16), (2, 4096, 2), (0, 4096, 0), (3, 4096, 0)]
)
def test_windows(kib: int, fragment: int, fragments: int) -> None:
    assert window_fragments(kib, fragment) == fragments


def test_the_timer_sends_the_oldest_alone() -> None:
    sender = Sender("window", 20)
    sender.sent(0, 0, asked=True)
    assert sender.next() is None
    assert sender.timeout() == 0
    assert sender.next() == (0, True)
    sender.sent(0, 1, asked=True)
    assert sender.next() is None
    sender.fack(0, (), 1, 8)
    assert sender.timeout() is None


@pytest.mark.parametrize("policy", POLICIES)
def test_the_timer_sends_the_next_where_old_facks_have_acknowledged_all(policy: Policy) -> None:
    """Facks that were overtaken by the fack of a later transmission acknowledge, and open no burst."""
    sender = Sender(policy, 20, window=8)
    for serial in (0, 1):  # the second is the timer's
        sender.sent(0, serial, asked=True)
        sender.timeout()
    sender.fack(0, (), 1, 8)
    fragments = []
    while (ready := sender.next()) is not None:
        sender.sent(ready[0], 2 + len(fragments), ready[1])
        fragments.append(ready[0])
    last = max(fragments)
    sender.timeout()
    assert sender.next() == (1, True)
    sender.sent(1, 50, asked=True)
    assert not sender.fack(last, (), 0, 8)
    assert sender.next() is None
    assert sender.timeout() is None
    assert sender.next() == (last + 1, True)


@given(
    st.sampled_from(POLICIES),
    st.integers(1, 60),
    st.integers(1, 16),
    st.lists(st.tuples(st.booleans(), st.booleans()), max_size=200),
)
def test_any_loss_ends_with_all_and_never_beyond_the_window(
    policy: Policy, count: int, window: int, fates: list[tuple[bool, bool]]
) -> None:
    """Each transmission and each fack may be lost; the receiver offers `window` fragments."""
    sender, received, serial = Sender(policy, count, window=window), set[int](), 0
    fates = fates[::-1]
    for _ in range(5000):
        if len(received) == count:
            break
        ready = sender.next()
        if ready is None:
            assert sender.timeout() is not None
            continue
        fragment, asks = ready
        sender.sent(fragment, serial, asks)
        assert sender.outstanding <= max(window, 1)
        comes, answered = fates.pop() if fates else (True, True)
        if comes:
            received.add(fragment)
            in_order = next(n for n in range(count + 1) if n not in received) - 1
            if asks and answered and in_order < count - 1:
                sender.fack(in_order, {n for n in received if n > in_order}, serial, window)
        serial += 1
    assert len(received) == count
