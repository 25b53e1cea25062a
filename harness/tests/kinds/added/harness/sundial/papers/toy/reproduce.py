# SPDX-License-Identifier: Apache-2.0
"""The toys' paper as `sundial reproduce` sees it: one run, printed beside measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl

from sundial.errors import RunFailed
from sundial.report.tables import Table, decimal, numbers
from sundial.reproduce.page import Page, Section
from sundial.reproduce.paper import Paper, Reproduction, read_paper
from sundial.reproduce.runs import Bench, Spec

MIPS = Decimal(125)


@dataclass(frozen=True)
class ToyOutcome:
    """Round trips by size, as the stage writes them."""

    paper: Paper
    table: pl.DataFrame

    def facts(self) -> Sequence[tuple[str, str]]:
        return [("toys", f"{self.table.height} sizes")]

    def index(self) -> Mapping[str, Any]:
        return {"mips": f"{MIPS:f}"}

    def tables(self) -> Mapping[str, pl.DataFrame]:
        return {"toys.csv": self.table}

    def page(self, figures: Path) -> Page:
        rows = tuple(tuple(decimal(value, 0) for value in row) for row in self.table.iter_rows())
        shown = Table("Round trips", numbers("Size (bytes)", "Printed (us)", "Measured (us)"), rows)
        paper = self.paper
        return Page(
            name=paper.name,
            reference=f"{paper.authors}: {paper.title}. {paper.published}.",
            key_figures=[],
            sections=[Section("toys", paper.table(1).title, "Toys", table=shown)],
            drawings={},
            files=("toys.csv",),
        )


class _Toy:
    def paper(self) -> Paper:
        return read_paper(Path(__file__).with_name("paper.yaml"), Paper)

    @property
    def scales(self) -> Sequence[str]:
        return ("quick", "full")

    def perform(self, bench: Bench, *, scale: str) -> ToyOutcome:
        paper = self.paper()
        printed = paper.table(1)
        workload = {"app": "toy", "sizes": list(printed.sizes), "calls": 2 if scale == "quick" else 20}
        bench.expect(1)
        measured = bench.make(Spec("toys", "toys that come back", "two-toys", [workload]), MIPS)
        if measured is None:
            raise RunFailed("the only run failed")
        rows = []
        for size in printed.sizes:
            trip = measured.round_trip(app="toy-client", size=size)
            if trip is None:
                raise RunFailed(f"no toy of {size} bytes came back")
            rows.append((float(size), printed.printed(printed.columns[0], size), trip.median_us))
        return ToyOutcome(paper, pl.DataFrame(rows, schema=["size", "printed_us", "measured_us"], orient="row"))


KIND: Reproduction = _Toy()
