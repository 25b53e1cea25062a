# SPDX-License-Identifier: Apache-2.0
"""Which connection each call of a batch used whose client connected again after calls that failed."""

from __future__ import annotations

import polars as pl
import pytest

from sundial.verify.sockets.calls import _ports

OK, FAILED = True, False


def calls(*batches: tuple[int, list[bool]]) -> pl.DataFrame:
    """(port that the batch names, outcome of each call); call `id` begins at 10 times its number and ends 9 later."""
    rows = [(batch, ok, port) for batch, (port, outcomes) in enumerate(batches) for ok in outcomes]
    return pl.DataFrame(
        [
            (place, batch, ok, port, 10 * place, 10 * place + 9, 100 + place)
            for place, (batch, ok, port) in enumerate(rows)
        ],
        schema=["id", "batch", "ok", "client_port", "start_ns", "end_ns", "xid"],
        orient="row",
    )


@pytest.mark.parametrize(
    ("opened", "batches", "ports"),
    [
        ({7: 0, 8: 20}, [(8, [OK, FAILED, OK, OK])], [7, 7, 8, 8]),
        ({7: 0, 8: 20, 9: 30}, [(9, [OK, FAILED, FAILED, OK])], [7, 7, 8, 9]),
        # The connection of the batch before goes on until a call fails.
        ({7: 0, 8: 30}, [(7, [OK]), (8, [OK, FAILED, OK])], [7, 7, 8]),
        # The call behind the one that failed could not connect.
        ({7: 0, 8: 30}, [(8, [OK, FAILED, FAILED, OK])], [7, 7, 7, 8]),
        # The last call fails, so the batch names its connection; the next batch opens another.
        ({7: 0, 8: 20}, [(7, [OK, FAILED]), (8, [OK])], [7, 7]),
        ({}, [(7, [FAILED])], []),
    ],
)
def test_a_call_uses_the_connection_that_its_client_opened_last(
    opened: dict[int, int], batches: list[tuple[int, list[bool]]], ports: list[int]
) -> None:
    part = calls(*batches)
    named = set(part["client_port"])
    found = _ports(part, opened, {port: at for port, at in opened.items() if port not in named}, {}, {})
    assert [found[call] for call in sorted(found)] == ports


def test_two_threads_do_not_take_the_same_connection() -> None:
    opened = {5: 0, 6: 1, 7: 20, 8: 21}
    unclaimed = {5: 0, 6: 1}
    first = _ports(calls((7, [OK, FAILED, OK])), opened, unclaimed, {}, {})
    second = _ports(calls((8, [OK, FAILED, OK])), opened, unclaimed, {}, {})
    assert (list(first.values()), list(second.values())) == ([5, 5, 7], [6, 6, 8])


def test_of_two_connections_that_were_opened_at_once_each_thread_has_that_with_its_calls() -> None:
    """Both fail at one instant; which port the first one takes then is for the kernel to choose."""
    opened, unclaimed = {5: 0, 6: 1, 7: 20, 8: 21, 9: 35}, {5: 0, 6: 1, 7: 20, 8: 21}
    first, second = calls((9, [OK, FAILED, FAILED, OK, OK])), calls((9, [OK, FAILED, FAILED, OK, OK]))
    second = second.with_columns(pl.col("xid") + 100)
    carried = {5: {200, 201}, 6: {100, 101}, 7: {202}, 8: {102}, 9: {103, 104}}
    assert list(_ports(first, opened, unclaimed, carried, {}).values()) == [6, 6, 8, 9, 9]
    assert list(_ports(second, opened, unclaimed, carried, {}).values())[:3] == [5, 5, 7]


def test_of_two_connections_without_xids_each_thread_has_that_whose_data_follow_its_start() -> None:
    """The second thread's SYN is lost, so that its call begins when its SYN has been sent again."""
    opened = {5: 0, 6: 0, 8: 20, 9: 25}
    unclaimed, begun = {5: 0, 6: 0}, {5: 6, 6: 1, 8: 20, 9: 26}
    first = calls((8, [FAILED, OK]))
    second = first.with_columns(client_port=pl.lit(9), start_ns=pl.col("start_ns") + 5, end_ns=pl.col("end_ns") + 5)
    assert _ports(first, opened, unclaimed, {}, begun)[0] == 6
    assert _ports(second, opened, unclaimed, {}, begun)[0] == 5
