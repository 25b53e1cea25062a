# SPDX-License-Identifier: Apache-2.0
"""Requests that a client's kernel dropped because ARP had no answer: fewer left than the client says it sent."""

from __future__ import annotations

import polars as pl
import pytest

from sundial.verify.sockets.messages import check_attempts, dropped_frames, with_legs, without_addresses

CALLS = pl.DataFrame(
    {
        "id": pl.Series([1, 2], dtype=pl.UInt32),
        "client": ["a", "b"],
        "start_ns": [100, 100],
        "end_ns": [200, 200],
        "transport": "udp",
        "protocol": "raw",
        "kind": 0,
        "ok": False,
        "retransmits": 1,
        "error": "timed out",
        "server_port": 1026,
    }
)
LEGS = pl.DataFrame({"kind": 0, "reply": [False], "layout": "0:8", "packets": 1, "sent": True})
NOTHING = pl.DataFrame(schema={"call": pl.UInt32, "reply": pl.Boolean, "layout": pl.String, "rows": pl.List(pl.UInt32)})
FRAMES = pl.DataFrame(schema={"fate": pl.String, "call": pl.UInt32, "reply": pl.Boolean})


@pytest.mark.parametrize(
    ("unresolved", "exact_time", "found"),
    [
        ({}, True, [1, 2]),
        ({"a": [(150, 300)]}, True, [2]),
        ({"a": [(0, 100)], "b": [(200, 300)]}, True, []),
        ({"a": [(201, 300), (0, 99)]}, True, [1, 2]),
        ({"a": [(201, 300)]}, False, [2]),
    ],
)
def test_requests_may_be_missing_while_arp_has_no_answer(
    unresolved: dict[str, list[tuple[int, int]]], exact_time: bool, found: list[int]
) -> None:
    calls = without_addresses(CALLS, unresolved, exact_time=exact_time)
    findings = check_attempts(NOTHING, NOTHING, with_legs(calls, LEGS), dropped_frames(FRAMES))
    assert [(row["call"], row["field"]) for row in findings.to_dicts()] == [(call, "request.count") for call in found]


def test_more_requests_than_the_client_sent_are_findings_all_the_same() -> None:
    sent = pl.DataFrame(
        {"call": pl.Series([1] * 3, dtype=pl.UInt32), "reply": [False] * 3, "layout": "0:8", "rows": [[1], [2], [3]]}
    )
    calls = without_addresses(CALLS, {"a": [(0, 300)], "b": [(0, 300)]}, exact_time=True)
    findings = check_attempts(sent, NOTHING, with_legs(calls, LEGS), dropped_frames(FRAMES))
    assert findings["field"].to_list() == ["request.count"]
