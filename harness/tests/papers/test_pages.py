# SPDX-License-Identifier: Apache-2.0
"""What all papers have in common: their pages, complete and of runs that all failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sundial.papers import bilas97, kamesawa98, kedziera98, khandker, santos18
from sundial.papers.bilas97.reproduce import KIND as BILAS97
from sundial.papers.kamesawa98.reproduce import KIND as KAMESAWA98
from sundial.papers.kedziera98.reproduce import KIND as KEDZIERA98
from sundial.papers.khandker.reproduce import KIND as KHANDKER
from sundial.papers.santos18.reproduce import KIND as SANTOS18
from sundial.report.plotting import Pictures, pictures
from sundial.report.tables import Table
from sundial.reproduce.declared import Declared, DeclaredOutcome
from sundial.reproduce.fit import Candidate
from sundial.reproduce.page import Page
from sundial.reproduce.paper import papers
from tests.papers.bilas97.made import holding
from tests.papers.khandker.recorded import results as recorded
from tests.papers.santos18.test_page import measured
from tests.reproduce.curves import results as curves

TRIED = Candidate(Decimal("62.5"), {}, 0.0)
COMPLETE: dict[str, Callable[[], Any]] = {
    "bilas97": holding, "kedziera98": curves, "khandker": recorded, "santos18": measured,
}  # fmt: skip
BARE: dict[str, tuple[Declared[Any, Any], Any]] = {
    "bilas97": (BILAS97, bilas97.results.Results(BILAS97.paper(), "smoke", TRIED.mips)),
    "kamesawa98": (KAMESAWA98, kamesawa98.results.Results(KAMESAWA98.paper(), "quick", TRIED, (TRIED,))),
    "kedziera98": (KEDZIERA98, kedziera98.results.Results(KEDZIERA98.paper(), "smoke")),
    "khandker": (KHANDKER, khandker.results.Results(KHANDKER.paper(), "smoke", TRIED, (TRIED,))),
    "santos18": (SANTOS18, santos18.results.Results(SANTOS18.paper(), "smoke", TRIED.mips)),
}


def tables(page: Page) -> Iterator[tuple[str, Table]]:
    for section in page.sections:
        for table in (section.table, section.parts):
            if table is not None:
                yield section.anchor, table


def test_each_can_be_reproduced() -> None:
    assert papers() == sorted(BARE)


@pytest.mark.parametrize("name", COMPLETE)
def test_a_complete_page_has_all_that_paper_yaml_names(name: str, tmp_path: Path) -> None:
    kind, _ = BARE[name]
    with pictures(Pictures(png=False)):
        page = kind.outcome(COMPLETE[name]()).page(tmp_path)
    shown = [section.anchor for section in page.sections]
    named = [section.anchor for section in kind.paper().sections]
    assert shown == [anchor for anchor in named if anchor in shown]
    assert all(drawing.svg.startswith("<?xml") for drawing in page.drawings.values())
    assert set(page.drawings) == {section.figure for section in page.sections} - {""}
    empty = {anchor for anchor, table in tables(page) if not table.rows}
    assert {*empty, *set(named) - set(shown)} == NOT_MADE_UP.get(name, set())
    for anchor, table in tables(page):
        assert {len(row) for row in table.rows} <= {len(table.columns)}, anchor


PRINTED = {"kamesawa98": {f"table-{number}" for number in range(1, 5)}}
"""Figures that show what was printed where nothing was measured."""
NOT_MADE_UP = {"kedziera98": {"machines", "raw", "control"}}
"""Sections of tables that the results of tests do not have."""


@pytest.mark.parametrize("name", BARE)
def test_a_page_without_runs_shows_what_is_missing(name: str, tmp_path: Path) -> None:
    kind, results = BARE[name]
    outcome: DeclaredOutcome[Any, Any] = kind.outcome(results)
    with pictures(Pictures(painted=False)):
        page = outcome.page(tmp_path)
    assert set(page.drawings) == PRINTED.get(name, set())
    assert [each.anchor for each in page.sections] == [
        each.anchor for each in kind.paper().sections if not each.optional
    ]
    assert not [each for each in outcome.verdicts if each.outcome == "met"]


@pytest.mark.parametrize("name", BARE)
def test_files_without_a_measurement_have_their_heads(name: str) -> None:
    kind, results = BARE[name]
    assert all(table.columns for table in kind.outcome(results).tables().values())
