# SPDX-License-Identifier: Apache-2.0
"""What the capture says of frames between traced machines, and calls that lack their stamps."""

from __future__ import annotations

import polars as pl

from sundial.observe.steps import Arrival, Lane
from sundial.verify.frames import INBOUND, OUTBOUND
from sundial.verify.steps import _bare, _wires

PORTS = pl.DataFrame(
    [
        {"end": "lan|client:eth0", "machine": "client", "joins": False},
        {"end": "lan|server:eth0", "machine": "server", "joins": False},
        {"end": "lan|bridge:eth0", "machine": "bridge", "joins": True},
    ]
)
CLIENT_MAC = 1


def frame(end: str, direction: int, time_ns: int, octets: int = 5, fate: str | None = None) -> dict[str, object]:
    return {
        "end": f"lan|{end}", "direction": direction, "time_ns": time_ns, "octets_hash": octets,
        "eth_source": CLIENT_MAC, "fate": fate,
    }  # fmt: skip


def test_a_frame_is_the_latest_that_was_sent_with_its_octets() -> None:
    frames = pl.DataFrame(
        [
            frame("client:eth0", OUTBOUND, 100),
            frame("bridge:eth0", INBOUND, 150),
            frame("server:eth0", INBOUND, 200),
            frame("client:eth0", OUTBOUND, 300),  # the same again
            frame("server:eth0", INBOUND, 400),
            frame("server:eth0", INBOUND, 450, octets=6),  # damaged on its way
            frame("client:fate", OUTBOUND, 460, fate="lost"),
            {**frame("client:eth0", OUTBOUND, 470), "eth_source": None},  # a packet of a backplane
        ],
        schema_overrides={"fate": pl.String},
    )
    arrivals, sent = _wires(frames, PORTS)
    assert arrivals == {"server": [Arrival(200, "client", 100), Arrival(400, "client", 300)]}
    assert sent == {"client": [100, 300]}


def lane(*calls: tuple[int, bool]) -> Lane:
    return Lane("client", [], [], [], [], [], [], [], list(calls))


CALLS = pl.DataFrame(
    [
        {"id": 0, "transport": "udp", "start_ns": 100, "end_ns": 200, "ok": True},
        {"id": 1, "transport": "udp", "start_ns": 300, "end_ns": 400, "ok": True},
        {"id": 2, "transport": "udp", "start_ns": 500, "end_ns": 600, "ok": False},
        # Of another workload, which has the same program and transport and is not traced.
        {"id": 3, "transport": "udp", "start_ns": 700, "end_ns": 800, "ok": True},
    ]
).with_columns(client=pl.lit("client"), app=pl.lit("a"), node_step=pl.Series([0, 0, 0, 1]))


def test_a_call_without_its_stamps_is_noticed_where_others_have_them() -> None:
    assert list(_bare({"client": lane((110, True), (190, False), (310, True), (390, False))}, CALLS)) == []
    assert list(_bare({"client": lane((110, True), (190, False), (310, True))}, CALLS)) == [1]
    # A workload that is not traced has none at all.
    assert list(_bare({"client": lane()}, CALLS)) == []
