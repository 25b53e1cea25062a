# SPDX-License-Identifier: Apache-2.0
"""The toys' paper as `sundial reproduce` sees it: one run, printed beside measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import polars as pl

from sundial.errors import RunFailed
from sundial.model.fields import Strict
from sundial.report.tables import Table, decimal, numbers
from sundial.reproduce.declared import Declared
from sundial.reproduce.paper import Paper, Scale
from sundial.reproduce.runs import Bench, Spec

MIPS = Decimal(125)


class Extent(Strict):
    """How much is run."""

    calls: int


class Toy(Paper):
    """paper.yaml."""

    scales: Mapping[Scale, Extent]


@dataclass
class Results:
    """Round trips in us by size."""

    paper: Toy
    scale: str
    mips: Decimal = MIPS
    trips: dict[int, float] = field(default_factory=dict)

    def beside(self) -> pl.DataFrame:
        """toys.csv."""
        (column,) = self.paper.table(1).columns
        rows = [(size, self.paper.table(1).printed(column, size), us) for size, us in self.trips.items()]
        return pl.DataFrame(rows, schema=["size", "printed_us", "measured_us"], orient="row")


def perform(paper: Toy, bench: Bench, extent: Extent, scale: str) -> Results:
    """All runs. Raises RunFailed."""
    results = Results(paper, scale)
    workload = {"app": "toy", "sizes": list(paper.table(1).sizes), "calls": extent.calls}
    bench.expect(1)
    measured = bench.make(Spec("toys", "toys that come back", "two-toys", [workload]), MIPS)
    if measured is None:
        raise RunFailed("the only run failed")
    for size in paper.table(1).sizes:
        trip = measured.round_trip(app="toy-client", size=size)
        if trip is None:
            raise RunFailed(f"no toy of {size} bytes came back")
        results.trips[size] = trip.median_us
    return results


def toys_table(results: Results) -> Table:
    """Printed beside measured."""
    rows = tuple(tuple(decimal(value, 0) for value in row) for row in results.beside().iter_rows())
    return Table("Round trips", numbers("Size (bytes)", "Printed (us)", "Measured (us)"), rows)


KIND = Declared(
    folder=Path(__file__).parent,
    model=Toy,
    experiments=perform,
    fields=lambda results: {"mips": f"{results.mips:f}"},
    files={"toys.csv": Results.beside},
    tables={"toys": toys_table},
)
