# SPDX-License-Identifier: Apache-2.0
"""Requests that were made before their answer came and left after it: only where their line had no pause since."""

from __future__ import annotations

from functools import partial

import polars as pl
import pytest

from sundial.verify.contention import contention_of
from sundial.verify.sockets.retransmission_causes import unexplained, waited


@pytest.mark.parametrize(
    ("taken", "behind"),
    [
        ([(900, 1_500), (1_500, 2_000)], True),
        ([(900, 1_500), (1_501, 2_000)], False),
        ([(1_001, 2_000)], False),
        ([], False),
    ],
)
def test_a_request_has_waited_where_its_line_had_no_pause(taken: list[tuple[int, int]], behind: bool) -> None:
    """The answer comes at 1000, the request leaves at 2000."""
    ports = pl.DataFrame({"row": [7, 8], "interface": ["client:eth0", "server:eth0"]},
                         schema_overrides={"row": pl.UInt32})  # fmt: skip
    events = pl.DataFrame({"call": [5, 5, 5], "at": [1_200, 1_000, 400], "received": [1, 1, 0]})
    again = pl.DataFrame({"call": [5], "first_ns": [2_000], "rows": [[7, 9]]})
    lines = {"client:eth0": contention_of(taken)}
    assert unexplained(again, [partial(waited, ports=ports, events=events, lines=lines)]).is_empty() == behind
    assert unexplained(again, [partial(waited, ports=ports, events=events, lines={})]).height == 1
