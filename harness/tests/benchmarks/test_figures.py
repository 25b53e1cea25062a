# SPDX-License-Identifier: Apache-2.0
"""The arithmetic behind the table of `make bench`; nothing here looks at a clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.context import Cannot, Context
from benchmarks.figure import Figure, Peer, at_least, below, number, percentile
from benchmarks.shaping import _error_bytes, wire_ns


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (1, "1"),
        (0.1, "0.1"),
        (28.914, "28.9"),
        (-646.4, "-646"),
        (1234567.8, "1,234,568"),
        (0.000123, "0.000123"),
    ],
)
def test_numbers_have_three_digits(value: float, shown: str) -> None:
    assert number(value) == shown


def test_the_median_is_held_against_the_target() -> None:
    figure = Figure("boot", "cold", "s", (9.0, 1.0, 2.0), below(8.0))
    assert (figure.median, figure.spread, figure.ratio, figure.verdict) == (2.0, (1.0, 9.0), 0.25, "pass")
    assert Figure("fabric", "", "frames/s", (4.0,), at_least(5.0)).verdict == "fail"


def test_a_peer_is_no_promise() -> None:
    figure = Figure("forwarding", "", "us", (30.0,), Peer("vde_switch", 15.0))
    assert (figure.ratio, figure.verdict) == (2.0, None)


def test_percentiles_are_values_that_were_measured() -> None:
    values = list(range(1, 101))
    assert [percentile(values, percent) for percent in (0, 50, 99, 100)] == [1, 50, 99, 100]
    assert percentile([7], 99) == 7


def test_turns_alternate_and_a_failure_stays_alone(tmp_path: Path) -> None:
    order: list[str] = []

    def fails() -> int:
        order.append("b")
        raise Cannot("not here")

    def works() -> int:
        order.append("a")
        return len(order)

    turns = Context(quick=True, folder=tmp_path).in_turns({"a": works, "b": fails, "c": works})
    assert order == ["a", "b", "a", "a", "a"]
    assert turns.found == {"a": [1, 4], "c": [3, 5]}
    assert [(item.name, item.why) for item in turns.unmeasured("subject")] == [("b", "not here")]


def test_wire_times_are_those_of_the_standard() -> None:
    assert wire_ns(1514, 10_000_000) == 1_230_400
    assert wire_ns(60, 10_000_000) == wire_ns(14, 10_000_000) == 67_200


def test_a_train_without_holes_has_no_error_and_one_late_frame_is_seen() -> None:
    step = wire_ns(1514, 100_000_000)
    train = [(5000 + step * place, 1514) for place in range(40)]
    assert _error_bytes(train, 100_000_000) == 0
    train[20] = (train[20][0] + 160, 1514)
    assert _error_bytes(train, 100_000_000) == 2
