# SPDX-License-Identifier: Apache-2.0
"""A paper that is data: paper.yaml and page.md beside the code that measures, judges and tabulates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import polars as pl

from sundial.errors import BadInput
from sundial.model.source import read, validate
from sundial.report.plotting import Drawing
from sundial.report.tables import Table
from sundial.reproduce.page import Page, Section, statements_table
from sundial.reproduce.paper import Heading, Paper
from sundial.reproduce.prose import Prose, check_prose, markdown, written
from sundial.reproduce.runs import Bench
from sundial.reproduce.verdicts import Statement, Undecidable, Verdict, counted, judge, statements_csv

STATEMENTS = "statements"
"""The table that each paper with statements has."""


class Measured(Protocol):
    """Results that were measured at one scale."""

    @property
    def paper(self) -> Paper: ...
    @property
    def scale(self) -> str:
        """Of `Paper.scales`."""


PaperT = TypeVar("PaperT", bound=Paper)
ResultsT = TypeVar("ResultsT", bound=Measured)


def _none(results: Any) -> tuple[()]:
    return ()


@dataclass(frozen=True)
class Declared(Generic[PaperT, ResultsT]):
    """`paper.Reproduction` of a paper whose folder has paper.yaml and page.md."""

    folder: Path
    model: type[PaperT]
    """Of paper.yaml."""
    experiments: Callable[[PaperT, Bench, Any, str], ResultsT]
    """All runs, in an extent and at the scale that it is of."""
    fields: Callable[[ResultsT], Mapping[str, Any]]
    """Of reproduce.json, beside scale and statements."""
    files: Mapping[str, Callable[[ResultsT], pl.DataFrame]]
    """CSV files by name, beside the statements."""
    tables: Mapping[str, Callable[[ResultsT], Table]]
    """Of the page, by the names in paper.yaml."""
    drawings: Callable[[ResultsT, Path], Iterable[Drawing | None]] = lambda results, folder: ()
    key_figures: Callable[[ResultsT], Iterable[tuple[str, str, str]]] = _none
    """Title, value, note."""
    facts: Callable[[ResultsT], Sequence[tuple[str, str]]] = _none
    """Lines for the terminal."""
    statements: Sequence[Statement[ResultsT]] = ()

    def paper(self) -> PaperT:
        """The paper's data. Raises BadInput for a section whose table or whose prose is not there."""
        path = self.folder / "paper.yaml"
        source = read(path, str(path))
        paper = validate(source, self.model)
        known = (*((STATEMENTS,) if self.statements else ()), *self.tables)
        for number, section in enumerate(paper.sections):
            for field in ("table", "parts"):
                if (name := getattr(section, field)) and name not in known:
                    what = f"unknown table {name!r}"
                    raise BadInput.many([source.problem(("sections", number, field), what, ", ".join(known))])
        check_prose(self.folder / "page.md", [section.anchor for section in paper.sections])
        return paper

    def perform(self, bench: Bench, *, scale: str) -> DeclaredOutcome[PaperT, ResultsT]:
        paper = self.paper()
        extent = next(extent for name, extent in paper.scales.items() if name == scale)
        return self.outcome(self.experiments(paper, bench, extent, scale))

    def outcome(self, results: ResultsT) -> DeclaredOutcome[PaperT, ResultsT]:
        """What was measured, judged."""
        return DeclaredOutcome(self, results, judge(self.statements, results))


@dataclass(frozen=True)
class DeclaredOutcome(Generic[PaperT, ResultsT]):
    """`paper.Outcome` of such a paper."""

    of: Declared[PaperT, ResultsT]
    results: ResultsT
    verdicts: Sequence[Verdict]

    def facts(self) -> Sequence[tuple[str, str]]:
        verdicts = ", ".join(f"{each.statement.id} {each.outcome}" for each in self.verdicts)
        return [*self.of.facts(self.results), *([("verdicts", verdicts)] if verdicts else [])]

    def index(self) -> Mapping[str, Any]:
        statements = {each.statement.id: each.outcome for each in self.verdicts}
        return {
            "scale": self.results.scale,
            **self.of.fields(self.results),
            **({"statements": statements} if statements else {}),
        }

    def tables(self) -> Mapping[str, pl.DataFrame]:
        found = {name: of(self.results) for name, of in self.of.files.items()}
        return {**found, "statements.csv": statements_csv(self.verdicts)} if self.verdicts else found

    def page(self, figures: Path) -> Page:
        paper = self.results.paper
        drawings = {each.stem: each for each in self.of.drawings(self.results, figures) if each is not None}
        prose = written(self.of.folder / "page.md", paper=paper, results=self.results)
        sections = [self._section(each, drawings, prose.get(each.anchor, Prose())) for each in paper.sections]
        return Page(
            name=paper.name,
            reference=paper.reference,
            key_figures=[*([counted(self.verdicts)] if self.verdicts else []), *self.of.key_figures(self.results)],
            sections=[section for section in sections if section is not None],
            drawings=drawings,
            files=(*self.of.files, *(("statements.csv",) if self.verdicts else ())),
        )

    def _section(self, heading: Heading, drawings: Mapping[str, Drawing], prose: Prose) -> Section | None:
        table, parts = self._table(heading.table), self._table(heading.parts)
        if heading.optional and heading.figure not in drawings and not (table and table.rows):
            return None
        title = heading.title or drawings[heading.figure].title
        reasons: Sequence[str] = [markdown(each) for each in prose.reasons]
        reasons_title = prose.reasons_title
        if heading.table == STATEMENTS:
            reasons = [f"{each.statement.id}, {each.outcome}: {each.reason}." for each in self.verdicts]
            reasons_title = "Reasons"
        return Section(
            heading.anchor, title, heading.link, prose.text, heading.figure, table, parts, prose.remarks, reasons,
            reasons_title,
        )  # fmt: skip

    def _table(self, name: str) -> Table | None:
        """Without rows where its run failed."""
        if not name:
            return None
        if name == STATEMENTS:
            return statements_table(self.verdicts)
        try:
            return self.of.tables[name](self.results)
        except Undecidable as error:
            return Table(str(error), (), ())
