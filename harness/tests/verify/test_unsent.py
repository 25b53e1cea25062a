# SPDX-License-Identifier: Apache-2.0
"""What a machine's kernel dropped before its port: fewer requests and fragments than its programs sent."""

from __future__ import annotations

import polars as pl
import pytest

from sundial.verify import unsent as verify_unsent
from sundial.verify.contention import Contention, contention_of
from sundial.verify.frames import INBOUND, OUTBOUND
from sundial.verify.headers import arp
from sundial.verify.headers.ip import _check_datagrams
from sundial.verify.sockets.messages import check_attempts, check_datagrams, dropped_frames, with_legs, with_unsent
from sundial.verify.unsent import INTERVAL_NS, Unsent, unsent

CALLS = pl.DataFrame(
    {
        "id": pl.Series([1, 2], dtype=pl.UInt32),
        "client": ["a", "b"],
        "server": "c",
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
NO_ROWS = pl.Series([], dtype=pl.UInt32)
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
    calls = with_unsent(CALLS, unresolved, exact_time=exact_time)
    findings = check_attempts(NOTHING, NOTHING, with_legs(calls, LEGS), dropped_frames(FRAMES))
    assert [(row["call"], row["field"]) for row in findings.to_dicts()] == [(call, "request.count") for call in found]


def test_more_requests_than_the_client_sent_are_findings_all_the_same() -> None:
    sent = pl.DataFrame(
        {"call": pl.Series([1] * 3, dtype=pl.UInt32), "reply": [False] * 3, "layout": "0:8", "rows": [[1], [2], [3]]}
    )
    calls = with_unsent(CALLS, {"a": [(0, 300)], "b": [(0, 300)]}, exact_time=True)
    findings = check_attempts(sent, NOTHING, with_legs(calls, LEGS), dropped_frames(FRAMES))
    assert findings["field"].to_list() == ["request.count"]


@pytest.mark.parametrize(
    ("reply", "machine", "layout", "found"),
    [
        (False, "a", "0:8", 0),
        (False, "c", "0:8", 1),
        (True, "c", "0:8", 0),
        (True, "a", "0:8", 1),
        (False, "a", "0:7", 1),
    ],
)
def test_fragments_may_be_missing_of_what_their_sender_dropped(
    reply: bool, machine: str, layout: str, found: int
) -> None:
    calls = with_unsent(CALLS, {machine: [(0, 300)]}, exact_time=True)
    legs = LEGS.with_columns(layout=pl.lit("0:8,8:4"), packets=pl.lit(2), reply=pl.lit(reply))
    call = pl.Series([1], dtype=pl.UInt32)
    sent = pl.DataFrame({"call": call, "reply": [reply], "layout": layout, "count": 1, "rows": [[1]]})
    assert len(check_datagrams(sent, with_legs(calls, legs), dropped_frames(FRAMES), NO_ROWS)) == found


PORT = "wire/lan.pcapng|a:eth0"


@pytest.mark.parametrize(
    ("platform", "line", "found"),
    [
        ("linux", (5, 5 + INTERVAL_NS), [(5 + INTERVAL_NS, 5 + INTERVAL_NS)]),
        ("linux", (5, 4 + INTERVAL_NS), []),
        ("ssscore", (5, 5 + INTERVAL_NS), []),
    ],
)
def test_a_kernel_drops_what_waits_too_long(
    platform: str, line: tuple[int, int], found: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, nothing in (("unresolved", {}), ("asking", {}), ("overflow", arp.Overflow({}, pl.Series([])))):
        monkeypatch.setattr(verify_unsent, name, lambda *_, nothing=nothing: nothing)
    ports = pl.DataFrame({"end": [PORT], "machine": ["a"], "platform": [platform], "joins": [False]})
    dropped = unsent(pl.DataFrame(), ports, lambda _: None, {"a:eth0": contention_of([line])})  # type: ignore[arg-type, return-value]
    assert dropped.stretches.get("a", []) == found


def test_a_queue_stands_while_its_line_has_no_pause() -> None:
    taken = [(0, 60), (60, 110), (200, 250)]
    assert contention_of(taken).taken_for(100) == [(100, 110)]
    assert contention_of(taken).taken_for(111) == []
    one = contention_of(taken)
    assert Contention(one.begins, one.ends, one.passed, latency_ns=90).taken_for(100) == [(10, 250)]


def test_fragments_without_their_first_belong_to_a_datagram_that_was_dropped() -> None:
    table = pl.DataFrame(
        [
            (0, PORT, 100, OUTBOUND, None, "1", "2", 7, 8, False),
            (1, "other", 200, INBOUND, None, "1", "2", 7, 8, False),
            (2, PORT, 100, OUTBOUND, None, "1", "2", 8, 0, True),
            (3, PORT, 100, OUTBOUND, None, "1", "2", 8, 8, False),
            (4, PORT, 900, OUTBOUND, None, "1", "2", 9, 8, False),
        ],
        schema=["row", "end", "time_ns", "direction", "fate", "source", "target", "ip_id", "fragment_offset", "more"],
        orient="row",
    )
    for stretches, found in (({"a": [(0, 500)]}, [9, 0, 1]), ({}, [9])):
        dropped = Unsent({PORT: "a"}, {}, arp.Overflow({}, pl.Series([9])), stretches)
        assert pl.concat(dropped.headless(table))["row"].to_list() == found


@pytest.mark.parametrize(
    ("offsets", "stretch", "found"),
    [
        ([0, 8, 16], (0, 0), 0),
        ([0, 16], (0, 300), 0),
        ([0, 8], (0, 300), 0),
        ([8, 16], (0, 300), 0),
        ([0, 16], (300, 400), 1),
        ([0, 8, 8, 16], (0, 300), 1),
        ([8, 0, 16], (0, 300), 1),
    ],
)
def test_a_datagram_lacks_fragments_that_its_machine_dropped(
    offsets: list[int], stretch: tuple[int, int], found: int
) -> None:
    table = pl.DataFrame(
        {
            "row": range(len(offsets)), "rows": [[place] for place in range(len(offsets))], "time_ns": [
                100 + place for place in range(len(offsets))
            ], "fragment_offset": offsets, "more": [each < 16 for each in offsets], "end": PORT, "machine": "a",
            "source": "10.0.0.1", "target": "10.0.0.2", "protocol": 17, "ip_id": 7, "ip_header": 20, "ip_length": 28,
            "offloads": False, "inner": False, "udp_length": 24, "udp_checksum": 1, "ip_payload_sum": None,
        },
        schema_overrides={"ip_payload_sum": pl.Int64},
    ).with_columns(place=pl.int_range(pl.len()), fate=pl.lit(None, pl.String))  # fmt: skip
    fields = _check_datagrams(table, {"a": [stretch]}, NO_ROWS)["field"].to_list()
    assert fields == ["ip.fragments"] * found
