# SPDX-License-Identifier: Apache-2.0
"""bilas97 as `sundial reproduce` sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sundial.papers.bilas97 import experiments
from sundial.papers.bilas97.extents import EXTENTS
from sundial.papers.bilas97.page import make_page
from sundial.papers.bilas97.paper import PATH, Bilas97
from sundial.papers.bilas97.results import Results, packets_table, steps_table, summary_table
from sundial.papers.bilas97.statements import STATEMENTS
from sundial.reproduce.page import Page
from sundial.reproduce.paper import Reproduction, read_paper
from sundial.reproduce.runs import Bench
from sundial.reproduce.verdicts import Verdict, judge, statements_csv


@dataclass(frozen=True)
class BilasOutcome:
    """Results and verdicts, as the stage writes them."""

    results: Results
    verdicts: Sequence[Verdict]

    def facts(self) -> Sequence[tuple[str, str]]:
        return [("verdicts", ", ".join(f"{each.statement.id} {each.outcome}" for each in self.verdicts))]

    def index(self) -> Mapping[str, Any]:
        return {
            "scale": self.results.scale,
            "mips": f"{self.results.mips.normalize():f}",
            "statements": {each.statement.id: each.outcome for each in self.verdicts},
        }

    def tables(self) -> Mapping[str, pl.DataFrame]:
        return {
            "summary.csv": summary_table(self.results),
            "steps.csv": steps_table(self.results),
            "packets.csv": packets_table(self.results),
            "statements.csv": statements_csv(self.verdicts),
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
