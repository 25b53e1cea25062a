# SPDX-License-Identifier: Apache-2.0
"""Fragments for which a machine has no memory: which datagrams may not have been put together."""

from __future__ import annotations

import polars as pl

from sundial.verify.sockets.reassembly import HELD_NS, MEMORY, refused

FRAGMENT = 4096
"""What one of 1480 octets takes at most."""
STEP_NS = 1_000_000
EXPECTED = pl.DataFrame({"call": [0], "reply": [False], "layout": ["whole"]})
FILLS = MEMORY // FRAGMENT


def run_of(unfinished: int, last_ns: int) -> list[int]:
    """Rows of the datagrams that may not have been put together: so many lack a fragment, and one comes whole in two
    at `last_ns`."""
    rows = list(range(unfinished + 2))
    times = [place * STEP_NS for place in range(unfinished)] + [last_ns - STEP_NS, last_ns]
    frames = pl.DataFrame({"row": rows, "end": "lan|server:eth0", "time_ns": times, "data": 1480},
                          schema_overrides={"row": pl.UInt32})  # fmt: skip
    parts = [([row], "part", times[row], 1) for row in rows[:unfinished]] + [(rows[-2:], "whole", last_ns, 2)]
    arrived = pl.DataFrame(
        [(0, False, layout, count, last, own) for own, layout, last, count in parts],
        schema={"call": pl.Int64, "reply": pl.Boolean, "layout": pl.String, "count": pl.Int64, "last_ns": pl.Int64,
                "rows": pl.List(pl.UInt32)}, orient="row",
    )  # fmt: skip
    return refused(frames, arrived, EXPECTED)["rows"].explode().to_list()


def test_a_datagram_that_comes_while_the_memory_is_full_may_be_lost() -> None:
    end_ns = FILLS * STEP_NS + 10 * STEP_NS
    assert run_of(FILLS, end_ns) == [FILLS, FILLS + 1]


def test_one_that_finds_room_is_put_together() -> None:
    """Its own two take room as well."""
    assert run_of(FILLS - 3, FILLS * STEP_NS) == []


def test_what_has_been_held_for_thirty_seconds_is_gone() -> None:
    assert run_of(FILLS, HELD_NS + FILLS * STEP_NS) == []
