# SPDX-License-Identifier: Apache-2.0
"""Addresses that ARP does not resolve."""

from __future__ import annotations

import polars as pl
import pytest

from sundial.verify import conservation
from sundial.verify.frames import DROPPED, FATE_SUFFIX, INBOUND, OUTBOUND
from sundial.verify.headers import arp
from sundial.verify.headers.arp import QUEUED, REPLY, REQUEST, RETRY_NS, asking, overflow, unresolved, within
from sundial.verify.headers.ports import BROADCAST
from sundial.workloads.sunrpc.verify_bindings import _waits

SECOND = 1_000_000_000
ME, PEER, OTHER = 1, 2, 3
ASKS, ANSWERED = (OUTBOUND, REQUEST, ME, PEER, BROADCAST), (INBOUND, REPLY, PEER, ME, ME)
DROPPED_ASKS = (OUTBOUND, "dropped by the adapter")
ASKED = (INBOUND, REQUEST, PEER, ME, BROADCAST)
ANOTHER_ANSWERED = (INBOUND, REPLY, PEER, OTHER, OTHER)


def at_port(packets: list[tuple[int, tuple[object, ...]]]) -> pl.DataFrame:
    """ARP of one machine."""
    return pl.DataFrame(
        [
            ("wire/lan.pcapng|n1:eth0", at * SECOND, row, *rest, arp.ARP, None, "n1:eth0", None)
            if rest != DROPPED_ASKS
            else (None, at * SECOND, row, None, *ASKS[1:], arp.ARP, DROPPED, f"lan{FATE_SUFFIX}", "n1:eth0")
            for row, (at, rest) in enumerate(packets)
        ],
        schema={
            "end": pl.String, "time_ns": pl.Int64, "row": pl.Int64, "direction": pl.Int64, "arp_op": pl.Int64,
            "arp_spa": pl.Int64, "arp_tpa": pl.Int64, "eth_target": pl.Int64, "eth_type": pl.Int64, "fate": pl.String,
            "interface": pl.String, "fate_adapter": pl.String,
        },
        orient="row",
    ).with_columns(arp_sha="arp_spa")  # fmt: skip


@pytest.mark.parametrize(
    ("packets", "found"),
    [
        ([], []),
        ([(0, ASKS), (1, ASKS), (2, ASKS)], [(0, 2 * SECOND + RETRY_NS)]),
        ([(0, ASKS), (1, ASKS), (2, ASKS), (2, ANSWERED)], []),
        ([(0, ASKS), (1, ASKS), (2, ASKS), (9, ANSWERED)], [(0, 2 * SECOND + RETRY_NS)]),
        ([(0, ASKS), (1, ASKS), (1, ASKED), (2, ASKS), (3, ASKS), (5, ANOTHER_ANSWERED)], []),
        ([(0, ASKS), (1, ASKS), (2, ASKS), (2, ANOTHER_ANSWERED), (4, ASKS), (6, ANOTHER_ANSWERED)], [(0, 4 * SECOND)]),
        ([(0, ASKS), (4, ASKS), (8, ASKS), (10, ANOTHER_ANSWERED)], []),
        ([(0, ASKS), (1, ASKS), (2, ASKS), (3, ASKS), (3, ANSWERED)], [(0, 3 * SECOND)]),
        ([(0, ASKS), (1, ASKS), (3, ANOTHER_ANSWERED)], []),
        # The run ends while a packet waits for an answer.
        ([(0, ASKS), (1, ASKS), (2, ANOTHER_ANSWERED)], [(0, SECOND + RETRY_NS)]),
        ([(0, ASKS), (1, ASKS), (2, ANSWERED)], []),
        # lwIP asks five times.
        (
            [(0, ASKS), (1, ASKS), (2, ASKS), (3, ASKS), (4, ASKS), (6, ASKS), (6, ANSWERED)],
            [(0, 3 * SECOND), (3 * SECOND, 4 * SECOND + RETRY_NS)],
        ),
        (
            [(0, ASKS), (1, ASKS), (2, ASKS), (3, ASKS), (4, ASKS), (9, ANSWERED)],
            [(0, 3 * SECOND), (3 * SECOND, 4 * SECOND + RETRY_NS)],
        ),
        ([(0, ASKS), (1, ASKS), (2, ASKS), (3, ASKS), (4, ASKS), (5, ANSWERED)], [(0, 3 * SECOND)]),
        ([(0, ASKS), (1, ASKS), (2, ASKS), (9, ASKS), (10, ASKS), (12, ANSWERED)], [(0, 9 * SECOND)]),
        ([(0, ASKS), (1, DROPPED_ASKS), (2, DROPPED_ASKS)], [(0, 2 * SECOND + RETRY_NS)]),
    ],
)
def test_three_requests_without_an_answer(
    monkeypatch: pytest.MonkeyPatch, packets: list[tuple[int, tuple[object, ...]]], found: list[tuple[int, int]]
) -> None:
    table = at_port(packets)
    monkeypatch.setattr(arp, "arp_fields", lambda frames, octets: frames)
    stretches = unresolved(table, {"wire/lan.pcapng|n1:eth0": "n1"}, lambda frames: None).get("n1", [])  # type: ignore[arg-type, return-value]
    assert stretches == found
    assert within(stretches, SECOND) == bool(found)


