# SPDX-License-Identifier: Apache-2.0
"""A simulated sweep: virtual time follows from what binds it."""

from __future__ import annotations

import pytest

from benchmarks.sweeping import PLACING_S, RUN_S, simulate


def test_many_slots_are_bound_by_placing_and_few_by_the_runs() -> None:
    many, few = simulate(1000, hosts=100, slots=32), simulate(300, hosts=1, slots=2)
    assert many.wall_s == pytest.approx(1020 * PLACING_S + 2 * sum(RUN_S) / 2, rel=0.05)
    assert few.in_use > 0.97
    assert simulate(300, hosts=1, slots=2).wall_s == few.wall_s
