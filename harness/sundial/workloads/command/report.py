# SPDX-License-Identifier: Apache-2.0
"""Programs in reports: each with its times, its end and what it wrote, and the events that met them; there are no
calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from sundial.report.tables import Table
from sundial.report.tables_run import RecordsAlone, scalars
from sundial.report.workload import Records, WorkloadReport


class _Programs(RecordsAlone):
    def serves(self, options: Mapping[str, Any]) -> bool:
        return all(each.get("role") == "service" for each in options.get("programs", []))

    def tables(self, records: Records, samples: pl.DataFrame) -> Iterator[Table]:
        yield from super().tables(records, samples)
        for kind, what in (
            ("event", "events on programs"),
            ("clock", "clocks of machines"),
            ("amount", "disks and memory"),
        ):
            table = scalars(f"{what} (times in ns)", records.get(kind, []), skip=("type", "step", "app", "at"))
            if table:
                yield table


KIND: WorkloadReport = _Programs("programs", "program")
