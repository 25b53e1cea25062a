# SPDX-License-Identifier: Apache-2.0
"""The page and the files of bilas97, of results made up and of none."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from sundial.papers.bilas97.reproduce import KIND
from sundial.papers.bilas97.results import FLOOR, SYSTEMS, Divided, Part, Results
from sundial.papers.bilas97.steps import REMAINDER
from sundial.report.plotting import Pictures, pictures
from sundial.report.tables import DASH, Table
from sundial.reproduce.page import Page
from tests.papers.bilas97.made import NULL_US, PAPER, holding


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    with pictures(Pictures(png=False)):
        return KIND.outcome(holding()).page(tmp_path_factory.mktemp("figures"))


def test_the_rate_of_memory_is_said_where_it_is_known(page: Page, tmp_path: Path) -> None:
    bare = KIND.outcome(Results(PAPER, "smoke", Decimal("62.5"))).page(tmp_path)
    for of, ends in ((page, "by time. Memory takes 23.0 MB/s."), (bare, "bytes of both ways by time.")):
        assert next(section.prose for section in of.sections if section.anchor == "streams").endswith(ends)


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
    tables = KIND.outcome(results).tables()
    summary = tables["summary.csv"]
    null = summary.filter(experiment="null")
    assert dict(null.select("system", "measured").iter_rows()) == NULL_US
    printed = dict(null.select("system", "printed").drop_nulls().iter_rows())
    assert printed == {FLOOR: 8.5, "shrimprpc": 9.5, "vrpc": 33.0}
    assert summary.height == sum(map(len, (results.null, results.sizes, results.streams, results.latencies))) + 2
    steps = tables["steps.csv"]
    assert steps.row(1) == ("vrpc", "packets", "request", "", "hardware", 4250, None)
    assert steps.row(4) == ("vrpc", "trace", "receive", "receive", "server", 1400, 87.5)
    assert tables["packets.csv"].rows() == [("null-calls", *[2] * 6, 1, 3, 0, 4, 16, 16)]


def table_of(results: Results, anchor: str, tmp_path: Path) -> Table:
    with pictures(Pictures(png=False)):
        page = KIND.outcome(results).page(tmp_path)
    table = next(section.table for section in page.sections if section.anchor == anchor)
    assert table is not None
    return table


def test_steps_are_summed_beside_the_clock_and_what_is_printed(tmp_path: Path) -> None:
    table = table_of(holding(), "steps", tmp_path)
    assert [row[1:3] + row[4:] for row in table.rows[3:]] == [
        ("sum", "client's", "9.600", "600", DASH),
        ("sum", "server's", "1.400", "87.5", DASH),
        ("sum", "software", "11.000", "687.5", DASH),
        ("sum", "hardware", "4.250", DASH, DASH),
        ("sum", "all steps", "15.250", "687.5", "33.0"),
        ("clock", "round trip, by the client's clock", "15.250", DASH, DASH),
    ]
    assert not table.alarms


def test_time_in_no_step_is_an_alarm(tmp_path: Path) -> None:
    results = holding()
    parts = (*results.traced["vrpc"].parts, Part(REMAINDER, "", 1, None))
    results.traced["vrpc"] = Divided(parts, 15_251)
    table = table_of(results, "steps", tmp_path)
    assert table.alarms == {3}
    assert table.rows[3][2:5] == (REMAINDER, "", "0.001")


def test_packets_that_the_fabric_has_counted_otherwise_are_an_alarm(tmp_path: Path) -> None:
    results = holding()
    assert not table_of(results, "packets", tmp_path).alarms
    results.packets["null-calls"] = replace(results.packets["null-calls"], fabric=15)
    assert table_of(results, "packets", tmp_path).alarms == {0}
