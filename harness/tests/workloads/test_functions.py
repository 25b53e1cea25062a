# SPDX-License-Identifier: Apache-2.0
"""The twelve functions: what the paper says of them."""

from __future__ import annotations

import math

from sundial.workloads.functions import BY_NAME, FUNCTIONS, NAMES


def test_they_are_the_papers_twelve_in_its_order() -> None:
    assert [each.number for each in FUNCTIONS] == list(range(1, 13))
    assert len(set(NAMES)) == 12
    assert [len(each.arguments) for each in FUNCTIONS] == [0, *[1] * 10, 2]
    assert [len(BY_NAME[f"string_{length}"].result) for length in (32, 512, 1024)] == [32, 512, 1024]  # type: ignore[arg-type]
    arrays = [each for each in FUNCTIONS[1:11] if each.contains]
    assert [(each.name, len(each.result)) for each in arrays] == [  # type: ignore[arg-type]
        ("int_array", 200), ("float_array", 200), ("string_array", 200),
    ]  # fmt: skip


def test_functions_two_to_eleven_return_their_argument() -> None:
    assert all(each.result == each.arguments[0] for each in FUNCTIONS[1:11])
    assert BY_NAME["void"].result is None
    assert BY_NAME["distance"].result == math.sqrt(9 + 4)
