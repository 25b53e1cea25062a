# SPDX-License-Identifier: Apache-2.0
"""bilas97 as `sundial reproduce` sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from sundial.papers.bilas97 import experiments
from sundial.papers.bilas97.extents import EXTENTS
from sundial.papers.bilas97.page import make_page
from sundial.papers.bilas97.paper import PATH, Bilas97
from sundial.papers.bilas97.results import Results, packets_table, steps_table, summary_table
from sundial.papers.bilas97.statements import STATEMENTS
from sundial.reproduce.judged import JudgedOutcome
from sundial.reproduce.page import Page
from sundial.reproduce.paper import Reproduction, read_paper
from sundial.reproduce.runs import Bench
from sundial.reproduce.verdicts import judge


class BilasOutcome(JudgedOutcome[Results]):
    """Of bilas97."""

    def fields(self) -> Mapping[str, Any]:
        return {"mips": f"{self.results.mips.normalize():f}"}

    def measured(self) -> Mapping[str, pl.DataFrame]:
        return {
            "summary.csv": summary_table(self.results),
            "steps.csv": steps_table(self.results),
            "packets.csv": packets_table(self.results),
        }

    def page(self, figures: Path) -> Page:
        return make_page(self.results, self.verdicts, figures)


class _Bilas97:
    def paper(self) -> Bilas97:
        return read_paper(PATH, Bilas97)

    @property
    def scales(self) -> Sequence[str]:
        return tuple(EXTENTS)

    def perform(self, bench: Bench, *, scale: str) -> BilasOutcome:
        results = experiments.perform(self.paper(), bench, EXTENTS[scale], scale)
        return BilasOutcome(results, judge(STATEMENTS, results))


KIND: Reproduction = _Bilas97()
