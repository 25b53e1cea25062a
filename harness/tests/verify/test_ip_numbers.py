# SPDX-License-Identifier: Apache-2.0
"""The number 0 in IPv4's identification: what is sent for no socket has it, and so does a count that goes round."""

from __future__ import annotations

import polars as pl
import pytest

from sundial.verify.headers.ip import _without_unnumbered


@pytest.mark.parametrize(
    ("numbers", "kept"),
    [
        ([65534, 65535, 0, 1], [65534, 65535, 0, 1]),
        ([7, 0, 8], [7, 8]),
        ([65535, 1], [65535, 1]),
        ([0, 5], [5]),
    ],
)
def test_a_count_goes_round_through_zero(numbers: list[int], kept: list[int]) -> None:
    table = pl.DataFrame(
        {"ip_id": numbers, "time_ns": range(len(numbers)), "row": range(len(numbers)), "socket": [1] * len(numbers)}
    )
    assert _without_unnumbered(table, pl.col("ip_id") == 0, ["socket"])["ip_id"].to_list() == kept
