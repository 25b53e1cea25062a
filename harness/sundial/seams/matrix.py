# SPDX-License-Identifier: Apache-2.0
"""`matrix.json`: runs in rows and columns, and what `sundial matrix --json` prints beside `folder` and `page`."""

from __future__ import annotations

from typing import Literal

from sundial.seams.form import Form, Items, Natural


class MatrixAxis(Form):
    """One field, and its values as headings."""

    key: str
    values: Items[str]


class MatrixCell(Form):
    """What became of one pair of values."""

    row: str
    column: str
    verdict: Literal["pass", "fail", "failed", "refused", "missing"]
    """failed: the run did not end; refused: the values do not go together; missing: no run has them."""
    run: str | None
    """The run directory: below the folder, or as the user named it."""
    calls: Natural
    mismatches: Natural
    retransmissions: Natural | None
    figure: str | None
    """The measure, with its unit."""
    value: float | None
    """The same as a number."""
    first: str | None
    """The first mismatch, or the error."""


class MatrixDocument(Form):
    """All cells, by row and then by column."""

    version: Literal[1]
    scenario: str
    rows: MatrixAxis
    columns: MatrixAxis
    measure: str
    status: Literal[0, 1, 4]
    """The exit status: the worst of all cells."""
    command: Items[str]
    cells: Items[MatrixCell]
