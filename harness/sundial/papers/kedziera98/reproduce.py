# SPDX-License-Identifier: Apache-2.0
"""kedziera98 as `sundial reproduce` sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from sundial.papers.kedziera98 import experiments
from sundial.papers.kedziera98.extents import EXTENTS
from sundial.papers.kedziera98.page import make_page
from sundial.papers.kedziera98.paper import PATH, Kedziera98
from sundial.papers.kedziera98.results import Results, curves_table
from sundial.papers.kedziera98.statements import STATEMENTS
from sundial.reproduce.judged import JudgedOutcome
from sundial.reproduce.page import Page
from sundial.reproduce.paper import Reproduction, read_paper
from sundial.reproduce.runs import Bench
from sundial.reproduce.verdicts import judge


class KedzieraOutcome(JudgedOutcome[Results]):
    """Of kedziera98."""

    def findings(self) -> Sequence[tuple[str, str]]:
        speeds = ", ".join(f"{fit.machine} {fit.mips.normalize():f}" for fit in self.results.fits)
        return [("machines", f"{speeds} mips")]

    def fields(self) -> Mapping[str, Any]:
        return {"mips": {fit.machine: f"{fit.mips.normalize():f}" for fit in self.results.fits}}

    def measured(self) -> Mapping[str, pl.DataFrame]:
        return {"curves.csv": curves_table(self.results)}

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
