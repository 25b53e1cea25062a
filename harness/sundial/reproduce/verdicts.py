# SPDX-License-Identifier: Apache-2.0
"""Statements of a paper, judged by code from what was measured. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, Self, TypeVar

import polars as pl

MET: Literal["met"] = "met"
NOT_MET: Literal["not met"] = "not met"
UNDECIDABLE: Literal["undecidable"] = "undecidable"
MOST_LISTED = 8


ResultsT = TypeVar("ResultsT")


class Undecidable(Exception):
    """A statement cannot be judged with what was measured; says why."""


@dataclass(frozen=True)
class Judged:
    """The outcome, what was measured in short, and the reason."""

    outcome: Literal["met", "not met", "undecidable"]
    measured: str
    reason: str

    @classmethod
    def of(cls, good: bool, measured: str, reason: str) -> Self:
        return cls(MET if good else NOT_MET, measured, reason)


@dataclass(frozen=True)
class Statement(Generic[ResultsT]):
    """What the paper says, how it is expected to show here, and how it is judged."""

    id: str
    figure: str
    text: str
    expected: str
    judge: Callable[[ResultsT], Judged]


@dataclass(frozen=True)
class Verdict:
    """A statement, judged."""

    statement: Statement[Any]
    outcome: Literal["met", "not met", "undecidable"]
    measured: str
    reason: str


def judge(statements: Iterable[Statement[ResultsT]], results: ResultsT) -> list[Verdict]:
    """All statements, in their order."""
    return [verdict(statement, results) for statement in statements]


def verdict(statement: Statement[ResultsT], results: ResultsT) -> Verdict:
    """One statement; undecidable where a run that it needs failed or does not suffice."""
    try:
        found = statement.judge(results)
    except Undecidable as error:
        found = Judged(UNDECIDABLE, "\u2013", str(error))
    return Verdict(statement, found.outcome, found.measured, found.reason)


def counted(verdicts: Sequence[Verdict]) -> tuple[str, str, str]:
    """How many are met, as a key figure of the page."""
    count = {outcome: sum(each.outcome == outcome for each in verdicts) for outcome in (MET, NOT_MET, UNDECIDABLE)}
    rest = f"{count[NOT_MET]} not, {count[UNDECIDABLE]} undecidable"
    return "statements met", f"{count[MET]} of {len(verdicts)}", rest


def statements_csv(verdicts: Sequence[Verdict]) -> pl.DataFrame:
    """statements.csv."""
    rows = [
        (of.id, of.figure, of.text, of.expected, each.measured, each.outcome, each.reason)
        for each in verdicts
        for of in (each.statement,)
    ]
    names = ("statement", "figure", "text", "expected", "measured", "verdict", "reason")
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


def listed(words: Iterable[str]) -> str:
    """The first few, and how many more there are."""
    found = list(words)
    more = f" and {len(found) - MOST_LISTED} more" if len(found) > MOST_LISTED else ""
    return ", ".join(found[:MOST_LISTED]) + more
