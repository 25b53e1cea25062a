# SPDX-License-Identifier: Apache-2.0
"""What versions of iperf3 count differently."""

import pytest

from sundial.workloads.iperf3.verify_result import uncounted_bytes


@pytest.mark.parametrize(
    ("version", "most"),
    [
        ("iperf 3.12", 0),
        ("iperf 3.15-mt-beta1", 0),
        ("iperf 3.16", 131071),
        ("iperf 3.18", 131071),
        ("iperf 4.0", 131071),
        (None, 0),
        ("?", 0),
    ],
)
def test_a_thread_that_is_cancelled_has_written_less_than_a_block_more(version: str | None, most: int) -> None:
    assert uncounted_bytes({"start": {"version": version, "test_start": {"blksize": 131072}}}) == most


@pytest.mark.parametrize("start", [None, {}, {"version": "iperf 3.18"}, {"version": "iperf 3.18", "test_start": None}])
def test_a_result_without_a_block_size_allows_nothing(start: object) -> None:
    assert uncounted_bytes({"start": start}) == 0
