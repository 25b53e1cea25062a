# SPDX-License-Identifier: Apache-2.0
"""khandker as `sundial reproduce` sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from sundial.papers.khandker import experiments
from sundial.papers.khandker.extents import EXTENTS
from sundial.papers.khandker.page import make_page
from sundial.papers.khandker.paper import PATH, Khandker
from sundial.papers.khandker.results import Results, curves_table, steps_table, threads_table
from sundial.papers.khandker.statements import STATEMENTS
from sundial.reproduce.judged import JudgedOutcome
from sundial.reproduce.page import Page
from sundial.reproduce.paper import Reproduction, read_paper
from sundial.reproduce.runs import Bench
from sundial.reproduce.verdicts import judge


class KhandkerOutcome(JudgedOutcome[Results]):
    """Of khandker."""

    @property
    def _mips(self) -> str:
        return f"{self.results.best.mips.normalize():f}"

    def findings(self) -> Sequence[tuple[str, str]]:
        return [("machines", f"{self._mips} mips are nearest to null and 4016 bytes")]

    def fields(self) -> Mapping[str, Any]:
        return {"mips": self._mips}

    def measured(self) -> Mapping[str, pl.DataFrame]:
        return {
            "curves.csv": curves_table(self.results),
            "steps.csv": steps_table(self.results),
            "threads.csv": threads_table(self.results),
        }

    def page(self, figures: Path) -> Page:
        return make_page(self.results, self.verdicts, figures)


class _Khandker:
    def paper(self) -> Khandker:
        return read_paper(PATH, Khandker)

    @property
    def scales(self) -> Sequence[str]:
        return tuple(EXTENTS)

    def perform(self, bench: Bench, *, scale: str) -> KhandkerOutcome:
        results = experiments.perform(self.paper(), bench, EXTENTS[scale], scale)
        return KhandkerOutcome(results, judge(STATEMENTS, results))


KIND: Reproduction = _Khandker()
