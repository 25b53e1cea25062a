# SPDX-License-Identifier: Apache-2.0
"""`python -m sundial.data.write` writes the columns of all tables into docs/data.md."""

from __future__ import annotations

from collections.abc import Iterator

from sundial.data.tables import TABLES
from sundial.described import descriptions
from sundial.model.catalog import ROOT

PAGE = ROOT / "docs" / "data.md"
BEGIN = "<!-- Written by python -m sundial.data.write -->"


def columns_text() -> str:
    """A heading and a table of columns for each table of a run."""
    return "\n".join(line for name in TABLES for line in _one(name))


def with_columns(page: str) -> str:
    """The page with the columns as they are."""
    return f"{page.partition(BEGIN)[0]}{BEGIN}\n\n{columns_text()}\n"


def _one(name: str) -> Iterator[str]:
    table = TABLES[name]
    said = descriptions(table.row)
    yield f"## {name}\n"
    yield f"{table.row.__doc__}\n"
    yield "| column | type | meaning |"
    yield "| --- | --- | --- |"
    for column, kind in table.columns.items():
        yield f"| `{column}` | {kind() if isinstance(kind, type) else kind!s} | {said[column]} |"
    yield ""


if __name__ == "__main__":
    PAGE.write_text(with_columns(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
