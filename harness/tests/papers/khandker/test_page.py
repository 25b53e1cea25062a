# SPDX-License-Identifier: Apache-2.0
"""Tables and files of a reproduction as it was measured."""

from __future__ import annotations

import pytest

from sundial.papers.khandker.reproduce import KIND
from sundial.papers.khandker.results import Results
from sundial.papers.khandker.tables import predictions_table, steps_table, sum_table
from tests.papers.khandker.recorded import results


@pytest.fixture(scope="module")
def measured() -> Results:
    return results()


def test_printed_is_beside_measured(measured: Results) -> None:
    client = {row[0]: row for row in steps_table(measured, "client").rows}
    # Sendmsg' at null, 1392 and 4016 bytes, printed; what was measured is beside each.
    assert client["C8'"][1:7:2] == ("572", "747", "1\u202f097")
    assert all(text not in ("", "\u2013") for text in client["C8'"][2:7:2])
    assert client["C22"][5:7] == ("804", client["C22"][6])
    server = {row[0]: row for row in steps_table(measured, "server").rows}
    assert (server["S5"][1], server["S16"][1], server["S6"][1]) == ("519", "396", "4")


def test_the_sum_is_of_its_rows(measured: Results) -> None:
    table = sum_table(measured, "window")
    rows = {row[1]: row[2:] for row in table.rows}
    for column in range(len(table.columns) - 2):
        parts = [
            float(count) * float(us)
            for row in table.rows
            if row[0]
            for cell in row[2 + column].split(" + ")
            if " x " in cell
            for count, us in [cell.split(" x ")]
        ]
        # Cells are rounded to us and to hundredths of a time.
        assert sum(parts) == pytest.approx(float(rows["sum"][column].replace("\u202f", "")), rel=0.005)
    assert rows["printed: sum"][4] == "32\u202f691"


def test_sizes_of_unit_costs_are_told_from_others(measured: Results) -> None:
    rows = [row for row in predictions_table(measured).rows if row[0] == "window"]
    assert [row[1] for row in rows if row[2] == "in the sample"] == ["0", "1\u202f392", "4\u202f016"]
    assert len([row for row in rows if row[2] == "out of sample"]) == 6


def test_csv_files_have_all_that_was_measured(measured: Results) -> None:
    outcome = KIND.outcome(measured)
    tables = outcome.tables()
    assert tables["curves.csv"].filter(policy="window").height == 28
    assert tables["curves.csv"]["sum_us"].drop_nulls().len() == 18
    assert set(tables["steps.csv"]["at"]) == {"client", "server", "wire"}
    assert tables["threads.csv"].height == len(measured.rates)
    assert tables["statements.csv"]["statement"].to_list() == [f"K{number}" for number in range(1, 14)]
    assert outcome.index()["mips"] == "7.8125"
    assert outcome.facts()[0][0] == "machines"
