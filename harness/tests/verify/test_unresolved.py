# SPDX-License-Identifier: Apache-2.0
"""Addresses that ARP does not resolve."""

from __future__ import annotations

import polars as pl
import pytest

from sundial.verify.frames import DROPPED, FATE_SUFFIX, INBOUND, OUTBOUND
from sundial.verify.headers import arp
from sundial.verify.headers.arp import REPLY, REQUEST, RETRY_NS, unresolved, within
from sundial.verify.headers.ports import BROADCAST

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
