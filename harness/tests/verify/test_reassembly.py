# SPDX-License-Identifier: Apache-2.0
"""How datagrams are put together from what arrives, and what a machine has no memory for."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from unittest.mock import patch

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from sundial.verify.sockets import reassembly
from sundial.verify.sockets.reassembly import HELD_NS, MEMORY, MOST_APART, Fragment, arrivals, put_together, refused

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


def test_one_of_whose_fragments_one_came_while_the_memory_was_full_may_be_lost() -> None:
    """Though there is room when the last comes."""
    rows = [(place, place * STEP_NS) for place in range(FILLS)] + [(FILLS, FILLS * STEP_NS), (FILLS + 1, HELD_NS + 1)]
    places = [place for place, _ in rows[:-1]] + [FILLS]
    parts = pl.DataFrame({"datagram_place": places, "time_ns": [at for _, at in rows], "size": FRAGMENT})
    assert reassembly._refused(parts, {FILLS: HELD_NS + 1}) == [FILLS]
    assert reassembly._refused(parts[3:], {FILLS: HELD_NS + 1}) == []


def test_what_has_been_held_for_thirty_seconds_is_gone() -> None:
    assert run_of(FILLS, HELD_NS + FILLS * STEP_NS) == []


Piece = tuple[int, int, bool]
"""Offset, length and whether more follow."""
THREE: tuple[Piece, ...] = ((0, 16, True), (16, 16, True), (32, 5, False))


def whole(pieces: Sequence[Piece], gap_ns: int = 1, apart: int = 1) -> list[list[int]]:
    """The places of fragments that make whole datagrams."""
    fragments = [
        Fragment(place, place * gap_ns, place * apart, begin, begin + length, more)
        for place, (begin, length, more) in enumerate(pieces)
    ]
    return [queue.places for queue in put_together(fragments) if queue.whole]


@settings(max_examples=300)
@given(st.lists(st.sampled_from(THREE), max_size=24))
def test_copies_make_a_datagram_where_all_have_come_since_the_one_before(pieces: list[Piece]) -> None:
    expected: list[list[int]] = []
    waiting: dict[Piece, int] = {}
    for place, piece in enumerate(pieces):
        waiting.setdefault(piece, place)
        if len(waiting) == len(THREE):
            expected.append(sorted(waiting.values()))
            waiting = {}
    assert [sorted(places) for places in whole(pieces)] == expected


def test_fragments_come_in_any_order() -> None:
    assert whole(THREE[::-1]) == [[0, 1, 2]]


def test_an_overlap_discards_what_waits() -> None:
    first, middle, last = THREE
    assert whole([first, (8, 24, True), middle, last]) == []
    assert whole([first, (8, 8, True), middle, last]) == [[0, 2, 3]], "within one that is there: a copy"


def test_an_overlap_of_several_discards_what_waits() -> None:
    first, middle, last = THREE
    assert whole([last, first, (8, 28, True), middle, last]) == []


def test_another_end_discards_what_waits() -> None:
    first, middle, last = THREE
    assert whole([first, last, (32, 8, False), middle]) == []
    assert whole([last, first, (40, 8, True), middle]) == []


def test_fragments_wait_thirty_seconds() -> None:
    assert whole(THREE, gap_ns=HELD_NS // 2 - 1) == [[0, 1, 2]]
    assert whole(THREE, gap_ns=HELD_NS // 2) == []


def test_fragments_wait_for_no_more_than_some_of_others() -> None:
    assert whole(THREE, apart=MOST_APART) == [[0, 1, 2]]
    assert whole(THREE, apart=MOST_APART + 1) == []


Arrival = tuple[int, Piece, bool]
"""Identification, the fragment, and whether it is damaged."""


def traffic() -> list[Arrival]:
    """Datagrams in any order, some with copies, some without a fragment, some damaged."""
    random = Random(7)
    pieces = [(number, piece) for number in range(60) for piece in THREE]
    several = random.choices(pieces, k=12)
    arrived = [each for each in [*pieces, *several] if random.random() > 0.05]
    # Each among some others, nearer than the greatest distance.
    arrived.sort(key=lambda each: each[0] + 6 * random.random())
    return [(*each, random.random() < 0.05) for each in arrived]


def frames_of(arrived: list[Arrival]) -> pl.DataFrame:
    rows = [
        {
            "row": row, "end": "lan|server:eth0", "time_ns": row * 1000, "source": "a", "target": "b", "ip_id": number,
            "fragment_offset": begin, "data": length, "more": more, "damaged": damaged, "call": number, "reply": False,
            "frame": row + 1, "view": "received",
        }
        for row, (number, (begin, length, more), damaged) in enumerate(arrived)
    ]  # fmt: skip
    kinds = {"row": pl.UInt32, "fragment_offset": pl.UInt32, "call": pl.UInt32, "frame": pl.UInt32, "ip_id": pl.UInt32}
    return pl.DataFrame(rows, schema_overrides=kinds)


def test_what_has_no_copies_is_put_together_at_once_to_the_same_end() -> None:
    frames = frames_of(traffic())
    quick = arrivals(frames)
    assert quick.height > 60
    with patch.object(reassembly, "_plain", lambda fragments: pl.repeat(False, fragments.height, eager=True)):
        slow = arrivals(frames)
    order = ["call", "first_ns", "last_ns", "layout"]
    assert quick.sort(order).equals(slow.sort(order))


def test_a_damaged_fragment_is_kept_in_place_of_its_copy() -> None:
    first, middle, last = THREE
    came = [(first, False), (middle, True), (middle, False), (last, False)]
    (one,) = arrivals(frames_of([(7, *each) for each in came])).to_dicts()
    assert (one["layout"], one["damaged"], one["rows"]) == ("0:16+,16:16+,32:5", True, [0, 1, 3])
