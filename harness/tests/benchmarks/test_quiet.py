# SPDX-License-Identifier: Apache-2.0
"""When a host counts as quiet, and that what makes it loud is gone afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.context import Context
from benchmarks.figure import Figure, Outcome
from benchmarks.hogs import busy_loops
from benchmarks.quiet import ENOUGH, Meter
from benchmarks.registry import Benchmark, run_benchmark


def meter(file: Path, readings: list[float | None], host: str = "a host") -> Meter:
    found = iter(readings)
    return Meter(lambda: next(found), host, file)


def test_a_host_is_quiet_near_the_best_that_it_ever_gave(tmp_path: Path) -> None:
    file = tmp_path / "bench" / "free.json"
    earlier = meter(file, [0.40, 0.50, 0.50, 0.50])
    for _ in range(4):
        earlier.look()
    assert earlier.best is None  # too few of them
    now = meter(file, [0.44, 0.47, 0.90, 0.46, 0.60, 0.47])
    near = now.begin()
    for _ in range(3):
        now.look()
    far = now.begin()
    for _ in range(3):
        now.look()
    assert now.best == 0.40
    # The medians are 0.47 each: 17 % above the best, but not above 0.41.
    assert near.median == far.median == 0.47
    assert not near.quiet(0.40)
    assert near.quiet(0.41)
    assert meter(file, [], "another host").best is None


def test_a_line_says_what_was_reached_and_what_could_be(tmp_path: Path) -> None:
    gauge = meter(tmp_path / "free.json", [0.4] * ENOUGH + [0.5, 0.5, 0.5])
    figure = Figure("subject", "name", "s", (1.0,), minutes=gauge.begin())
    assert figure.host(gauge.best) == "unknown"
    assert gauge.said == "no guests running free"
    for _ in range(ENOUGH):
        gauge.look()
    assert figure.host(gauge.best) == "quiet, 0.4 (0.4)"
    loud = Figure("subject", "name", "s", (1.0,), minutes=gauge.begin())
    for _ in range(3):
        gauge.look()
    assert loud.host(gauge.best) == "loaded, 0.5 (0.4)"
    assert gauge.said == "guests running free 0.50 wall s / virtual s, best of this host 0.40"
    assert Figure("subject", "name", "gates", (1.0,), anywhere=True).host(gauge.best) == "any"
    assert loud.to_json(gauge.best)["free_running"] == [0.5, 0.5, 0.5]


@pytest.mark.parametrize("damaged", ["", "[]", '{"a host": {"best": 1}}', "{"])
def test_a_damaged_file_is_begun_again(tmp_path: Path, damaged: str) -> None:
    file = tmp_path / "free.json"
    file.write_text(damaged)
    gauge = meter(file, [0.4] * ENOUGH)
    assert "never measured" in gauge.line()
    for _ in range(ENOUGH):
        gauge.look()
    assert gauge.best == 0.4
    assert "0.400 wall s / virtual s on 20" in gauge.line()


def test_free_guests_take_their_turn_in_every_turn(tmp_path: Path) -> None:
    gauge = meter(tmp_path / "free.json", [0.1, 0.2, None, 0.4])

    def measure(context: Context) -> Iterator[Outcome]:
        turns = context.in_turns({"a": lambda: 1.0})
        assert turns.free == [0.2, None]
        yield Figure("subject", "a", "s", tuple(turns.found["a"]))

    (figure,) = run_benchmark(Benchmark("name", "what", measure), quick=True, meter=gauge)
    assert isinstance(figure, Figure)
    assert figure.minutes is not None
    assert figure.minutes.readings == [0.1, 0.2, 0.4]


def test_what_does_not_depend_on_the_host_takes_no_readings(tmp_path: Path) -> None:
    def measure(context: Context) -> Iterator[Outcome]:
        assert context.in_turns({"a": lambda: 1.0}).free == []
        yield Figure("subject", "a", "damages", (1.0,))

    gauge = meter(tmp_path / "free.json", [])
    (figure,) = run_benchmark(Benchmark("name", "what", measure, timed=False), quick=True, meter=gauge)
    assert isinstance(figure, Figure)
    assert figure.host(None) == "any"


def test_busy_loops_are_in_sessions_of_their_own_and_end() -> None:
    with busy_loops(2) as loops:
        sessions = {os.getsid(loop.pid) for loop in loops}
        assert sessions == {loop.pid for loop in loops}
        assert all(loop.poll() is None for loop in loops)
    assert all(loop.returncode is not None for loop in loops)


def test_a_busy_loop_ends_with_whoever_started_it() -> None:
    with busy_loops(1) as (loop,):
        assert loop.stdin is not None
        loop.stdin.close()  # as the kernel does it when a process dies
        assert loop.wait(30) == 0
