# SPDX-License-Identifier: Apache-2.0
"""kedziera98 as `sundial reproduce` sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sundial.papers.kedziera98 import experiments
from sundial.papers.kedziera98.extents import EXTENTS
from sundial.papers.kedziera98.page import make_page
from sundial.papers.kedziera98.paper import PATH, Kedziera98
from sundial.papers.kedziera98.results import Results, curves_table
from sundial.papers.kedziera98.statements import STATEMENTS
from sundial.reproduce.page import Page
from sundial.reproduce.paper import Reproduction, read_paper
from sundial.reproduce.runs import Bench
from sundial.reproduce.verdicts import Verdict, judge, statements_csv


@dataclass(frozen=True)
class KedzieraOutcome:
    """Results and verdicts, as the stage writes them."""

    results: Results
    verdicts: Sequence[Verdict]

    def facts(self) -> Sequence[tuple[str, str]]:
        speeds = ", ".join(f"{fit.machine} {fit.mips.normalize():f}" for fit in self.results.fits)
        said = [f"{each.statement.id} {each.outcome}" for each in self.verdicts]
        return [("machines", f"{speeds} mips"), ("verdicts", ", ".join(said))]

    def index(self) -> Mapping[str, Any]:
        return {
            "scale": self.results.scale,
            "mips": {fit.machine: f"{fit.mips.normalize():f}" for fit in self.results.fits},
            "statements": {each.statement.id: each.outcome for each in self.verdicts},
        }

    def tables(self) -> Mapping[str, pl.DataFrame]:
        return {"curves.csv": curves_table(self.results), "statements.csv": statements_csv(self.verdicts)}

    def page(self, figures: Path) -> Page:
        return make_page(self.results, self.verdicts, figures)


class _Kedziera98:
    def paper(self) -> Kedziera98:
        return read_paper(PATH, Kedziera98)

    @property
    def scales(self) -> Sequence[str]:
        return tuple(EXTENTS)

    def perform(self, bench: Bench, *, scale: str) -> KedzieraOutcome:
        results = experiments.perform(self.paper(), bench, EXTENTS[scale], scale)
        return KedzieraOutcome(results, judge(STATEMENTS, results))


KIND: Reproduction = _Kedziera98()
