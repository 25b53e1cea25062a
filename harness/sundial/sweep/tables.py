# SPDX-License-Identifier: Apache-2.0
"""runs.parquet and calls.parquet: a row a run, and a row a call. All columns but `host_*` are the same wherever and in
whatever order runs were made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sundial.observe import SAMPLE_COLUMNS
from sundial.sweep.design import Axis, Point, number_of, plain
from sundial.sweep.store import Kept
from sundial.whole import whole

RUNS, CALLS = "runs.parquet", "calls.parquet"
COLUMNS: dict[str, Any] = {
    "n": pl.Int64, "key": pl.String, "bytes": pl.String, "seed": pl.Int64, "verdict": pl.String, "first": pl.String,
    "whose": pl.String, "calls": pl.Int64, "mismatches": pl.Int64, "retransmissions": pl.Int64, "virtual_ns": pl.Int64,
}  # fmt: skip
HOST_COLUMNS: dict[str, Any] = {
    "host_name": pl.String, "host_wall_s": pl.Float64, "host_cpu_s": pl.Float64, "host_made_again": pl.Int64,
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One run of the table."""

    number: int
    point: Point
    key: str
    kept: Kept
    verdict: str
    """pass, fail, failed, or differs: it was made twice, with different bytes."""
    first: str | None
    """The first mismatch, unmet bound, error, or file that differs."""
    metrics: Mapping[str, float | None]

    def to_json(self) -> list[Any]:
        """All that tables and page say of it."""
        kept = [self.kept.result.to_json(), self.kept.again, list(self.kept.differing)]
        return [self.number, self.key, kept, self.verdict, self.first, dict(self.metrics)]


def row_of(
    number: int, point: Point, key: str, kept: Kept, metrics: Mapping[str, float | None], unmet: Sequence[str]
) -> Row:
    """The row of a run with its values and the bounds that it does not meet."""
    verdict, first = str(kept.result.verdict), kept.result.first
    if kept.differing:
        verdict, first = "differs", ", ".join(kept.differing)
    elif unmet and verdict == "pass":
        verdict, first = "fail", unmet[0]
    return Row(number, point, key, kept, verdict, first, metrics)


def runs_table(axes: Sequence[Axis], metrics: Sequence[str], rows: Sequence[Row]) -> pl.DataFrame:
    """A row a run: `axis_NAME` is a number in base units, or null, and `axis_NAME_text` the value as written."""
    found: list[dict[str, Any]] = []
    for row in rows:
        result = row.kept.result
        found.append(
            {
                "n": row.number,
                "key": row.key,
                "bytes": result.bytes,
                "seed": row.point.seed,
                **_axes(axes, row.point),
                "verdict": row.verdict,
                "first": row.first,
                "whose": result.whose,
                "calls": result.calls,
                "mismatches": result.mismatches,
                "retransmissions": result.retransmissions,
                "virtual_ns": result.virtual_ns,
                **{f"metric_{name}": row.metrics.get(name) for name in metrics},
                **{f"host_{name}": result.host.get(name) for name in ("name", "wall_s", "cpu_s")},
                "host_made_again": row.kept.again,
            }
        )
    values = {f"metric_{name}": pl.Float64 for name in metrics}
    first, rest = dict(list(COLUMNS.items())[:4]), dict(list(COLUMNS.items())[4:])
    return pl.DataFrame(found, schema={**first, **_axis_columns(axes), **rest, **values, **HOST_COLUMNS})


def calls_table(axes: Sequence[Axis], rows: Sequence[Row]) -> pl.DataFrame:
    """The calls of all runs that reached their end, with the axes of each."""
    tables = []
    for row in rows:
        path = row.kept.run / "samples.parquet"
        if row.kept.result.verdict != "failed" and path.is_file():
            named = {"n": row.number, "run_seed": row.point.seed, **_axes(axes, row.point)}
            columns = [pl.lit(value, dtype=_schema(axes)[name]).alias(name) for name, value in named.items()]
            samples = pl.read_parquet(path, columns=list(SAMPLE_COLUMNS))
            words = [name for name, kind in samples.schema.items() if kind == pl.Categorical]
            tables.append(samples.with_columns(pl.col(words).cast(pl.String)).select(*columns, *SAMPLE_COLUMNS))
    return pl.concat(tables) if tables else pl.DataFrame(schema=_schema(axes))


def write_tables(folder: Path, axes: Sequence[Axis], metrics: Sequence[str], rows: Sequence[Row]) -> None:
    """Both tables. Raises OSError."""
    for name, table in ((RUNS, runs_table(axes, metrics, rows)), (CALLS, calls_table(axes, rows))):
        with whole(folder / name) as beside:
            table.write_parquet(beside)


def _schema(axes: Sequence[Axis]) -> dict[str, Any]:
    return {"n": pl.Int64, "run_seed": pl.Int64, **_axis_columns(axes)}


def _axis_columns(axes: Sequence[Axis]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for axis in axes:
        found |= {f"axis_{axis.name}": pl.Float64, f"axis_{axis.name}_text": pl.String}
    return found


def _axes(axes: Sequence[Axis], point: Point) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for axis, value in zip(axes, point.cell, strict=True):
        found |= {f"axis_{axis.name}": number_of(value), f"axis_{axis.name}_text": plain(value)}
    return found
