# SPDX-License-Identifier: Apache-2.0
"""What a server was doing while a request waited."""

from __future__ import annotations

from functools import partial

import polars as pl
import pytest

from sundial.verify.contention import contention_of
from sundial.verify.sockets.busy_servers import Servers, services
from sundial.verify.sockets.protocol import Setting
from sundial.verify.sockets.retransmission_causes import (
    busy_server,
    full_buffer,
    memory,
    receive_buffers,
    unexplained,
    with_requests,
)

MS = 1_000_000
KEY = ("server", "sunrpc")


def servers(*had: tuple[int, int, int]) -> Servers:
    rows = [(*KEY, call, since * MS, until * MS) for call, since, until in had]
    return Servers(
        pl.DataFrame(rows, schema=["server", "protocol", "call", "since_ns", "until_ns"], orient="row").sort("since_ns")
    )


@pytest.mark.parametrize(
    ("others", "idle_ms"),
    [
        ([], 100),
        ([(2, 0, 100)], 0),
        ([(2, 0, 30), (3, 20, 60)], 40),
        ([(2, 40, 50)], 90),
        ([(1, 0, 100)], 100),  # the call itself
    ],
)
def test_time_without_another_request(others: list[tuple[int, int, int]], idle_ms: int) -> None:
    assert servers(*others).idle_ns(*KEY, call=1, since_ns=0, until_ns=100 * MS) == idle_ms * MS


def test_time_in_which_its_line_was_taken_is_not_idle() -> None:
    line = contention_of([(0, 20 * MS), (50 * MS, 90 * MS)])
    assert servers((2, 10, 60)).idle_ns(*KEY, call=1, since_ns=0, until_ns=100 * MS, line=line) == 10 * MS
    assert servers().idle_ns(*KEY, call=1, since_ns=0, until_ns=100 * MS, line=line) == 40 * MS


def test_a_turn_is_of_a_request_that_was_alone_and_came_once() -> None:
    asked_twice, together = [(4, 300, 390), (4, 400, 490)], [(5, 500, 550), (6, 510, 580)]
    assert servers((1, 0, 2), (2, 100, 103), *asked_twice, *together).turn_ns(*KEY) == 3 * MS


def test_a_server_has_a_datagram_until_its_own_answer() -> None:
    """Not until another one, as if it were a request over TCP that has none."""
    calls = pl.DataFrame({"id": [1, 2], "server": KEY[0], "protocol": KEY[1], "transport": "udp"})
    asked = pl.DataFrame({"call": [1, 2], "reply": False, "last_ns": [0, 50 * MS]})
    answered = pl.DataFrame({"call": [1, 2], "reply": True, "first_ns": [MS, 51 * MS]})
    none = {"call": pl.Int64, "reply": pl.Boolean, "view": pl.String, "data": pl.Int64, "time_ns": pl.Int64}
    had = services(calls, answered, asked, pl.DataFrame(schema=none), asked, {})
    assert had.select("call", "since_ns", "until_ns").rows() == [(1, 0, MS), (2, 50 * MS, 51 * MS)]


@pytest.mark.parametrize(
    ("window", "others", "explained"),
    [(1152, 1, True), (1152, 0, False), (4096, 1, False), (4096, 3, True), (None, 3, False)],
)
def test_a_request_that_found_the_receive_buffer_full_was_lost(
    window: int | None, others: int, explained: bool
) -> None:
    """Each request in one packet of 800 bytes, which takes 4096 bytes of memory at most; that of call 0 came last."""
    calls = [0, *range(1, others + 1)]
    rows = [("server", "raw", 0, 100, 1 << 62), *(("server", "raw", call, 50, 200) for call in calls[1:])]
    had = pl.DataFrame(rows, ["server", "protocol", "call", "since_ns", "until_ns"], orient="row")
    came = pl.DataFrame(
        {"call": calls, "reply": False, "layout": "0:808", "count": 1, "last_ns": [100] + [50] * others,
         "rows": [[call] for call in calls]},
    )  # fmt: skip
    waiting = pl.DataFrame({"call": [0], "answered": [0], "first_ns": [9_000]})
    of_calls = pl.DataFrame({"id": calls, "server": "server", "protocol": "raw", "setting": 0})
    ports = pl.DataFrame({"interface": "server:eth0", "row": calls}, schema_overrides={"row": pl.UInt32})
    requests = with_requests(waiting, came, of_calls, ports)
    buffers = receive_buffers(of_calls, [Setting(None, window)])
    causes = [
        partial(full_buffer, servers=Servers(had), taken=memory(came), buffers=buffers),
        partial(busy_server, servers=Servers(had), lines={}),
    ]
    assert unexplained(requests, causes).is_empty() == explained
