# SPDX-License-Identifier: Apache-2.0
import threading

import pytest

from sundial.machines.waiting import DeadlineMissed, ManualClock, call_within, in_parallel, wait_until


def test_waits_until_the_predicate_is_true_and_gives_its_value() -> None:
    clock = ManualClock()
    assert wait_until(lambda: "here" if clock.now() > 3 else None, seconds=10, what="it", clock=clock) == "here"
    assert 3 < clock.now() < 3.2


def test_says_what_did_not_come_in_time() -> None:
    clock = ManualClock()
    with pytest.raises(DeadlineMissed, match="the fabric: not within 5 s"):
        wait_until(lambda: False, seconds=5, what="the fabric", clock=clock)
    assert clock.now() == pytest.approx(5)


def test_a_call_that_hangs_does_not_hang_its_caller() -> None:
    release = threading.Event()
    with pytest.raises(DeadlineMissed, match=r"libvirt: no answer within 0\.05 s"):
        call_within(0.05, "libvirt", release.wait)
    release.set()


def test_a_call_within_its_time_gives_its_result_or_its_error() -> None:
    assert call_within(5, "it", lambda: 42) == 42
    with pytest.raises(ZeroDivisionError):
        call_within(5, "it", lambda: 1 // 0)


def test_parallel_calls_give_results_in_order_and_the_first_failure() -> None:
    assert in_parallel([lambda n=n: n * n for n in range(5)]) == [0, 1, 4, 9, 16]

    def fail() -> int:
        raise ValueError("second")

    with pytest.raises(ValueError, match="second"):
        in_parallel([lambda: 1, fail])
