# SPDX-License-Identifier: Apache-2.0
"""Verdicts of bilas97 on results made up so that each statement holds, and then one at a time does not."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from sundial.papers.bilas97.results import Compared, Results
from sundial.papers.bilas97.statements import STATEMENTS
from sundial.reproduce.cells import Row
from sundial.reproduce.verdicts import MET, NOT_MET, UNDECIDABLE, judge
from tests.papers.bilas97.made import PAPER, cell, holding, rate


def outcomes(results: Results) -> dict[str, str]:
    return {each.statement.id: each.outcome for each in judge(STATEMENTS, results)}


def test_all_hold() -> None:
    assert set(outcomes(holding()).values()) == {MET}


def slower(system: str, us: float, hardware_us: float = 8.5) -> Callable[[Results], None]:
    def change(results: Results) -> None:
        results.null[system] = cell(us, hardware_us)

    return change


def slower_stream(results: Results) -> None:
    kept = [row for row in results.streams if row.names != ("du", "65536")]
    results.streams = [*kept, Row(("du", "65536"), rate(21.8))]


def another_byte(results: Results) -> None:
    results.compared["sizes"] = Compared(40, 2)


@pytest.mark.parametrize(
    ("broken", "change"),
    [
        ({"B1"}, slower("vrpc", 29.6)),
        ({"B1"}, slower("vrpc", 36.4)),
        ({"B2", "B3"}, slower("shrimprpc", 10.5)),
        ({"B3"}, slower("shrimprpc", 10.0)),
        ({"B3"}, slower("hardware", 9.5, 9.45)),
        ({"B1", "B5"}, slower("vrpc", 24.0)),
        ({"B4"}, slower("udp", 92.0)),
        ({"B6"}, another_byte),
        ({"B7"}, slower_stream),
    ],
)
def test_one_does_not(broken: set[str], change: Callable[[Results], None]) -> None:
    results = holding()
    change(results)
    found = outcomes(results)
    assert {name for name, outcome in found.items() if outcome == NOT_MET} == broken
    assert set(found.values()) == {MET, NOT_MET}


def test_a_message_with_another_byte_is_counted_and_its_run_is_named() -> None:
    results = holding()
    another_byte(results)
    verdict = next(each for each in judge(STATEMENTS, results) if each.statement.id == "B6")
    assert verdict.measured == "140 calls, 2 mismatches"
    assert verdict.reason.endswith("mismatches, of all systems of a run: sizes 2")


def test_nothing_was_measured() -> None:
    assert set(outcomes(Results(PAPER, "smoke", Decimal("62.5"))).values()) == {UNDECIDABLE}
