# SPDX-License-Identifier: Apache-2.0
"""What the clients of a run wrote: their calls as a table, the line above each batch, and all other lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from sundial.observe import SAMPLE_COLUMNS, RunDirectory, read_samples


@dataclass(frozen=True)
class RunSamples:
    """`table`: as in samples.parquet, in that order, with `id`, the number of the row."""

    table: pl.DataFrame
    batches: dict[tuple[str, int], dict[str, Any]]
    """The lines above batches, by client and batch."""
    records: dict[str, tuple[dict[str, Any], ...]]
    """The other lines of each node's samples."""


def load_samples(run: RunDirectory) -> RunSamples:
    """Read the nodes' samples.jsonl; whether samples.parquet says the same is asked elsewhere (`directory`)."""
    parts, records = [], {}
    batches: dict[tuple[str, int], dict[str, Any]] = {}
    for name, node in run.nodes.items():
        file = run.path / "nodes" / name / "samples.jsonl"
        if file.is_file():
            read = read_samples(file, scenario=run.scenario, client=node, names=run.names)
            parts.append(read.table)
            records[name] = read.records
            batches |= {(name, place): line for place, line in enumerate(read.batches)}
    table = pl.concat([pl.DataFrame(schema=SAMPLE_COLUMNS), *parts])
    return RunSamples(table.with_row_index("id"), batches, records)
