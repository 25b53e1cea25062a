# SPDX-License-Identifier: Apache-2.0
"""Findings: what differs from the expectation, as tables until the few that are shown are written out.

A law over columns makes its table of findings with `findings`. A check of single things yields `Finding`s, which
`as_table` joins to such a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import polars as pl


class Finding(NamedTuple):
    """One difference between a run and what is expected of it."""

    call: int | None
    """`id` of the call in the samples. None: it belongs to no call."""
    field: str
    """Field of a frame, a sample or a file, as verify.json names it."""
    expected: str
    seen: str
    rows: Sequence[int] = ()
    """Rows of the table of frames."""


FINDING: dict[str, pl.DataType] = {
    "call": pl.UInt32(),
    "field": pl.String(),
    "expected": pl.String(),
    "seen": pl.String(),
    "rows": pl.List(pl.UInt32()),
}
"""`call` is null for frames without one; `rows` are rows of the table of frames."""


_NONE = pl.DataFrame(schema=FINDING)


def none() -> pl.DataFrame:
    """No findings."""
    return _NONE.clone()


def as_table(found: Iterable[Finding]) -> pl.DataFrame:
    """The findings as a table of FINDING."""
    return pl.DataFrame(list(found), schema=FINDING, orient="row")


def leg_field(name: str) -> pl.Expr:
    """`request.name` or `reply.name`, by the column `reply`."""
    return pl.when("reply").then(pl.lit(f"reply.{name}")).otherwise(pl.lit(f"request.{name}"))


def findings(
    table: pl.DataFrame,
    where: pl.Expr,
    name: pl.Expr | str,
    expected: pl.Expr,
    seen: pl.Expr,
    rows: str | None = "rows",
) -> pl.DataFrame:
    """The rows of `table` that meet `where`, as findings. `name` without a dot belongs to the row's direction. A table
    without a column of `rows` is of frames, each a `row`; one without `call` is of none."""
    if table.is_empty() or not table.select(where).to_series().any():  # as almost always, and nothing is copied
        return none()
    wrong = table.filter(where)
    field = leg_field(name) if isinstance(name, str) else name
    frames = pl.col(rows).fill_null([]) if rows else pl.lit([], dtype=pl.List(pl.UInt32))
    if rows is not None and rows not in table.columns:
        frames = pl.concat_list("row")
    call = pl.col("call") if "call" in table.columns else pl.lit(None)
    return wrong.select(
        call.cast(pl.UInt32).alias("call"),
        field.alias("field"),
        expected.cast(pl.String).alias("expected"),
        seen.cast(pl.String).alias("seen"),
        frames.cast(pl.List(pl.UInt32)).alias("rows"),
    )


Check = tuple[str, pl.Expr, pl.Expr, pl.Expr]
"""Field, which rows are wrong (null: not), what is expected and what was seen."""


def findings_of(table: pl.DataFrame, checks: Sequence[Check]) -> pl.DataFrame:
    """The findings of several checks of one table, those of the first before those of the next."""
    if table.is_empty():
        return none()
    # One query, which evaluates what checks have in common once. Almost always nothing is wrong.
    wrong = table.lazy().select(where.any().alias(str(place)) for place, (_, where, _, _) in enumerate(checks))
    found = [
        findings(table, where.fill_null(False), pl.lit(name), pl.format("{}", expected), pl.format("{}", seen))
        for (name, where, expected, seen), some in zip(checks, wrong.collect().row(0), strict=True)
        if some
    ]
    return pl.concat([none(), *found])
