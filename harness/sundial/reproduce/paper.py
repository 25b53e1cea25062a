# SPDX-License-Identifier: Apache-2.0
"""What a paper printed, read from its data file."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from sundial.errors import BadInput
from sundial.model.fields import Strict
from sundial.model.source import read, validate

HERE = Path(__file__).parent


class Column(Strict):
    """One system in a table."""

    system: str
    """As the paper names it."""
    ours: str | None = None
    """What stands for it here, where that is another system."""
    key: str
    """Where the measured values come from."""
    printed: tuple[float, ...] | None
    """By size; None where the paper has no such column."""


class Table(Strict):
    """One table of the paper."""

    number: int
    title: str
    unit: str
    sizes: tuple[int, ...]
    columns: tuple[Column, ...]

    def printed(self, column: Column, size: int) -> float | None:
        return None if column.printed is None else column.printed[self.sizes.index(size)]


class HeaderBytes(Strict):
    """Bytes of RPC header in a message without data."""

    request: int
    reply: int


class Paper(Strict):
    """A paper with its tables."""

    name: str
    title: str
    authors: str
    published: str
    machines: str
    rpc_header_bytes: HeaderBytes
    tables: tuple[Table, ...] = Field(min_length=1)

    def table(self, number: int) -> Table:
        return {table.number: table for table in self.tables}[number]


def papers() -> list[str]:
    """Names of the papers whose experiments are here."""
    return sorted(path.stem for path in HERE.glob("*.yaml"))


def load_paper(name: str) -> Paper:
    """Raises BadInput for a paper that is not here."""
    if name not in papers():
        raise BadInput(f"there is no paper {name!r}", allowed=", ".join(papers()))
    path = HERE / f"{name}.yaml"
    return validate(read(path, str(path)), Paper)
