# SPDX-License-Identifier: Apache-2.0
"""Findings of a table: of each row that is wrong, and in the order of the checks."""

from __future__ import annotations

import polars as pl

from sundial.verify.findings import Check, findings, findings_of

TABLE = pl.DataFrame({"row": [3, 4, 5], "size": [1, None, 9]}, schema_overrides={"row": pl.UInt32})
SIZE = pl.col("size")


def test_checks_of_one_table_are_listed_one_after_another() -> None:
    checks: list[Check] = [
        ("large", SIZE > 8, pl.lit("8 at most"), SIZE),
        ("never", SIZE > 9, pl.lit("9 at most"), SIZE),
        ("small", SIZE < 10, pl.format("more than {}", SIZE), SIZE),
    ]
    found = findings_of(TABLE, checks)
    assert found.select("field", "expected", "seen", "rows").rows() == [
        ("large", "8 at most", "9", [5]),
        ("small", "more than 1", "1", [3]),
        ("small", "more than 9", "9", [5]),
    ]
    assert found["call"].to_list() == [None] * 3
    assert findings_of(TABLE.clear(), checks).is_empty()


def test_a_table_of_frames_needs_no_list_of_rows() -> None:
    named = TABLE.with_columns(call=pl.lit(7), rows=pl.concat_list("row", pl.col("row") + 10))
    wrong = SIZE.is_null()
    assert findings(TABLE, wrong, pl.lit("size"), pl.lit("one"), pl.lit("none")).rows() == [
        (None, "size", "one", "none", [4])
    ]
    assert findings(named, wrong, pl.lit("size"), pl.lit("one"), pl.lit("none")).rows() == [
        (7, "size", "one", "none", [4, 14])
    ]
    assert findings(named, wrong, pl.lit("size"), pl.lit("one"), pl.lit("none"), None)["rows"].to_list() == [[]]
