# SPDX-License-Identifier: Apache-2.0
"""The page and the files of bilas97, of results made up and of none."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from sundial.papers.bilas97.reproduce import KIND, BilasOutcome
from sundial.papers.bilas97.results import FLOOR, SYSTEMS, Results
from sundial.papers.bilas97.statements import STATEMENTS
from sundial.report.plotting import Pictures, pictures
from sundial.reproduce.page import Page
from sundial.reproduce.paper import papers
from sundial.reproduce.verdicts import judge
from tests.papers.bilas97.made import NULL_US, PAPER, holding

ANCHORS = ["statements", "choices", "null", "sizes", "streams", "latencies", "waits", "steps"]


def outcome(results: Results) -> BilasOutcome:
    return BilasOutcome(results, judge(STATEMENTS, results))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    with pictures(Pictures(png=False)):
        return outcome(holding()).page(tmp_path_factory.mktemp("figures"))


def test_bilas97_can_be_reproduced() -> None:
    assert "bilas97" in papers()
    assert tuple(KIND.scales) == ("smoke", "quick", "full")


def test_all_tables_are_there(page: Page) -> None:
    assert [section.anchor for section in page.sections] == ANCHORS
    assert set(page.drawings) == {"sizes", "streams"}
    for section in page.sections:
        for table in (section.table, section.parts):
            if table is not None:
                assert table.rows
                assert {len(row) for row in table.rows} == {len(table.columns)}


def test_printed_beside_measured(page: Page) -> None:
    table = next(section.table for section in page.sections if section.anchor == "null")
    assert table is not None
    titles = [column.title for column in table.columns]
    rows = [dict(zip(titles, row, strict=True)) for row in table.rows]
    assert [row["System"] for row in rows] == list(SYSTEMS.values())
    vrpc = next(row for row in rows if row["System"] == "vRPC")
    assert vrpc["Printed (us)"] == "33.0"
    assert ">31.00<" in vrpc["Measured"]
    assert (vrpc["Ratio"], vrpc["Hardware (us)"], vrpc["Instructions"]) == ("0.939", "8.5", "1\u202f406")


def test_files_have_what_was_measured() -> None:
    results = holding()
    tables = outcome(results).tables()
    summary = tables["summary.csv"]
    null = summary.filter(experiment="null")
    assert dict(null.select("system", "measured").iter_rows()) == NULL_US
    printed = dict(null.select("system", "printed").drop_nulls().iter_rows())
    assert printed == {FLOOR: 8.5, "shrimprpc": 9.5, "vrpc": 33.0}
    assert summary.height == sum(map(len, (results.null, results.sizes, results.streams, results.latencies))) + 2
    assert tables["steps.csv"].rows()[1] == ("vrpc", "request", "hardware", 4250, None)


def test_a_page_without_runs(tmp_path: Path) -> None:
    with pictures(Pictures(png=False)):
        page = outcome(Results(PAPER, "smoke", Decimal("62.5"))).page(tmp_path)
    assert page.drawings == {}
    assert [section.anchor for section in page.sections] == ANCHORS
