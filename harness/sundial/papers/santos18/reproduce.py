# SPDX-License-Identifier: Apache-2.0
"""santos18 as `sundial reproduce` sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from sundial.papers.santos18 import experiments
from sundial.papers.santos18.extents import EXTENTS
from sundial.papers.santos18.page import make_page
from sundial.papers.santos18.paper import PATH, Santos18
from sundial.papers.santos18.results import Results, calls_table, slopes_table
from sundial.papers.santos18.statements import STATEMENTS
from sundial.reproduce.judged import JudgedOutcome
from sundial.reproduce.page import Page
from sundial.reproduce.paper import Reproduction, read_paper
from sundial.reproduce.runs import Bench
from sundial.reproduce.verdicts import judge


class SantosOutcome(JudgedOutcome[Results]):
    """Of santos18."""

    def fields(self) -> Mapping[str, Any]:
        return {"mips": f"{self.results.mips.normalize():f}", "versions": dict(self.results.versions)}

    def measured(self) -> Mapping[str, pl.DataFrame]:
        return {"functions.csv": calls_table(self.results), "slopes.csv": slopes_table(self.results)}

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
