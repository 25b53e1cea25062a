# SPDX-License-Identifier: Apache-2.0
"""How seldom counts are, by Chernoff's bound."""

from __future__ import annotations

import pytest

from sundial.verify.chance import hardly


@pytest.mark.parametrize("tried", [1, 2, 1000])
def test_what_always_happens_happens_each_time(tried: int) -> None:
    assert not hardly(tried, tried, 1.0, fewer=True)
    assert not hardly(tried, tried, 1.0, fewer=False)
    assert hardly(tried - 1, tried, 1.0, fewer=True)
    assert hardly(tried + 1, tried, 1.0, fewer=False)


@pytest.mark.parametrize(
    ("seen", "share", "fewer", "expected"),
    [
        (50, 0.5, True, False), (50, 0.5, False, False), (0, 0.5, True, True), (100, 0.5, False, True),
        (100, 0.5, True, False), (0, 0.5, False, False), (0, 0.01, True, False),
    ],
)  # fmt: skip
def test_counts_of_a_hundred(seen: int, share: float, fewer: bool, expected: bool) -> None:
    assert hardly(seen, 100, share, fewer=fewer) is expected
