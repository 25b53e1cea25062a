# SPDX-License-Identifier: Apache-2.0
"""Programs in reports: each with its times, its end and what it wrote; there are no calls."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import polars as pl

from sundial.expect import Leg
from sundial.report.tables import Table
from sundial.report.tables_run import scalars
from sundial.report.workload import Client, Filter, Records, Setting, WorkloadReport


class CommandReport:
    """Programs, as the report asks for them."""

    clients: Mapping[str, Client] = {}

    def legs(self, setting: Setting, size: int) -> tuple[Leg, Leg] | None:
        return None

    def moves(self, procedure: str) -> int:
        return 0

    def filters(self, transports: Collection[str]) -> Iterator[Filter]:
        return iter(())

    def tables(self, records: Records, samples: pl.DataFrame) -> Iterator[Table]:
        table = scalars("programs", records.get("program", []))
        if table:
            yield table


KIND: WorkloadReport = CommandReport()
