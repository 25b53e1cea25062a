# SPDX-License-Identifier: Apache-2.0
"""The paper's data: table 2 with its unit costs and counts, table 1, steps, and single numbers of the text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from pydantic import model_validator

from sundial.errors import BadInput
from sundial.model.fields import Strict
from sundial.reproduce.paper import Paper, Scale


class Machines(Strict):
    """As the paper names them."""

    client: str
    server: str


class CostRow(Strict):
    """A row of table 2: what a step costs once, and how often it is on the path at each size."""

    device: str
    step: str
    of: int | None = None
    """Bytes, where the cost depends on them."""
    cost: int
    """As printed, us."""
    read: int | None = None
    """What it must be, where the print is wrong."""
    counts: tuple[int, ...]
    certain: bool = True
    """The text has a number for each column."""


class Threads(Strict):
    """Table 1: 1000 calls by 1, 2 .. 10 threads."""

    null_s: tuple[float, ...]
    null_calls_per_s: tuple[int, ...]
    put_s: tuple[float, ...]
    put_mbps: tuple[float, ...]


class PrintedStep(Strict):
    """A step of figures 1 and 2, us."""

    step: str
    printed: float | None = None
    """Of a null call; None: in a picture alone, or with another step."""
    sizes: Mapping[int, float] = {}
    note: str = ""

    def at(self, size: int) -> float | None:
        """What is printed of it at this size: of a null call where it does not depend on it."""
        if size and self.sizes:
            return self.sizes.get(size)
        return self.printed


class Text(Strict):
    """Single numbers of the text."""

    null_us: tuple[float, ...]
    first_null_us: float
    most_size: int
    most_us: float
    most_packets: int
    most_mbps: float
    threads_mbps: float
    threads_calls_per_s: int
    jumps: tuple[int, ...]
    packets_of_6000: int


class Extent(Strict):
    """Calls, threads and wires."""

    series: int
    """Times that the sizes are gone through, so that calls come at other phases of the machines' clocks."""
    calls: int
    """For each size and series."""
    unit_calls: int
    """The same, for sizes that unit costs are of."""
    threads: tuple[int, ...]
    thread_calls: int
    """Of all threads together."""
    wires: tuple[str, ...]
    """Topologies of table 1."""


class Khandker(Paper):
    """Tables that are no values by size alone are fields of their own."""

    machines: Machines
    scales: Mapping[Scale, Extent]
    sizes: tuple[int, ...]
    """Columns of table 2."""
    rows: tuple[CostRow, ...]
    calculated: tuple[int, ...]
    measured: tuple[int, ...]
    error_pct: tuple[float, ...]
    threads: Threads
    steps: tuple[PrintedStep, ...]
    text: Text

    @model_validator(mode="after")
    def _a_number_for_each_column(self) -> Self:
        columns = len(self.sizes)
        rows = (*(row.counts for row in self.rows), self.calculated, self.measured, self.error_pct)
        if any(len(row) != columns for row in rows):
            raise BadInput(f"rows of table 2 have {columns} columns")
        return self

    def measured_us(self, size: int) -> int:
        """Table 2's measured round trip."""
        return self.measured[self.sizes.index(size)]
