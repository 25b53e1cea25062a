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
from sundial.papers.kedziera98.statements import Verdict, judge
from sundial.reproduce.page import Page
from sundial.reproduce.paper import Reproduction, read_paper
from sundial.reproduce.runs import Bench


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
        return {"curves.csv": curves_table(self.results), "statements.csv": _statements(self.verdicts)}

    def page(self, figures: Path) -> Page:
        return make_page(self.results, self.verdicts, figures)


def _statements(verdicts: Sequence[Verdict]) -> pl.DataFrame:
    """statements.csv."""
    rows = [
        (of.id, of.figure, of.text, of.expected, each.measured, each.outcome, each.reason)
        for each in verdicts
        for of in (each.statement,)
    ]
    names = ("statement", "figure", "text", "expected", "measured", "verdict", "reason")
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


class _Kedziera98:
    def paper(self) -> Kedziera98:
        return read_paper(PATH, Kedziera98)

    @property
    def scales(self) -> Sequence[str]:
        return tuple(EXTENTS)

    def perform(self, bench: Bench, *, scale: str) -> KedzieraOutcome:
        results = experiments.perform(self.paper(), bench, EXTENTS[scale], scale)
        return KedzieraOutcome(results, judge(results))


KIND: Reproduction = _Kedziera98()
