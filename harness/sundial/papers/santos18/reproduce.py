# SPDX-License-Identifier: Apache-2.0
"""santos18 as `sundial reproduce` sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sundial.papers.santos18 import experiments
from sundial.papers.santos18.extents import EXTENTS
from sundial.papers.santos18.page import make_page
from sundial.papers.santos18.paper import PATH, Santos18
from sundial.papers.santos18.results import Results, calls_table, slopes_table
from sundial.papers.santos18.statements import STATEMENTS
from sundial.reproduce.page import Page
from sundial.reproduce.paper import Reproduction, read_paper
from sundial.reproduce.runs import Bench
from sundial.reproduce.verdicts import Verdict, judge, statements_csv


@dataclass(frozen=True)
class SantosOutcome:
    """Results and verdicts, as the stage writes them."""

    results: Results
    verdicts: Sequence[Verdict]

    def facts(self) -> Sequence[tuple[str, str]]:
        return [("verdicts", ", ".join(f"{each.statement.id} {each.outcome}" for each in self.verdicts))]

    def index(self) -> Mapping[str, Any]:
        return {
            "scale": self.results.scale,
            "mips": f"{self.results.mips.normalize():f}",
            "versions": dict(self.results.versions),
            "statements": {each.statement.id: each.outcome for each in self.verdicts},
        }

    def tables(self) -> Mapping[str, pl.DataFrame]:
        return {
            "functions.csv": calls_table(self.results),
            "slopes.csv": slopes_table(self.results),
            "statements.csv": statements_csv(self.verdicts),
        }

    def page(self, figures: Path) -> Page:
        return make_page(self.results, self.verdicts, figures)


class _Santos18:
    def paper(self) -> Santos18:
        return read_paper(PATH, Santos18)

    @property
    def scales(self) -> Sequence[str]:
        return tuple(EXTENTS)

    def perform(self, bench: Bench, *, scale: str) -> SantosOutcome:
        results = experiments.perform(self.paper(), bench, EXTENTS[scale], scale)
        return SantosOutcome(results, judge(STATEMENTS, results))


KIND: Reproduction = _Santos18()
