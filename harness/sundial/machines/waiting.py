# SPDX-License-Identifier: Apache-2.0
"""Waiting with a deadline, on a clock that is handed in, and calls that must not hang their caller."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

T = TypeVar("T")


SETTLE_S = 10.0


class Clock(Protocol):
    """Wall time in seconds, and the only way to let some of it pass."""

    def now(self) -> float: ...

    def pause(self, seconds: float) -> None: ...


class WallClock:
    """The host's monotonic clock."""

    def now(self) -> float:
        return time.monotonic()

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)


@dataclass
class ManualClock:
    """A clock for tests: a pause costs nothing and moves it; `on_pause` lets the world change meanwhile."""

    time_s: float = 0.0
    on_pause: Callable[[float], None] | None = None

    def now(self) -> float:
        return self.time_s

    def pause(self, seconds: float) -> None:
        self.time_s += seconds
        if self.on_pause is not None:
            self.on_pause(self.time_s)


WALL: Clock = WallClock()


class DeadlineMissed(Exception):
    """What was waited for did not come in time; the message says what and how long."""


def wait_until(
    predicate: Callable[[], T | None],
    *,
    seconds: float,
    what: str,
    clock: Clock = WALL,
    first_s: float = 0.001,
    longest_s: float = 0.05,
) -> T:
    """The first true value of `predicate`, asked at growing intervals.

    Raises DeadlineMissed after `seconds`.
    """
    end = clock.now() + seconds
    step = first_s
    while True:
        value = predicate()
        if value:
            return value
        left = end - clock.now()
        if left <= 0:
            raise DeadlineMissed(f"{what}: not within {seconds:g} s")
        clock.pause(min(step, left))
        step = min(step * 1.5, longest_s)


def call_within(seconds: float, what: str, function: Callable[[], T]) -> T:
    """`function()` on a thread of its own; its result or its exception.

    Raises DeadlineMissed when it takes longer; the thread is left behind, for a blocked call cannot be cancelled.
    """
    outcome: list[T] = []
    failure: list[BaseException] = []
    finished = threading.Event()

    def work() -> None:
        try:
            outcome.append(function())
        except BaseException as error:
            failure.append(error)
        finally:
            finished.set()

    threading.Thread(target=work, name=f"within-{what}", daemon=True).start()
    if not finished.wait(seconds):
        raise DeadlineMissed(f"{what}: no answer within {seconds:g} s")
    if failure:
        raise failure[0]
    return outcome[0]


def in_parallel(calls: list[Callable[[], T]]) -> list[T]:
    """All calls at once, each on a thread, started in the order given; their results in that order.

    When some fail, the first failure (in that order) is raised after all have ended.
    """
    results: dict[int, T] = {}
    failures: dict[int, BaseException] = {}

    def work(index: int) -> None:
        try:
            results[index] = calls[index]()
        except BaseException as error:
            failures[index] = error

    threads = [threading.Thread(target=work, args=(index,), daemon=True) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except BaseException:
        # Interrupted: no thread may still be at work when the caller begins to clean up.
        for thread in threads:
            thread.join(SETTLE_S)
        raise
    if failures:
        raise failures[min(failures)]
    return [results[index] for index in range(len(calls))]
