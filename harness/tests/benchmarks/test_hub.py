# SPDX-License-Identifier: Apache-2.0
"""The formula that the hub is held beside, against what can be worked out by hand."""

from __future__ import annotations

import math

import pytest

from benchmarks.hub import metcalfe_boggs


def test_one_station_loses_nothing() -> None:
    assert metcalfe_boggs(1, 512) == 1


@pytest.mark.parametrize(
    ("stations", "frame_bits", "slot_bits", "efficiency"),
    [
        # Two are in agreement in every other slot: one lost slot a frame.
        (2, 512, 512, 1 / 2),
        (2, 4096, 48, 4096 / (4096 + 48)),
        # Three: (2/3)^2 = 4/9 of the slots are won, 5/4 lost for each.
        (3, 512, 512, 4 / 9),
        (3, 4096, 48, 4096 / (4096 + 48 * 5 / 4)),
    ],
)
def test_slots_that_nobody_wins_are_lost(stations: int, frame_bits: int, slot_bits: int, efficiency: float) -> None:
    assert metcalfe_boggs(stations, frame_bits, slot_bits) == pytest.approx(efficiency)


def test_many_stations_win_one_slot_in_e() -> None:
    assert metcalfe_boggs(10**6, 512) == pytest.approx(1 / math.e, abs=1e-6)
