# SPDX-License-Identifier: Apache-2.0
from sundial.run.supervisor import Hung
from sundial.run.watchdog import Signs, Watchdog


def test_says_hung_when_nothing_has_moved_for_the_whole_time() -> None:
    watchdog = Watchdog(15.0)
    answers = [watchdog.look(Signs((1, 2), ("server",)), float(second)) for second in range(17)]
    assert answers[:15] == [None] * 15
    assert answers[15] == Hung(15.0, ("server",))


def test_any_movement_begins_anew() -> None:
    watchdog = Watchdog(15.0)
    for second in range(100):
        assert watchdog.look(Signs((0, second // 10)), float(second)) is None


def test_a_guest_that_boots_is_given_more_time() -> None:
    watchdog = Watchdog(15.0, 90.0)
    answers = [watchdog.look(Signs((0,), ("client",), booting=True), float(second)) for second in range(91)]
    assert answers[:90] == [None] * 90
    assert answers[90] == Hung(90.0, ("client",))


def test_a_harness_that_was_stopped_draws_no_conclusion() -> None:
    watchdog = Watchdog(15.0)
    assert watchdog.look(Signs((1,)), 0.0) is None
    assert watchdog.look(Signs((1,)), 500.0) is None
    assert watchdog.look(Signs((1,)), 507.0) is None
