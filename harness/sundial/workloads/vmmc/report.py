# SPDX-License-Identifier: Apache-2.0
"""Automatic and deliberate updates in reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from sundial.report.tables import Table, decimal, numbers, whole, words
from sundial.report.workload import BOTH_DIRECTIONS, Client, Records, WorkloadReport
from sundial.workloads.vmmc.plan import CLIENT


class VmmcReport(WorkloadReport):
    """Updates, as the report asks for them."""

    clients: Mapping[str, Client] = {CLIENT: Client("VMMC")}

    def moves(self, procedure: str) -> int:
        """A stream's sample is of many transfers, which `tables` knows."""
        return BOTH_DIRECTIONS if procedure == "round_trip" else 0

    def tables(self, records: Records, samples: pl.DataFrame) -> Iterator[Table]:
        streams = [
            line for line in records.get("batch", []) if line.get("app") == CLIENT and line.get("procedure") == "stream"
        ]
        timed = (
            samples.filter(pl.col("app") == CLIENT, pl.col("procedure") == "stream", "ok")
            .group_by("client", "transport", "size")
            .agg(pl.col("rtt_ns").median())
            .sort("client", "transport", "size")
        )
        transfers = {(line["machine"], line["transport"], line["size"]): int(line["transfers"]) for line in streams}
        rows = tuple(
            (
                str(client),
                str(transport),
                whole(size),
                whole(count),
                decimal(ns / 1e3, 1),
                decimal(1e3 * size * count / ns, 2),
            )
            for client, transport, size, ns in timed.iter_rows()
            if (count := transfers.get((client, transport, size))) and ns
        )
        if rows:
            columns = (*words("client", "transport"), *numbers("bytes", "transfers", "us", "Mbyte/s"))
            yield Table("Streams over a backplane", columns, rows)


KIND: WorkloadReport = VmmcReport()
