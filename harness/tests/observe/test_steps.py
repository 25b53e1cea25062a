# SPDX-License-Identifier: Apache-2.0
"""Calls divided into steps, from made-up stamps: what is on the path, and that it is always the round trip."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sundial.observe.steps import Arrival, Call, Lane, Step, join, lane_of, marked, paths, sums
from sundial.observe.trace import ENTRY, EXIT, HALT, NO_POINT, STAMP, Point, Trace, without_repeated

POINTS = (
    Point("send", "apps", "call"),
    Point("work", "apps", None),
    Point("start_xmit", None, "transmit"),
    Point("interrupt", None, None),
    Point("asm_exc_page_fault", None, None),
    Point("look", "apps", "poll"),
)
PLACES = {point.name: place for place, point in enumerate(POINTS)}
Stamp = tuple[int, str]
"""Time, and `NAME/`, `NAME\\`, or `halt`; a thread may stand in front: `2:send/`."""


def trace(*stamps: Stamp, points: tuple[Point, ...] = POINTS) -> Trace:
    rows = []
    for ns, word in stamps:
        thread, _, name = word.rpartition(":")
        context = int(thread or 1)
        if name == "halt":
            rows.append((ns, 0, 0, 0, NO_POINT, HALT))
        else:
            kind = ENTRY if name.endswith("/") else EXIT
            rows.append((ns, context, context, 7 if kind == ENTRY else 0, PLACES[name[:-1]], kind))
    return Trace(points, np.array(rows, dtype=STAMP))


def lanes(**traces: Trace) -> dict[str, Lane]:
    return {name: lane_of(name, each) for name, each in traces.items()}


def shown(steps: Sequence[Step], call: int = 0, *, on_path: bool = True) -> list[tuple[str, str, int]]:
    """Machine, step and length of each."""
    return [
        (step.node, step.step, step.end_ns - step.start_ns)
        for step in steps
        if step.call == call and step.on_path == on_path
    ]


CLIENT = (
    (100, "send/"),
    (110, "start_xmit/"),
    (118, "start_xmit\\"),
    (125, "halt"),
    (400, "interrupt/"),
    (410, "send\\"),
)
SERVER = ((20, "halt"), (200, "interrupt/"), (210, "work/"), (230, "start_xmit/"), (238, "start_xmit\\"), (250, "halt"))


def test_a_call_goes_over_the_wire_and_back() -> None:
    made = lanes(client=trace(*CLIENT), server=trace(*SERVER))
    join(
        made,
        {"server": [Arrival(198, "client", 115)], "client": [Arrival(398, "server", 235)]},
        {"client": [115], "server": [235]},
    )
    steps = paths(made, [Call(0, "client", 95, 415)])
    assert shown(steps) == [
        ("client", "call → send", 5),
        ("client", "send → start_xmit", 10),
        ("client", "start_xmit → handed in", 5),
        ("", "wire", 83),
        ("server", "receive", 2),
        ("server", "interrupt → work", 10),
        ("server", "work → start_xmit", 20),
        ("server", "start_xmit → handed in", 5),
        ("", "wire", 163),
        ("client", "receive", 2),
        ("client", "interrupt → send end", 10),
        ("client", "send end → return", 5),
    ]
    assert shown(steps, on_path=False) == [
        ("client", "handed in → start_xmit end", 3),
        ("client", "start_xmit end → idle", 7),
        ("server", "handed in → start_xmit end", 3),
        ("server", "start_xmit end → idle", 12),
    ]
    assert sums(steps) == {0: 320}
    assert [step.occurrence for step in steps if step.step == "wire"] == [0, 1]


def test_a_frame_that_waits_for_the_wire_is_handed_in_when_its_driver_returns() -> None:
    made = lanes(client=trace(*CLIENT), server=trace(*SERVER))
    join(made, {"server": [Arrival(198, "client", 150)], "client": [Arrival(398, "server", 235)]}, {"client": [150]})
    steps = shown(paths(made, [Call(0, "client", 95, 415)]))
    assert ("client", "send", 32) in steps
    assert ("client", "start_xmit → handed in", 8) in steps


def test_frames_are_matched_to_the_driver_from_the_last_backwards() -> None:
    burst = trace((10, "start_xmit/"), (14, "start_xmit\\"), (20, "start_xmit/"), (24, "start_xmit\\"), (30, "halt"))
    made = lanes(client=burst)
    join(made, {}, {"client": [12, 100]})
    assert made["client"].handed == {12: 12, 100: 24}
    # One that the driver sent without a capture, and a driver whose last call is a jump.
    tail = trace((5, "start_xmit/"), (7, "work/"), (20, "start_xmit/"), (23, "work/"), (30, "halt"))
    made = lanes(client=tail)
    join(made, {}, {"client": [40]})
    assert made["client"].handed == {40: 23}


def test_idle_that_a_timer_ends_is_a_step() -> None:
    client = trace((100, "send/"), (120, "halt"), (300, "interrupt/"), (310, "send\\"))
    steps = paths(lanes(client=client), [Call(0, "client", 95, 315)])
    assert ("client", "idle → interrupt", 180) in shown(steps)
    assert sums(steps) == {0: 220}


def test_a_frame_that_comes_while_a_timer_has_the_cpu_is_the_cause() -> None:
    client = trace(
        (100, "send/"), (110, "start_xmit/"), (118, "start_xmit\\"), (125, "halt"),
        (390, "work/"), (405, "interrupt/"), (420, "send\\"),
    )  # fmt: skip
    made = lanes(client=client, server=trace(*SERVER))
    join(
        made,
        {"server": [Arrival(198, "client", 115)], "client": [Arrival(398, "server", 235)]},
        {"client": [115], "server": [235]},
    )
    steps = paths(made, [Call(0, "client", 95, 425)])
    assert [each for each in shown(steps) if each[1] == "wire"] == [("", "wire", 83), ("", "wire", 163)]
    assert ("client", "work → interrupt", 7) in shown(steps)  # since the frame came
    assert ("client", "work → interrupt", 8) in shown(steps, on_path=False)  # before it
    assert sums(steps) == {0: 330}


def polled(*server: Stamp, to_server: Sequence[Arrival], to_client: Arrival, until: int = 415) -> list[Step]:
    """A call from 95 on of a client without a stamp in it, which polls by itself."""
    made = lanes(client=trace((20, "halt")), server=trace(*server))
    join(made, {"server": to_server, "client": [to_client]}, {})
    steps = paths(made, [Call(0, "client", 95, until)])
    assert sums(steps) == {0: until - 95}
    return steps


REPLY = Arrival(398, "server", 240, stored_ns=235)


def test_what_is_polled_for_is_the_last_that_came_before_the_poll_ended() -> None:
    steps = polled(
        (180, "look/"), (210, "work/"), (250, "work\\"), (260, "look/"),
        to_server=[Arrival(190, "client", 100, 98), Arrival(202, "client", 130, 120), Arrival(240, "client", 150, 149)],
        to_client=REPLY,
    )  # fmt: skip
    assert shown(steps) == [
        ("client", "call → handed in", 25),
        ("client", "send", 10),
        ("", "wire", 72),
        ("server", "receive", 8),
        ("server", "work → handed in", 25),
        ("server", "send", 5),
        ("", "wire", 158),
        ("client", "receive", 17),
    ]
    assert shown(steps, on_path=False) == [
        ("server", "look → work", 22),
        ("server", "handed in → work end", 15),
        ("server", "work end → look", 10),
    ]


def test_what_comes_between_two_polls_is_found_by_the_second() -> None:
    steps = polled(
        (150, "look/"), (170, "look\\"), (180, "interrupt/"), (200, "look/"), (210, "work/"),
        to_server=[Arrival(185, "client", 130, 120)], to_client=REPLY,
    )  # fmt: skip
    assert [each for each in shown(steps) if each[0] == "server"][:3] == [
        ("server", "receive", 15),  # from here on the CPU goes to where it is seen
        ("server", "look → work", 10),
        ("server", "work → handed in", 25),
    ]
    assert ("server", "interrupt → look", 5) in shown(steps, on_path=False)


def test_a_poll_finds_what_the_client_of_the_call_has_sent() -> None:
    steps = polled(
        (180, "look/"), (210, "work/"),
        to_server=[Arrival(195, "client", 130, 120), Arrival(205, "other", 140, 139)], to_client=REPLY,
    )  # fmt: skip
    assert {step.node for step in steps if step.on_path} == {"client", "", "server"}
    assert ("", "wire", 65) in shown(steps)


def test_who_does_not_poll_has_not_waited_for_what_comes() -> None:
    steps = polled(
        (50, "look/"), (100, "work/"),
        to_server=[Arrival(195, "client", 130, 120)], to_client=REPLY,
    )  # fmt: skip
    assert [each[1] for each in shown(steps)] == [
        "look → work", "work → handed in", "send", "wire", "receive",
    ]  # fmt: skip


def test_a_thread_polls_until_its_program_says_otherwise_whatever_the_kernel_does() -> None:
    lane = lane_of("server", trace(
        (10, "1:look/"), (20, "1:interrupt/"), (30, "2:work/"), (40, "1:look\\"), (50, "1:interrupt/"), (60, "halt"),
    ))  # fmt: skip
    assert lane.polls == [True, True, False, False, False, False]
    assert lane.of_programs == [True, False, True, True, False, False]


def test_a_sleeper_is_woken_by_what_notifies_alone() -> None:
    server = ((180, "halt"), (212, "interrupt/"), (220, "work/"))
    silent, notifying = Arrival(190, "client", 110, 105, wakes=False), Arrival(208, "client", 130, 120)
    steps = polled(*server, to_server=[silent, notifying], to_client=REPLY)
    assert [each for each in shown(steps) if each[1] in ("wire", "receive")][:2] == [
        ("", "wire", 78),
        ("server", "receive", 4),
    ]


def test_only_a_backplane_is_polled_without_a_stamp() -> None:
    made = lanes(client=trace((20, "interrupt/")))
    join(made, {"client": [Arrival(398, "server", 235)]}, {})
    assert shown(paths(made, [Call(0, "client", 95, 415)])) == [("client", "call → return", 320)]


def test_a_machine_that_is_not_traced_is_elsewhere() -> None:
    made = lanes(client=trace(*CLIENT))
    join(made, {"client": [Arrival(398, "server", 235)]}, {"client": [115]})
    steps = shown(paths(made, [Call(0, "client", 95, 415)]))
    assert steps[:2] == [("server", "elsewhere", 140), ("", "wire", 163)]


def test_calls_of_several_threads_have_a_path_each_and_share_the_cpu() -> None:
    client = trace(
        (100, "1:send/"), (120, "2:send/"), (140, "halt"), (300, "interrupt/"), (310, "1:send\\"), (330, "2:send\\"),
    )  # fmt: skip
    calls = [Call(0, "client", 95, 312), Call(1, "client", 118, 335)]
    made = lanes(client=client)
    steps = paths(made, calls)
    assert sums(steps) == {0: 217, 1: 217}
    assert ("client", "send end → send end", 20) in shown(steps, 1)  # thread 1 had the CPU
    assert {step.thread for step in steps if step.call == 1} == {0, 1, 2}
    assert shown(steps, 0, on_path=False) == shown(steps, 1, on_path=False) == []


def test_a_call_is_marked_by_stamps_within_it() -> None:
    (lane,) = lanes(client=trace((100, "send/"), (200, "send\\"), (300, "send/"))).values()
    assert marked(lane, Call(0, "client", 95, 205))
    assert not marked(lane, Call(0, "client", 95, 199))
    assert not marked(lane, Call(0, "client", 101, 400))
    assert not marked(lane, Call(0, "client", 250, 400))


def test_an_entry_that_faults_is_stamped_once() -> None:
    faulting = trace((10, "1:work/"), (12, "1:asm_exc_page_fault/"), (30, "1:work/"), (40, "1:work\\"))
    kept = without_repeated(faulting)
    assert (kept.repeated, kept.stamps["ns"].tolist()) == (1, [12, 30, 40])


def test_what_really_happens_twice_is_kept() -> None:
    # Entered twice without a fault between; another thread's; left in between; a function of the kernel.
    for stamps in (
        [(10, "1:work/"), (30, "1:work/")],
        [(10, "1:work/"), (12, "2:asm_exc_page_fault/"), (30, "1:work/")],
        [(10, "1:work/"), (12, "1:asm_exc_page_fault/"), (30, "2:work/")],
        [(10, "1:work/"), (12, "1:asm_exc_page_fault/"), (20, "1:interrupt/"), (30, "1:work/")],
        [(10, "1:interrupt/"), (12, "1:asm_exc_page_fault/"), (30, "1:interrupt/")],
    ):
        assert without_repeated(trace(*stamps)).repeated == 0, stamps
    # Where faults are not stamped, nothing of the thread is between.
    silent = tuple(point for point in POINTS if point.name != "asm_exc_page_fault")
    assert without_repeated(trace((10, "1:work/"), (11, "2:work/"), (30, "1:work/"), points=silent)).repeated == 1


WORDS = st.sampled_from(
    ["send/", "send\\", "work/", "work\\", "start_xmit/", "start_xmit\\", "interrupt/", "look/", "look\\", "halt"]
)


@st.composite
def machines(draw: st.DrawFn) -> tuple[dict[str, Lane], list[Call]]:
    """Two machines with any stamps, frames between them, and calls that overlap."""
    made, arrivals, sent = {}, {}, {}
    for name, other in (("client", "server"), ("server", "client")):
        times = sorted(draw(st.sets(st.integers(0, 2000), max_size=40)))
        threads = draw(st.lists(st.integers(1, 3), min_size=len(times), max_size=len(times)))
        words = draw(st.lists(WORDS, min_size=len(times), max_size=len(times)))
        stamps = [(ns, f"{thread}:{word}") for ns, thread, word in zip(times, threads, words, strict=True)]
        made[name] = lane_of(name, trace(*stamps))
        left = sorted(draw(st.sets(st.integers(0, 1900), max_size=8)))
        sent[name] = left
        way = draw(st.integers(1, 100))
        waited = draw(st.lists(st.integers(-1, 50), min_size=len(left), max_size=len(left)))
        arrivals[other] = [
            Arrival(ns + way, name, ns, -1 if wait < 0 or wait > ns else ns - wait, draw(st.booleans()))
            for ns, wait in zip(left, waited, strict=True)
        ]
    join(made, arrivals, sent)
    begins = draw(st.lists(st.integers(0, 1500), max_size=4))
    calls = [Call(number, "client", begin, begin + draw(st.integers(1, 500))) for number, begin in enumerate(begins)]
    return made, calls


@given(machines())
def test_steps_are_the_round_trip_whatever_the_stamps(case: tuple[dict[str, Lane], list[Call]]) -> None:
    made, calls = case
    steps = paths(made, calls)
    assert sums(steps) == {call.number: call.end_ns - call.start_ns for call in calls}
    for call in calls:
        own = [step for step in steps if step.call == call.number]
        path = [step for step in own if step.on_path]
        assert path[0].start_ns == call.start_ns
        assert path[-1].end_ns == call.end_ns
        assert all(one.end_ns == other.start_ns for one, other in pairwise(path))
        assert all(call.start_ns <= step.start_ns < step.end_ns <= call.end_ns for step in own)
        assert len({(step.node, step.step, step.occurrence) for step in own}) == len(own)


@given(machines())
def test_a_machine_does_one_thing_at_a_time(case: tuple[dict[str, Lane], list[Call]]) -> None:
    made, calls = case
    for name in made:
        beside = sorted(
            (step.start_ns, step.end_ns) for step in paths(made, calls) if step.node == name and not step.on_path
        )
        assert all(one[1] <= other[0] for one, other in pairwise(beside))


def test_sums_leave_out_calls_whose_steps_do_not_join() -> None:
    def step(start_ns: int, end_ns: int) -> Step:
        return Step(0, "client", 0, "x", 0, start_ns, end_ns, True)

    assert sums([step(0, 5), step(5, 9)]) == {0: 9}
    assert sums([step(0, 5), step(6, 9)]) == {}
