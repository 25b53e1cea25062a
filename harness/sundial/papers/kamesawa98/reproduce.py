# SPDX-License-Identifier: Apache-2.0
"""kamesawa98 as `sundial reproduce` sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sundial.papers.kamesawa98 import experiments
from sundial.papers.kamesawa98.page import make_page
from sundial.papers.kamesawa98.paper import PATH, Kamesawa98
from sundial.papers.kamesawa98.results import Results, faults_table, summary_table
from sundial.reproduce.page import Page
from sundial.reproduce.paper import Reproduction, read_paper
from sundial.reproduce.runs import Bench


@dataclass(frozen=True)
class KamesawaOutcome:
    """The results, as the stage writes them."""

    results: Results

    def facts(self) -> Sequence[tuple[str, str]]:
        return [("machine", f"{self.results.best.mips:f} mips put Linux nearest to the paper's reference")]

    def index(self) -> Mapping[str, Any]:
        return {"mips": f"{self.results.best.mips:f}"}

    def tables(self) -> Mapping[str, pl.DataFrame]:
        return {"summary.csv": summary_table(self.results), "faults.csv": faults_table(self.results)}

    def page(self, figures: Path) -> Page:
        return make_page(self.results, figures)


class _Kamesawa98:
    def paper(self) -> Kamesawa98:
        return read_paper(PATH, Kamesawa98)

    @property
    def scales(self) -> Sequence[str]:
        return tuple(experiments.EXTENTS)

    def perform(self, bench: Bench, *, scale: str) -> KamesawaOutcome:
        return KamesawaOutcome(experiments.perform(self.paper(), bench, experiments.EXTENTS[scale]))


KIND: Reproduction = _Kamesawa98()
