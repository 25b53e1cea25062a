# SPDX-License-Identifier: Apache-2.0
"""Operations of memory-based communication in reports."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import polars as pl

from sundial.expect import Leg
from sundial.report.tables import Table
from sundial.report.workload import BOTH_DIRECTIONS, Client, Filter, Records, Setting, WorkloadReport
from sundial.workloads.mbcf.observe import repeated
from sundial.workloads.mbcf.plan import CLIENT


class MbcfReport:
    """Operations, as the report asks for them."""

    clients: Mapping[str, Client] = {CLIENT: Client(CLIENT, repeats=repeated)}

    def legs(self, setting: Setting, size: int) -> tuple[Leg, Leg] | None:
        """An operation is not an exchange of a request and a reply."""
        return None

    def moves(self, procedure: str) -> int:
        return BOTH_DIRECTIONS

    def filters(self, transports: Collection[str]) -> Iterator[Filter]:
        return iter(())

    def tables(self, records: Records, samples: pl.DataFrame) -> Iterator[Table]:
        return iter(())


KIND: WorkloadReport = MbcfReport()
