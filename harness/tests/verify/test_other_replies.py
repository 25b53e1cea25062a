# SPDX-License-Identifier: Apache-2.0
"""Which requests a client sent again because it read a reply to an earlier call, one for each of these."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pytest

from sundial.verify.sockets.other_replies import after_other_replies

FIRST, SECOND, THIRD = 1, 2, 3
Times = dict[int, list[int]]


def explained(
    asked: Times, answered: Times, flows: dict[int, int] | None = None, caused: Sequence[tuple[int, int]] = ()
) -> list[tuple[int, int]]:
    """`caused`: requests that were sent again for another reason."""
    both = ((False, asked), (True, answered))
    rows = [(call, reply, at) for reply, times in both for call in times for at in times[call]]
    table = pl.DataFrame(rows, schema={"call": pl.UInt32, "reply": pl.Boolean, "first_ns": pl.Int64}, orient="row")
    table = table.with_columns(last_ns="first_ns")
    frames = table.select("call", flow=pl.col("call").replace_strict(flows or {}, default=0, return_dtype=pl.UInt32))
    sent, whole = table.filter(~pl.col("reply")), table.filter("reply")
    own = pl.DataFrame(caused, schema={"call": pl.UInt32, "first_ns": pl.Int64}, orient="row")
    uncaused = sent.join(own, on=["call", "first_ns"], how="anti")
    return sorted(after_other_replies(frames, sent, whole, uncaused).iter_rows())


def test_each_reply_to_the_call_before_is_one_repetition() -> None:
    asked = {FIRST: [0, 10, 20], SECOND: [100, 110, 120, 300]}
    answered = {FIRST: [90, 95, 115], SECOND: [310]}
    # 95 waited for the second call, whose first request was no repetition.
    assert explained(asked, answered) == [(SECOND, 110), (SECOND, 120)]


def test_the_reply_that_ends_a_call_explains_nothing() -> None:
    assert explained({FIRST: [0], SECOND: [100, 150]}, {FIRST: [90], SECOND: [160]}) == []


def test_what_comes_behind_the_reply_that_ends_a_call_is_for_the_next() -> None:
    asked = {FIRST: [0, 10], SECOND: [100, 130], THIRD: [200, 220]}
    answered = {FIRST: [90, 150], SECOND: [140], THIRD: [210]}
    assert explained(asked, answered) == [(THIRD, 220)]


def test_the_first_reply_to_a_call_that_was_given_up_is_another_one() -> None:
    assert explained({FIRST: [0], SECOND: [100, 130]}, {FIRST: [120], SECOND: [140]}) == [(SECOND, 130)]


@pytest.mark.parametrize(("flow", "expected"), [(0, [(SECOND, 110)]), (1, [])])
def test_replies_are_those_of_the_same_socket(flow: int, expected: list[tuple[int, int]]) -> None:
    asked, answered = {FIRST: [0], SECOND: [100, 110]}, {FIRST: [90, 105], SECOND: [120]}
    assert explained(asked, answered, {SECOND: flow}) == expected


def test_a_repetition_of_the_timer_may_leave_before_the_one_that_another_reply_makes() -> None:
    asked, answered = {FIRST: [0], SECOND: [100, 107, 110, 120, 130]}, {FIRST: [90, 105, 106], SECOND: [140]}
    assert explained(asked, answered, caused=[(SECOND, 107)]) == [(SECOND, 110), (SECOND, 120)]
    assert explained(asked, answered, caused=[(SECOND, 107), (SECOND, 110)]) == [(SECOND, 107), (SECOND, 120)]
