# SPDX-License-Identifier: Apache-2.0
"""Verdicts of bilas97 on results made up so that each statement holds, and then one at a time does not."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from sundial.papers.bilas97.results import Results
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
        ({"B7"}, slower_stream),
    ],
)
def test_one_does_not(broken: set[str], change: Callable[[Results], None]) -> None:
    results = holding()
    change(results)
    found = outcomes(results)
    assert {name for name, outcome in found.items() if outcome == NOT_MET} == broken
    assert set(found.values()) == {MET, NOT_MET}


def test_nothing_was_measured() -> None:
    assert set(outcomes(Results(PAPER, "smoke", Decimal("62.5"))).values()) == {UNDECIDABLE}