@pytest.mark.parametrize(("clock", "found"), [("real", True), ("virtual", False)])
def test_a_machine_of_the_real_clock_may_ask_late(clock: str, found: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """1.2 s apart; under the virtual clock these are questions for three packets, and none is known to be dropped."""
    table = at_port([(0, ASKS), (1, ASKS), (2, ASKS)]).with_columns(time_ns=pl.col("time_ns") * 12 // 10)
    table = pl.concat([table, at_port([(20, ANSWERED)])])
    monkeypatch.setattr(arp, "arp_fields", lambda frames, octets: frames)
    stretches = unresolved(table, {"wire/lan.pcapng|n1:eth0": "n1"}, lambda frames: None, arp.retry_ns(clock))  # type: ignore[arg-type, return-value]
    assert ("n1" in stretches) == found


@pytest.mark.parametrize(
    ("kinds", "found"), [([ASKS, ASKS], True), ([ASKS, DROPPED_ASKS], True), ([ASKS], False), ([ASKS, ANSWERED], False)]
)
def test_a_binding_waits_while_its_client_asks_again(kinds: list[tuple[object, ...]], found: bool) -> None:
    table = pl.DataFrame(
        [
            (at, OUTBOUND if each == ASKS else INBOUND, DROPPED if each == DROPPED_ASKS else None, "n1:eth0",
             "n1:eth0" if each == DROPPED_ASKS else None)
            for at, each in enumerate(kinds)
        ],
        schema=["time_ns", "direction", "fate", "interface", "fate_adapter"],
        schema_overrides={"fate": pl.String, "fate_adapter": pl.String},
        orient="row",
    ).with_columns(ethertype=pl.lit("0x0806"), eth_target=pl.lit(BROADCAST))  # fmt: skip
    bindings = pl.DataFrame({"binding": [0], "client": "n1", "start": 0, "end_ns": 9})
    assert _waits(table, bindings)["binding"].to_list() == [0] * found


@pytest.mark.parametrize(
    ("packets", "found"),
    [
        ([], []),
        ([(1, ASKS), (2, ANSWERED)], [(1 * SECOND, 2 * SECOND)]),
        ([(1, ASKS), (2, ASKS), (3, ASKS)], [(1 * SECOND, 3 * SECOND + RETRY_NS)]),
        # What it asks a neighbour that it knows holds nothing back.
        ([(1, (OUTBOUND, REQUEST, ME, PEER, PEER)), (2, ANSWERED)], []),
    ],
)
def test_a_machine_asks_from_its_first_question_to_the_answer(
    monkeypatch: pytest.MonkeyPatch, packets: list[tuple[int, tuple[object, ...]]], found: list[tuple[int, int]]
) -> None:
    monkeypatch.setattr(arp, "arp_fields", lambda frames, octets: frames)
    stretches = asking(at_port(packets), {"wire/lan.pcapng|n1:eth0": "n1"}, lambda frames: None)  # type: ignore[arg-type, return-value]
    assert [(begin, end) for _, begin, end in stretches.get("n1", [])] == found


@pytest.mark.parametrize(("waiting", "may_be_dropped"), [(QUEUED, 0), (QUEUED + 1, QUEUED + 1)])
def test_a_router_that_asks_keeps_as_many_packets_as_its_queue_holds(
    monkeypatch: pytest.MonkeyPatch, waiting: int, may_be_dropped: int
) -> None:
    monkeypatch.setattr(conservation, "asking", lambda *_: {"r": [("10.0.1.1", SECOND, 2 * SECOND)]})
    monkeypatch.setattr(conservation, "unresolved", lambda *_: {})
    times = [SECOND] * waiting + [3 * SECOND]
    frames = pl.DataFrame(
        {"row": range(len(times)), "end": "wire/b.pcapng|r:eth1", "direction": INBOUND, "fate": None,
         "target": "10.0.1.1", "time_ns": times},
        schema_overrides={"row": pl.UInt32, "fate": pl.String},
    )  # fmt: skip
    port = {"end": "wire/b.pcapng|r:eth1", "machine": "r", "address": "10.0.2.253", "forwards": True}
    found = conservation._unresolved(frames, pl.DataFrame([port]), lambda frames: None)  # type: ignore[arg-type, return-value]
    assert sorted(found["row"]) == list(range(may_be_dropped))


@pytest.mark.parametrize(
    ("count", "offset", "headless"), [(QUEUED, 185, [0, 1]), (QUEUED, 0, []), (QUEUED - 1, 185, [])]
)
def test_a_queue_that_was_full_has_lost_the_first_fragments_of_a_datagram(
    count: int, offset: int, headless: list[int]
) -> None:
    frames = pl.DataFrame(
        {"row": range(count), "time_ns": [2 * SECOND + place for place in range(count)],
         "ip_id": [7, 7, *range(8, 6 + count)], "fragment_offset": [offset, offset + 185] + [0] * (count - 2),
         "end": "wire/lan.pcapng|n1:eth0", "direction": OUTBOUND, "fate": None, "source": "10.0.0.1",
         "target": "10.0.0.2"},
        schema_overrides={"row": pl.UInt32, "fate": pl.String},
    )  # fmt: skip
    asked = {"n1": [("10.0.0.2", SECOND, 2 * SECOND)]}
    lost = overflow(frames, {"wire/lan.pcapng|n1:eth0": "n1"}, asked)
    assert lost.stretches == ({"n1": [(SECOND, 2 * SECOND)]} if count >= QUEUED else {})
    assert lost.headless.to_list() == headless
