# SPDX-License-Identifier: Apache-2.0
"""When a wire was taken: stretches by hand, and against counting each instant."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from sundial.model.load import load_topology
from sundial.model.network import build_network
from sundial.verify.contention import contention_of
from sundial.verify.segment import contentions

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 12)).map(lambda one: (one[0], sum(one))), max_size=12)


@given(SPANS, st.integers(0, 80), st.integers(0, 80))
def test_what_is_taken_is_what_any_stretch_covers(spans: list[tuple[int, int]], one: int, other: int) -> None:
    low, high = min(one, other), max(one, other)
    taken = sum(any(begin <= at < end for begin, end in spans) for at in range(low, high))
    assert contention_of(spans).busy_ns(low, high) == taken


def test_collisions_let_a_station_wait_for_slots() -> None:
    contention = contention_of([(0, 10)], [20, 40], slot_ns=5)
    assert contention.idle_ns(0, 15) == 5
    assert contention.idle_ns(0, 100) == 90 - (1 + 3) * 5


def frames(*rows: tuple[str, int, int, str | None]) -> pl.DataFrame:
    """(interface, ns, bytes, fate), all outbound; what has a fate is the server's."""
    return pl.DataFrame(
        [
            ("wire/lan.pcapng", interface, at, size, 2, fate, "server:eth0" if fate else None)
            for interface, at, size, fate in rows
        ],
        schema=["capture", "interface", "time_ns", "frame_length", "direction", "fate", "fate_adapter"],
        orient="row",
    ).with_columns(eth_target=pl.lit(None, pl.UInt64))


def test_all_stations_take_a_hub() -> None:
    network = build_network(load_topology("sss-two-100base-tx"))
    table = frames(
        ("client:eth0", 0, 62, None), ("server:eth0", 50_000, 1470, None), ("lan:fate", 90_000, 62, "collision")
    )
    found = contentions(network, table)["client:eth0"]
    # 62 + 24 = 86 and 1494 byte times of 80 ns; a collision takes a slot of 64, 4 of jam and the gap of 12.
    assert (list(found.begins), list(found.ends)) == ([0, 50_000], [6_880, 169_520])
    assert found.busy_ns(0, 200_000) == 6_880 + 119_520
    assert (found.collisions, found.slot_ns) == ([90_000], 5_120)
    server = contentions(network, table)["server:eth0"]
    assert (list(server.begins), list(server.ends)) == ([0, 50_000], [6_880, 169_520])


def test_on_a_line_it_is_what_the_port_sends() -> None:
    network = build_network(load_topology("sss-two-lossy"))
    found = contentions(network, frames(("client:eth0", 0, 62, None), ("server:eth0", 50_000, 1470, None)))
    assert [list(found[port].begins) for port in ("client:eth0", "server:eth0")] == [[0], [50_000]]
