# SPDX-License-Identifier: Apache-2.0
"""The outcome of papers whose statements are judged by code."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import polars as pl

from sundial.reproduce.page import Page
from sundial.reproduce.verdicts import Verdict, statements_csv


class Scaled(Protocol):
    """Results that were measured at one scale."""

    @property
    def scale(self) -> str:
        """Of `Reproduction.scales`."""


ResultsT = TypeVar("ResultsT", bound=Scaled)


@dataclass(frozen=True)
class JudgedOutcome(ABC, Generic[ResultsT]):
    """Results and verdicts, as the stage writes them (`paper.Outcome`); a paper adds what only it has."""

    results: ResultsT
    verdicts: Sequence[Verdict]

    def facts(self) -> Sequence[tuple[str, str]]:
        return [
            *self.findings(),
            ("verdicts", ", ".join(f"{each.statement.id} {each.outcome}" for each in self.verdicts)),
        ]

    def index(self) -> Mapping[str, Any]:
        statements = {each.statement.id: each.outcome for each in self.verdicts}
        return {"scale": self.results.scale, **self.fields(), "statements": statements}

    def tables(self) -> Mapping[str, pl.DataFrame]:
        return {**self.measured(), "statements.csv": statements_csv(self.verdicts)}

    def findings(self) -> Sequence[tuple[str, str]]:
        """Lines for the terminal before that of the verdicts."""
        return ()

    @abstractmethod
    def fields(self) -> Mapping[str, Any]:
        """Of reproduce.json, beside scale and statements."""

    @abstractmethod
    def measured(self) -> Mapping[str, pl.DataFrame]:
        """CSV files by name, beside the statements."""

    @abstractmethod
    def page(self, figures: Path) -> Page:
        """What report.html shows; draws the figures into their folder."""
