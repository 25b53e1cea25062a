# SPDX-License-Identifier: Apache-2.0
"""The schedule with an engine that loses, repeats and reorders runs, and says that it made what it did not."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sundial.errors import HostLacks
from sundial.sweep.schedule import Done, Lost, Progress, Schedule, drawn


class Unreliable:
    """An engine with a store; each run is lost a number of times."""

    def __init__(self, slots: int, losses: dict[int, int], seed: int) -> None:
        self.slots = slots
        self.store: dict[int, str] = {}
        self.made: Counter[int] = Counter()
        self._losses = Counter(losses)
        self._random = Random(seed)
        self._begun: list[tuple[int, int]] = []
        self._ended: list[tuple[int, int]] = []

    def begin(self, run: int, attempt: int) -> None:
        assert run not in {each for each, _ in self._begun}
        self._begun.append((run, attempt))
        assert len(self._begun) <= self.slots

    def ended(self) -> tuple[int, int, Done | Lost]:
        if self._ended and self._random.random() < 0.3:
            return *self._random.choice(self._ended), Done()
        run, attempt = self._begun.pop(self._random.randrange(len(self._begun)))
        self._ended.append((run, attempt))
        if self._losses[run]:
            self._losses[run] -= 1
            return run, attempt, self._random.choice([Lost("its worker ended"), Done()])
        self.made[run] += 1
        self.store[run] = f"result {run}"
        return run, attempt, Done()


def schedule(engine: Unreliable, retries: int = 3) -> Schedule[int, str]:
    def show(counts: Progress) -> None:
        assert counts.made + counts.had + counts.given_up <= counts.wanted

    return Schedule(engine, engine.store.get, retries, show)


@given(
    slots=st.integers(1, 5),
    count=st.integers(0, 12),
    losses=st.dictionaries(st.integers(0, 11), st.integers(0, 2)),
    had=st.sets(st.integers(0, 11)),
    seed=st.integers(0, 99),
)
def test_each_run_is_made_once_whatever_the_engine_does(
    slots: int, count: int, losses: dict[int, int], had: set[int], seed: int
) -> None:
    engine = Unreliable(slots, losses, seed)
    engine.store = {run: f"result {run}" for run in had if run < count}
    there = len(engine.store)
    plan = schedule(engine, retries=3)
    try:
        plan.perform(lambda: list(range(count)))
    except HostLacks:
        assert plan.progress.lost > 2 * slots
        return
    assert plan.seen == {run: f"result {run}" for run in range(count)}
    assert (plan.progress.had, plan.progress.made) == (there, count - there)
    assert max(engine.made.values(), default=1) == 1
    assert not set(engine.made) & had


def test_a_plan_may_grow_with_what_was_seen() -> None:
    engine = Unreliable(2, {}, 1)
    plan = schedule(engine)
    plan.perform(lambda: list(range(min(9, 2 + 2 * len(plan.seen)))))
    assert sorted(plan.seen) == list(range(9))
    again = schedule(engine)
    again.perform(lambda: list(range(min(9, 2 + 2 * len(again.seen)))))
    assert (again.progress.had, again.progress.made) == (9, 0)


def test_a_run_that_is_lost_too_often_is_given_up_and_the_others_are_made() -> None:
    engine = Unreliable(4, {0: 9}, 1)
    plan = schedule(engine, retries=2)
    plan.perform(lambda: list(range(6)))
    assert (sorted(plan.seen), list(plan.given_up)) == ([1, 2, 3, 4, 5], [0])


def test_many_losses_in_sequence_are_the_hosts() -> None:
    engine = Unreliable(2, dict.fromkeys(range(9), 99), 1)
    with pytest.raises(HostLacks, match="6 runs in sequence did not reach their end") as caught:
        schedule(engine).perform(lambda: list(range(9)))
    assert "what was made is kept" in str(caught.value.hint)


def test_ten_thousand_known_runs_take_no_second_look_at_each() -> None:
    engine = Unreliable(3, {}, 1)
    points = list(range(10_000))
    plan = schedule(engine)
    plan.perform(lambda: points)
    assert len(plan.seen) == 10_000


@given(keys=st.sets(st.text("0123456789abcdef", min_size=64, max_size=64)), share=st.floats(0, 1))
def test_runs_to_compare_are_drawn_by_their_keys_and_at_least_one(keys: set[str], share: float) -> None:
    found = drawn(sorted(keys), share)
    assert len(found) >= (share > 0 and bool(keys))
    assert set(found) <= keys
    assert not keys or share < 1 or set(found) == keys
    more = drawn(sorted(keys | {"f" * 64}), share)
    assert set(found) <= set(more), "more runs change nothing in what was drawn"
