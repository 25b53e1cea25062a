# SPDX-License-Identifier: Apache-2.0
"""Counts of lock-step, from reports of plugins that are older or newer, and the ratios that are promised."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from benchmarks.context import Turns
from benchmarks.counts import Counts
from benchmarks.figure import Figure, Unmeasured
from benchmarks.virtual_time import BESIDE, FREE_BESIDE, Slope, _counts, _ratios
from sundial.machines import shm

SHORT = [{"instructions": 1000, "gates": 4, "looks": 6, "sleeps": 5, "translations": 9} for _ in range(2)]
LONG = [{"instructions": 251_000, "gates": 104, "looks": 1106, "sleeps": 405, "translations": 21} for _ in range(2)]


def test_counts_are_sums_over_machines_and_differences_of_runs() -> None:
    counts = Counts.of(LONG).less(Counts.of(SHORT))
    assert counts == Counts(instructions=500_000, gates=2400, exits=200, sleeps=800, translations=24)
    assert counts.sleeps_by(200) == 4
    # 500,000 instructions of 8 ns are 4 ms: 2000 times a lookahead of 2 us.
    assert counts.gates_by_quanta(8, 2000) == pytest.approx(1.2)
    assert counts.translations_by_gates() == 0.01
    assert counts.exits_by_gates() == pytest.approx(200 / 2400)


def test_what_a_plugin_does_not_count_is_left_out() -> None:
    counts = Counts.of([*LONG, {"instructions": 5, "gates": 1, "looks": 0}])
    assert (counts.gates, counts.sleeps, counts.translations) == (2421, None, None)
    slope = Slope(1.0, calls=10, counts=counts.less(Counts.of(SHORT)), lookahead_ns=2000)
    names = [figure.name for figure in _counts("subject", {"echo, x": [slope], "idle, x": [slope]})]
    assert names == ["echo, x: gates", "echo, x: gates that left the CPU's loop"]
    assert Counts.of([{}]).gates_by_quanta(8, 2000) is None
    assert counts.gates_by_quanta(8, None) is None


def test_ratios_are_taken_turn_by_turn() -> None:
    turns: Turns[Slope] = Turns(free=[0.5, 1.0])
    turns.found["echo, 10 Mbit/s"] = [Slope(0.7), Slope(1.5)]
    turns.found[f"echo, 10 Mbit/s{BESIDE}"] = [Slope(1.6), Slope(2.8)]
    turns.found[FREE_BESIDE] = [Slope(0.8), Slope(1.4)]
    figures = {figure.name: figure for figure in _ratios("subject", turns) if isinstance(figure, Figure)}
    alone = figures["echo, 10 Mbit/s"]
    assert (alone.values, str(alone.against), alone.verdict) == ((1.4, 1.5), "at most 1.5", "pass")
    without, beside = (figures[f"echo, 10 Mbit/s{BESIDE}, by free {where} them"] for where in ("without", "beside"))
    assert without.values == (3.2, 2.8)
    assert (beside.values, str(beside.against)) == ((2.0, 2.0), "at most 3")


def test_without_free_guests_in_every_turn_there_is_no_ratio() -> None:
    turns: Turns[Slope] = Turns(free=[0.5, None], found={"echo, 10 Mbit/s": [Slope(1), Slope(1)]})
    (only,) = _ratios("subject", turns)
    assert isinstance(only, Unmeasured)


def test_the_lookahead_is_the_least_distance_between_two_machines(tmp_path: Path) -> None:
    shared = shm._Shared()
    shared.fixed.magic, shared.fixed.version, shared.fixed.machine_count = shm.MAGIC, shm.VERSION, 3
    for place in range(shm.MACHINES**2):
        shared.fixed.distance_ns[place] = 2**64 - 1
    for place in range(3):
        shared.fixed.distance_ns[shm.MACHINES * place + place] = 7
    file = tmp_path / shm.TIMES
    file.write_bytes(bytes(shared))
    assert shm.lookahead_ns(tmp_path) is None
    shared.fixed.distance_ns[shm.MACHINES * 0 + 2] = 16_500
    shared.fixed.distance_ns[shm.MACHINES * 2 + 1] = 12_000
    file.write_bytes(bytes(shared))
    assert shm.lookahead_ns(tmp_path) == 12_000
    file.write_bytes(bytes(ctypes.sizeof(shm._Shared)))
    assert shm.lookahead_ns(tmp_path) is None
    assert shm.lookahead_ns(tmp_path / "none") is None
