# SPDX-License-Identifier: Apache-2.0
"""Stamps against the clock, the functions and the frames of their machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mutation import runs
from sundial.observe.steps import join, lane_of
from sundial.observe.trace import ENTRY, EXIT, HALT, NO_POINT, STAMP, Trace
from sundial.observe.trace import Point as Named
from sundial.plan.trace import Function
from sundial.seams.trace import Point
from sundial.verify import verify_run
from sundial.verify.traces import check_points, check_stamps, check_stores, check_transmits

POINTS = (
    Point(name="call", program="bin/client", address="10", size=8, stamps="both", role="call"),
    Point(name="__schedule", program=None, address="20", size=8, stamps="both"),
    Point(name="start_xmit", program=None, address="30", size=8, stamps="both", role="transmit"),
    Point(name="poll", program=None, address="40", size=8, stamps="entry"),
)
PLAN = (
    Function(("clnt_call", "call"), "client", "both", "call"),
    Function(("absent",), "client", needed=False),
    Function(("__schedule",)),
    Function(("start_xmit",), role="transmit"),
    Function(("poll",), stamps="entry"),
)
CALL, SCHEDULE, TRANSMIT, POLL = range(4)
ONE, OTHER = 1, 2
Row = tuple[int, int, int, int, int, int]


def stamp(ns: int, point: int, kind: int, thread: int = ONE, argument: int = 0) -> Row:
    return ns, 4096, thread, argument, point, kind


def halt(ns: int) -> Row:
    return ns, 0, 0, 0, NO_POINT, HALT


GOOD = [
    halt(3),
    stamp(100, SCHEDULE, EXIT),  # entered before the trace began
    stamp(108, CALL, ENTRY, argument=7),
    stamp(164, TRANSMIT, ENTRY),
    stamp(172, TRANSMIT, EXIT),
    stamp(180, SCHEDULE, ENTRY),
    stamp(180 + 8, SCHEDULE, EXIT, OTHER),
    stamp(196, POLL, ENTRY, OTHER),
    stamp(204, SCHEDULE, ENTRY, OTHER),
    halt(300),
    stamp(1001, SCHEDULE, EXIT),
    stamp(1009, CALL, EXIT),
]


def trace(rows: list[Row]) -> Trace:
    return Trace(tuple(Named(each.name, each.program, each.role) for each in POINTS), np.array(rows, STAMP))


def found(rows: list[Row], end_ns: int | None = 2000) -> list[tuple[str, str]]:
    return check_stamps(trace(rows), POINTS, 8, end_ns)


def changed(place: int, *rows: Row) -> list[Row]:
    return [*GOOD[:place], *rows, *GOOD[place + 1 :]]


def test_a_sound_trace() -> None:
    assert found(GOOD) == []
    assert list(check_points(POINTS, PLAN)) == []


@pytest.mark.parametrize(
    ("rows", "seen"),
    [
        (changed(3, stamp(165, TRANSMIT, ENTRY)), "57 ns from 108 ns to the next"),
        (changed(3, stamp(172, TRANSMIT, ENTRY), stamp(172, TRANSMIT, ENTRY)), "0 ns from 172 ns to the next"),
        (changed(3), "left at 172 ns"),
        (changed(3, stamp(164, TRANSMIT, ENTRY, OTHER)), "left at 172 ns"),
        (changed(3, stamp(164, POLL, EXIT)), "another at 164 ns"),
        (changed(4, stamp(172, TRANSMIT, EXIT, argument=1)), "some in the stamp at 172 ns"),
        (changed(5), "left twice, the second time at 188 ns"),
        (changed(9, (300, 0, 5, 0, NO_POINT, HALT)), "some in the stamp at 300 ns"),
        (changed(9, halt(301)), "97 ns from 204 ns to the next"),
    ],
)
def test_what_no_cpu_does(rows: list[Row], seen: str) -> None:
    # A transmission before it, so that its function was entered in that thread.
    before = [halt(3), stamp(40, TRANSMIT, ENTRY), stamp(48, TRANSMIT, EXIT), *rows[1:]]
    assert seen in [each[1] for each in check_stamps(trace(before), POINTS, 8, 2000)]


def test_stamps_lie_within_the_run() -> None:
    assert found(GOOD, 1009) == []
    assert found(GOOD, 1008) == [("stamps from 0 to 1008 ns, the end of the run", "3 to 1009 ns")]


def test_a_function_of_one_instruction_is_entered_and_left_at_once() -> None:
    assert found(changed(4, stamp(164, TRANSMIT, EXIT))) == []


@pytest.mark.parametrize(
    "points",
    [
        (POINTS[1], POINTS[0], *POINTS[2:]),
        POINTS[:3],
        (*POINTS, POINTS[3]),
        (*POINTS[:2], POINTS[2].model_copy(update={"role": None}), POINTS[3]),
        (*POINTS[:3], POINTS[3].model_copy(update={"stamps": "exit"})),
        (*POINTS[:3], POINTS[3].model_copy(update={"name": "other"})),
        (*POINTS[:3], POINTS[3].model_copy(update={"program": "bin/client"})),
    ],
)
def test_points_that_are_not_of_the_plan(points: tuple[Point, ...]) -> None:
    assert list(check_points(points, PLAN))


def test_each_frame_was_handed_in_by_a_stamped_call() -> None:
    lane = lane_of("client", trace(GOOD))

    def missing(*sent: int) -> list[tuple[str, str]]:
        join({"client": lane}, {}, {"client": sent})
        return list(check_transmits(lane, sent))

    assert missing() == missing(168) == missing(2, 168) == []
    assert missing(120) == [("a driver's call for each frame", "none for the one that left at 120 ns")]
    assert len(missing(168, 400)) == 1


def test_a_store_is_an_instruction_of_a_cpu_that_is_awake() -> None:
    lane = lane_of("client", trace(GOOD))
    assert list(check_stores(lane, [2, 116, 212, 1017], 8)) == []
    assert list(check_stores(lane, [113], 8)) == [("instructions of 8 ns until a store", "5 ns from 108 ns")]
    assert list(check_stores(lane, [308], 8)) == [
        ("no store by a CPU that sleeps", "one at 308 ns, asleep since 300 ns")
    ]


def test_steps_are_made_anew_whatever_was_written(tmp_path: Path) -> None:
    run = runs.recorded("trace-virtual", tmp_path)
    assert verify_run(run).problems == []
    steps = run / "steps.parquet"
    right = steps.read_bytes()
    steps.write_bytes(right[:-100])
    assert verify_run(run).problems == []
    assert steps.read_bytes() == right
