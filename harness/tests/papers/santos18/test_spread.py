# SPDX-License-Identifier: Apache-2.0
"""Statistics of one function's times."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sundial.papers.santos18.spread import spread

PAPER = (2.0, 98.0)


def test_of_512_different_times_490_stay_as_in_the_paper() -> None:
    found = spread([1_000_000 * (each + 1) for each in range(512)], PAPER)
    assert (found.calls, found.kept) == (512, 490)
    assert (found.trimmed[0], found.trimmed[-1]) == (12.0, 501.0)
    assert found.mean == found.whole_mean == 256.5
    # The standard deviation of 490 numbers in a row is sqrt((490^2 - 1) / 12 * 490 / 489).
    assert found.standard_error == pytest.approx(np.sqrt((490**2 - 1) / 12 * 490 / 489 / 490))
    assert found.quartiles == (128.75, 256.5, 384.25)
    assert (found.box, found.trimmed_box) == (255.5, 244.5)


def test_what_is_far_off_is_in_the_whole_mean_alone() -> None:
    found = spread([1_000_000] * 99 + [1_000_000_000], PAPER)
    assert (found.mean, found.whole_mean, found.most, found.median) == (1.0, 10.99, 1000.0, 1.0)
    assert found.median_between == (1.0, 1.0)
    assert found.standard_error == 0.0


def test_one_time_is_its_own_mean() -> None:
    found = spread([2_500_000], PAPER)
    assert (found.kept, found.mean, found.standard_error, found.box) == (1, 2.5, 0.0, 0.0)
    with pytest.raises(ValueError, match="no times"):
        spread([], PAPER)


@given(st.lists(st.integers(1, 10**10), min_size=3, max_size=60), st.integers(0, 5))
def test_order_does_not_matter_and_the_median_is_within_its_interval(times: list[int], seed: int) -> None:
    one, other = spread(times, PAPER, seed), spread(times[::-1], PAPER, seed)
    assert (one.mean, one.quartiles, one.median_between) == (other.mean, other.quartiles, other.median_between)
    assert one.median_between[0] <= one.median <= one.median_between[1]
    assert one.least <= one.trimmed.min() <= one.trimmed.max() <= one.most
