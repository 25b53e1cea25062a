# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable

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


def booting(watchdog: Watchdog, used_s: Callable[[float], float | None], seconds: int) -> Hung | None:
    """The first verdict over a guest that boots silently and has used so much processor time at each second."""
    for second in range(seconds):
        used = used_s(float(second))
        signs = Signs((0,), ("client",), by_processor=True, processor_s=None if used is None else (used,))
        hung = watchdog.look(signs, float(second))
        if hung is not None:
            return hung
    return None


def test_a_guest_that_boots_lives_as_long_as_it_computes() -> None:
    # On a host so busy that it gets a twentieth of a processor, for eight minutes: less than a boot may take.
    assert booting(Watchdog(15.0, 25.0), lambda second: second / 20, 480) is None


def test_a_guest_that_stands_still_while_it_boots_is_hung() -> None:
    assert booting(Watchdog(15.0, 25.0), lambda second: min(second, 2.0), 60) == Hung(17.0, ("client",))


def test_timers_of_a_halted_machine_are_no_life() -> None:
    assert booting(Watchdog(15.0, 25.0), lambda second: second / 100, 60) == Hung(15.0, ("client",))


def test_a_guest_that_spins_while_it_boots_is_hung_within_30_s() -> None:
    assert booting(Watchdog(), lambda second: second, 60) == Hung(25.0, ("client",))


def test_a_guest_elsewhere_is_given_more_time() -> None:
    assert booting(Watchdog(), lambda second: None, 100) == Hung(90.0, ("client",))


def test_the_next_that_boots_is_measured_from_its_own_start() -> None:
    watchdog = Watchdog(15.0, 25.0)
    for second in range(13):
        assert watchdog.look(Signs((0,), ("a", "b"), True, (second, second)), float(second)) is None
    assert watchdog.look(Signs((0,), ("b",), True, (12.0,)), 13.0) is None
    assert watchdog.look(Signs((0,), ("b",), True, (20.0,)), 20.0) is None
    assert watchdog.look(Signs((0,), ("b",), True, (37.0,)), 27.0) == Hung(14.0, ("b",))


def test_six_that_boot_at_once_on_two_processors_may_take_as_long_as_they_need() -> None:
    names = tuple("abcdef")
    watchdog = Watchdog(15.0, 25.0)
    for second in range(74):
        assert watchdog.look(Signs((0,), names, True, (second / 3,) * 6), float(second)) is None
    assert watchdog.look(Signs((0,), names, True, (25.0,) * 6), 75.0) == Hung(75.0, names)


def test_a_harness_that_was_stopped_draws_no_conclusion() -> None:
    watchdog = Watchdog(15.0)
    assert watchdog.look(Signs((1,)), 0.0) is None
    assert watchdog.look(Signs((1,)), 500.0) is None
    assert watchdog.look(Signs((1,)), 507.0) is None


def test_a_harness_that_was_stopped_for_as_long_as_a_hang_draws_no_conclusion() -> None:
    watchdog = Watchdog(15.0)
    assert watchdog.look(Signs((1,)), 0.0) is None
    assert watchdog.look(Signs((1,)), 16.0) is None
    assert watchdog.look(Signs((1,)), 17.0) is None
