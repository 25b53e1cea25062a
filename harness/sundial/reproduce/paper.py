# SPDX-License-Identifier: Apache-2.0
"""What a paper printed, and what this stage asks of a paper that can be reproduced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, Self, runtime_checkable

import polars as pl
from pydantic import model_validator

from sundial import kinds
from sundial.errors import BadInput
from sundial.model.fields import Strict
from sundial.reproduce.page import Page
from sundial.reproduce.runs import Bench

Scale = Literal["smoke", "quick", "full", "paper"]


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

    @property
    def here(self) -> str:
        """What is measured."""
        return self.ours or self.system


class Table(Strict):
    """One table of the paper."""

    number: int
    title: str
    unit: str
    sizes: tuple[int, ...]
    columns: tuple[Column, ...]

    def printed(self, column: Column, size: int) -> float | None:
        return None if column.printed is None else column.printed[self.sizes.index(size)]

    def column(self, key: str) -> Column:
        """Where its values come from."""
        return {column.key: column for column in self.columns}[key]


class Heading(Strict):
    """A section of the page; its prose is below the same anchor in page.md."""

    anchor: str
    title: str = ""
    """Without one: its figure's."""
    link: str
    """In the list of contents."""
    figure: str = ""
    """Stem of a drawing."""
    table: str = ""
    parts: str = ""
    """A second table, which is left out where it has no rows."""
    optional: bool = False
    """Left out where neither its figure was drawn nor its table has rows."""

    @model_validator(mode="after")
    def _has_a_title(self) -> Self:
        if not self.title and not (self.figure and self.optional):
            raise BadInput("a section without a title needs a figure and optional: true")
        return self


class Paper(Strict):
    """paper.yaml: what a paper printed, how much of it is run, and the sections of its page.

    A paper with more than that to say extends this class.
    """

    name: str
    title: str
    authors: str
    published: str
    scales: Mapping[Scale, Any]
    """How much is run, the smallest first; `full` is the default."""
    tables: tuple[Table, ...] = ()
    sections: tuple[Heading, ...]

    @property
    def reference(self) -> str:
        return f"{self.authors}: {self.title}. {self.published}."

    def table(self, number: int) -> Table:
        return {table.number: table for table in self.tables}[number]


class Outcome(Protocol):
    """What a reproduction has measured, ready to be written."""

    def facts(self) -> Sequence[tuple[str, str]]:
        """Lines for the terminal: a word and a sentence each."""

    def index(self) -> Mapping[str, Any]:
        """Fields of reproduce.json beside those that every reproduction has."""

    def tables(self) -> Mapping[str, pl.DataFrame]:
        """CSV files by name."""

    def page(self, figures: Path) -> Page:
        """What report.html shows; draws the figures into their folder."""


@runtime_checkable
class Reproduction(Protocol):
    """`sundial/papers/NAME/reproduce.py`: a paper whose experiments can be run again."""

    def paper(self) -> Paper:
        """The paper's data. Raises BadInput where its file is damaged."""

    def perform(self, bench: Bench, *, scale: str) -> Outcome:
        """All runs, one after the other, in the extent of one of the paper's scales.

        Raises RunFailed where so much failed that there is nothing to show.
        """


def papers() -> list[str]:
    """Names of the papers whose experiments can be reproduced, sorted."""
    return list(kinds.load("papers", "reproduce", Reproduction))


def reproduction(name: str) -> Reproduction:
    """Raises BadInput for a paper that cannot be reproduced here."""
    found = kinds.load("papers", "reproduce", Reproduction)
    if name not in found:
        raise BadInput(f"there is no paper {name!r}", allowed=", ".join(found))
    return found[name]
