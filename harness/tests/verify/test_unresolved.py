# SPDX-License-Identifier: Apache-2.0
"""Addresses that ARP does not resolve."""

from __future__ import annotations

import polars as pl
import pytest

from sundial.verify.frames import DROPPED, FATE_SUFFIX, INBOUND, OUTBOUND
from sundial.verify.headers import arp
from sundial.verify.headers.arp import REPLY, REQUEST, RETRY_NS, unresolved, within
from sundial.verify.headers.ports import BROADCAST
from sundial.workloads.sunrpc.verify_bindings import _waits

SECOND = 1_000_000_000
ME, PEER, OTHER = 1, 2, 3
ASKS, ANSWERED = (OUTBOUND, REQUEST, ME, PEER, BROADCAST), (INBOUND, REPLY, PEER, ME, ME)
DROPPED_ASKS = (OUTBOUND, "dropped by the adapter")
ASKED = (INBOUND, REQUEST, PEER, ME, BROADCAST)
ANOTHER_ANSWERED = (INBOUND, REPLY, PEER, OTHER, OTHER)


@pytest.mark.parametrize(
    ("packets", "found"),
    [
        ([], []),
        ([(0, ASKS), (1, ASKS), (2, ASKS)], [(0, 2 * SECOND + RETRY_NS)]),
        ([(0, ASKS), (1, ASKS), (2, ASKS), (2, ANSWERED)], []),
        ([(0, ASKS), (1, ASKS), (2, ASKS), (9, ANSWERED)], [(0, 2 * SECOND + RETRY_NS)]),
        ([(0, ASKS), (1, ASKS), (1, ASKED), (2, ASKS), (3, ASKS)], []),
        ([(0, ASKS), (1, ASKS), (2, ASKS), (2, ANOTHER_ANSWERED), (4, ASKS)], [(0, 4 * SECOND)]),
        ([(0, ASKS), (4, ASKS), (8, ASKS)], []),
        ([(0, ASKS), (1, ASKS), (2, ASKS), (3, ASKS), (3, ANSWERED)], [(0, 3 * SECOND)]),
        ([(0, ASKS), (1, ASKS)], []),
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
        ([(0, ASKS), (1, ASKS), (2, ASKS), (9, ASKS), (10, ASKS)], [(0, 9 * SECOND)]),
        ([(0, ASKS), (1, DROPPED_ASKS), (2, DROPPED_ASKS)], [(0, 2 * SECOND + RETRY_NS)]),
    ],
)
def test_three_requests_without_an_answer(
    monkeypatch: pytest.MonkeyPatch, packets: list[tuple[int, tuple[object, ...]]], found: list[tuple[int, int]]
) -> None:
    table = pl.DataFrame(
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
    monkeypatch.setattr(arp, "arp_fields", lambda frames, octets: frames)
    stretches = unresolved(table, {"wire/lan.pcapng|n1:eth0": "n1"}, lambda frames: None).get("n1", [])  # type: ignore[arg-type, return-value]
    assert stretches == found
    assert within(stretches, SECOND) == bool(found)


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
