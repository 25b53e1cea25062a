# SPDX-License-Identifier: Apache-2.0
"""What the report shows of streams over a backplane."""

from __future__ import annotations

import polars as pl

from sundial.workloads.vmmc.report import KIND


def test_streams_have_a_rate_and_round_trips_none() -> None:
    """20 transfers of 4,096 bytes in 3,640 us, and half of that time for the other series."""
    names = ("client", "app", "transport", "procedure", "size", "rtt_ns", "ok")
    samples = pl.DataFrame(
        [
            ("a", "vmmc-client", "du", "stream", 4096, 3_640_000, True),
            ("a", "vmmc-client", "du", "stream", 4096, 1_820_000, True),
            ("a", "vmmc-client", "du", "stream", 8192, 9_000_000, False),
            ("a", "vmmc-client", "du", "round_trip", 4096, 700_000, True),
            ("a", "mbcf-client", "mbcf", "stream", 4096, 700_000, True),
        ],
        schema=names,
        orient="row",
    )
    line = {
        "machine": "a",
        "app": "vmmc-client",
        "transport": "du",
        "procedure": "stream",
        "size": 4096,
        "transfers": 20,
    }
    (table,) = KIND.tables({"batch": [line]}, samples)
    assert table.rows == (("a", "du", "4\u202f096", "20", "2\u202f730.0", "30.01"),)
    assert list(KIND.tables({}, samples)) == []
    assert (KIND.moves("round_trip"), KIND.moves("stream")) == (2, 0)
