# SPDX-License-Identifier: Apache-2.0
"""Where frames stand that an adapter had no place for: behind those that it had then, which left later."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import polars as pl
import pytest

from sundial.model.network import Network
from sundial.verify.headers.ports import FULL, GIVEN_UP, HELD, _behind_places

A, B = 1, 2
Frame = tuple[int, int, str | None]
"""First bit in us, or when it was refused; target; rule by which it was refused."""

FRAME_US = 1000
"""On a line of 1 Mbit/s, with preamble, FCS and gap."""


def places(*frames: Frame, ring: int = 2, cells: bool = False) -> list[int]:
    """In us, to the ns, where each of the refused frames stands."""
    found = table(*frames, ring=ring, cells=cells)
    assert found.filter(pl.col("fate").is_null())["time_ns"].to_list() == [
        at * 1000 for at, _, rule in frames if rule is None
    ]
    return found.filter(pl.col("fate_rule").ne_missing(GIVEN_UP), pl.col("fate") == "dropped")["time_ns"].to_list()


def order(*frames: Frame) -> list[int]:
    """The frames as they were handed in."""
    return table(*frames).sort("time_ns", "row")["row"].to_list()


def table(*frames: Frame, ring: int = 2, cells: bool = False) -> pl.DataFrame:
    length = FRAME_US // 8 - 24
    sent = pl.DataFrame(
        [(row, "wire/lan.pcapng|m:eth0", "m:eth0", at * 1000, to, length, rule, None if rule is None else "dropped")
         for row, (at, to, rule) in enumerate(frames)],
        {"row": pl.UInt32, "end": pl.String, "port": pl.String, "time_ns": pl.Int64, "eth_target": pl.Int64,
         "frame_length": pl.Int64, "fate_rule": pl.String, "fate": pl.String},
        orient="row",
    )  # fmt: skip
    segment = SimpleNamespace(
        rate_bps=lambda port: 1_000_000,
        packet_cells=len if cells else None,
        adapter=SimpleNamespace(ring_frames=ring),
    )
    network = cast(Network, cast(Any, SimpleNamespace(segments={"lan": segment})))
    return _behind_places(sent, network)


@pytest.mark.parametrize(
    ("ring", "behind_us"),
    [(1, 0), (2, 1000), (3, 2000), (9, 2000)],
)
def test_a_full_ring_has_the_frames_that_have_not_left(ring: int, behind_us: int) -> None:
    """One is on the wire when the fourth comes, and two wait; the ring has no more than its places."""
    found = places((0, B, None), (1000, B, None), (2000, B, None), (500, B, FULL), ring=ring)
    assert found == [max(behind_us * 1000 + 1, 500_000)]


def test_a_frame_that_has_left_takes_no_place() -> None:
    assert places((0, B, None), (5000, B, None), (1500, B, FULL), (6500, B, FULL)) == [5_000_001, 6_500_000]


def test_on_cells_a_frame_takes_its_place_until_the_next_begins() -> None:
    """How long its cells take is not known of it alone."""
    assert places((0, B, None), (5000, B, None), (1500, B, FULL), ring=1, cells=True) == [1_500_000]
    assert places((0, B, None), (5000, B, None), (1500, B, FULL), ring=2, cells=True) == [5_000_001]


def test_a_client_of_lan_emulation_holds_eight_for_an_address() -> None:
    waiting: list[Frame] = [(1000 * place, A if place % 2 else B, None) for place in range(1, 21)]
    # Of those for A, from 1 ms on, the eighth leaves after 15 ms.
    assert places(*waiting, (500, A, HELD)) == [15_000_001]
    assert places(*waiting, (30_000, A, HELD)) == [30_000_000]


def test_what_a_client_of_lan_emulation_gives_up_was_among_the_eight() -> None:
    """It has no answer after 5 ms, and later one for all that comes then."""
    given_up: list[Frame] = [*((5000, A, GIVEN_UP) for _ in range(8)), (5000, B, GIVEN_UP)]
    later: list[Frame] = [(6000 + place, A, None) for place in range(9)]
    assert places(*given_up, *later, (500, A, HELD)) == [5_000_001]
    # Of seven that were given up, the first that was sent is the eighth.
    assert places(*given_up[1:], *later, (500, A, HELD)) == [6_000_001]


def test_what_was_refused_otherwise_stays() -> None:
    assert places((0, B, None), (2000, B, None), (500, B, "too long")) == [500_000]


def test_what_took_a_place_later_stands_behind_what_had_none() -> None:
    """Eight wait; a ninth is refused; the first leaves, and another takes its place. All are given up at once."""
    first, others = (500, A, None), [(5000, A, GIVEN_UP)] * 7
    assert places(first, (400, A, HELD), *others, (5000, A, GIVEN_UP)) == [5_000_001]
    assert order(first, (400, A, HELD), *others, (5000, A, GIVEN_UP)) == [0, *range(2, 9), 1, 9]
    assert order(first, (400, A, HELD), (450, A, HELD), *others, (5000, A, GIVEN_UP)) == [0, *range(3, 10), 1, 2, 10]
