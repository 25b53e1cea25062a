# SPDX-License-Identifier: Apache-2.0
"""Which connection each call of a batch used whose client connected again after calls that failed."""

from __future__ import annotations

import polars as pl
import pytest

from sundial.verify.sockets.calls import _ports

OK, FAILED = True, False


def calls(*batches: tuple[int, list[bool]]) -> pl.DataFrame:
    """(port that the batch names, outcome of each call); call `id` ends at 10 times its number and 9."""
    rows = [(batch, ok, port) for batch, (port, outcomes) in enumerate(batches) for ok in outcomes]
    return pl.DataFrame(
        [(place, batch, ok, port, 10 * place + 9) for place, (batch, ok, port) in enumerate(rows)],
        schema=["id", "batch", "ok", "client_port", "end_ns"],
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
    found = _ports(part, opened, {port: at for port, at in opened.items() if port not in named})
    assert [found[call] for call in sorted(found)] == ports


def test_two_threads_do_not_take_the_same_connection() -> None:
    opened = {5: 0, 6: 1, 7: 20, 8: 21}
    unclaimed = {5: 0, 6: 1}
    first = _ports(calls((7, [OK, FAILED, OK])), opened, unclaimed)
    second = _ports(calls((8, [OK, FAILED, OK])), opened, unclaimed)
    assert (list(first.values()), list(second.values())) == ([5, 5, 7], [6, 6, 8])
