# SPDX-License-Identifier: Apache-2.0
"""Sums of groups, against the same done row by row."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from sundial.verify.groups import Groups, number_of, once

ROWS = st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 2), st.integers(-3, 3)), max_size=20)


@given(rows=ROWS)
def test_sums_are_those_of_rows_with_equal_columns(rows: list[tuple[str | None, int, int]]) -> None:
    schema = {"name": pl.String, "number": pl.UInt32, "value": pl.Int64}
    table = pl.DataFrame(rows, schema=schema, orient="row")
    groups = Groups(table.select(number_of("name", "number")).to_series())
    alone = {(name, number) for name, number, value in rows}
    assert sorted(groups.sums(table["value"])) == sorted(sum(row[2] for row in rows if row[:2] == key) for key in alone)
    positive = groups.each(groups.sums(table["value"]) > 0)
    assert positive.tolist() == [sum(row[2] for row in rows if row[:2] == key[:2]) > 0 for key in rows]
    numbers = table.select(number_of("name", "number")).to_series()
    assert once(numbers).to_list() == [sum(row[:2] == key[:2] for row in rows) == 1 for key in rows]
