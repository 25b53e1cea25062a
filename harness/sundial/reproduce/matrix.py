# SPDX-License-Identifier: Apache-2.0
"""All against all: runs of one scenario in rows and columns, each cell a verdict and a figure. Pure."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any, Literal, get_args

from sundial.errors import BadInput
from sundial.model.overrides import parse_override

MOST_CELLS = 256
VERSION = 1
FIGURE = "p50(rtt_us)"
Verdict = Literal["pass", "fail", "failed", "refused", "missing"]
"""failed: the run did not end; refused: these two values do not go together; missing: no run has them."""
WORDS: Mapping[Verdict, str] = {
    "pass": "verified", "fail": "mismatches", "failed": "did not end", "refused": "not possible", "missing": "no run",
}  # fmt: skip
MARKS: Mapping[Verdict, str] = {"pass": "✓", "fail": "✗", "failed": "!", "refused": "n/a", "missing": "-"}
AXIS = "KEY=VALUE,VALUE or KEY=[VALUE, VALUE], such as transports=udp,tcp"


@dataclass(frozen=True)
class Axis:
    """One field as `--set` names it, and its values: of each the text for `--set`, and what a heading says."""

    key: str
    values: tuple[str, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Cell:
    """What became of one pair of values."""

    row: str
    column: str
    verdict: Verdict
    run: str | None = None
    """The run directory, below the matrix or as it was named."""
    calls: int = 0
    mismatches: int = 0
    retransmissions: int | None = None
    figure: str | None = None
    """The measure, with its unit."""
    value: float | None = None
    first: str | None = None
    """The first mismatch, or the error."""


@dataclass(frozen=True)
class Matrix:
    """All cells, by row and then by column."""

    rows: Axis
    columns: Axis
    cells: tuple[Cell, ...]
    scenario: str
    measure: str
    command: tuple[str, ...]

    def at(self, row: str, column: str) -> Cell:
        """The cell of two headings."""
        return next(cell for cell in self.cells if (cell.row, cell.column) == (row, column))

    def having(self, *verdicts: Verdict) -> list[Cell]:
        """Cells with one of these verdicts."""
        return [cell for cell in self.cells if cell.verdict in verdicts]

    @property
    def status(self) -> int:
        """The worst: 4 where a run did not end, else 1 where one has mismatches, else 0."""
        return 4 if self.having("failed") else 1 if self.having("fail") else 0


def parse_axis(text: str, option: str) -> Axis:
    """An axis from the command line. Raises BadInput."""
    key, equals, rest = text.partition("=")
    if not equals or not key.strip() or not rest.strip():
        raise BadInput(f"{text!r} is not an axis", file=option, allowed=AXIS)
    parts = [part.strip() for part in rest.split(",")] if not rest.lstrip().startswith("[") else None
    try:
        values: Any = parse_override(text).value
        if parts is not None:
            values = [parse_override(f"{key}={part}").value for part in parts]
    except BadInput as error:
        raise BadInput(error.problems[0].what, file=option, field=key.strip(), allowed=AXIS) from error
    if not isinstance(values, list) or not values:
        raise BadInput("has no values", file=option, field=key.strip(), allowed=AXIS)
    labels = [label(value) for value in values]
    for name in labels:
        if labels.count(name) > 1:
            raise BadInput(f"{name!r} is there twice", file=option, field=key.strip(), allowed="different values")
    return axis_of(key.strip(), values)


def written(value: Any) -> str:
    """A value as `--set` reads it: YAML on one line."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{written(key)}: {written(part)}' for key, part in value.items())}}}"
    return str(value) if isinstance(value, Decimal) else json.dumps(value)


def axis_of(key: str, values: Sequence[Any]) -> Axis:
    """An axis of plain values."""
    return Axis(key, tuple(map(written, values)), tuple(map(label, values)))


def label(value: Any) -> str:
    """What a heading says of a value."""
    if isinstance(value, list | tuple):
        return ", ".join(map(label, value))
    if isinstance(value, bool):
        return "true" if value else "false"
    return written(value) if isinstance(value, Mapping) else str(value)


def pairs(rows: Axis, columns: Axis) -> list[tuple[int, int]]:
    """Places of all cells. Raises BadInput for too many, and for one field on both axes."""
    if rows.key == columns.key:
        raise BadInput(f"{rows.key} is on both axes", file="--columns", allowed="another field")
    count = len(rows.values) * len(columns.values)
    if count > MOST_CELLS:
        raise BadInput(f"{count} cells", file="--rows and --columns", allowed=f"up to {MOST_CELLS}")
    return [(row, column) for row in range(len(rows.values)) for column in range(len(columns.values))]


def folder_of(rows: Axis, columns: Axis, row: int, column: int) -> str:
    """The name of a cell's run directory: both values, with their numbers."""
    words = f"{rows.labels[row]} {columns.labels[column]}".lower()
    slug = re.sub(r"[^a-z0-9.]+", "-", words.replace("%", "pct")).strip("-.")[:60]
    return f"{row + 1:02d}-{column + 1:02d}-{slug}".strip("-")


# ---- runs that are there ----


def values_of(run: Mapping[str, Any], key: str) -> set[str]:
    """What run.json says of a field, as headings: one value, unless workloads differ in it; none where it has none."""
    if key in ("seed", "clock", "accelerator", "status"):
        return {label(run[key])} if key in run else set()
    if key in ("topology", "scenario"):
        name = (run.get(key) or {}).get("name")
        return set() if name is None else {str(name)}
    path = key.split(".")
    for document in (run.get("topology") or {}, run.get("scenario") or {}):
        found = _at(document, path)
        if found is not None:
            return {label(found)}
    workloads = (run.get("scenario") or {}).get("workloads") or []
    found_in = [_at(workload, path) for workload in workloads]
    return {label(value) for value in found_in if value is not None}


def _at(document: Any, path: Sequence[str]) -> Any:
    """The value at a dotted path; None where there is none."""
    for step in path:
        if isinstance(document, list) and step.isdecimal() and int(step) < len(document):
            document = document[int(step)]
        elif isinstance(document, Mapping) and step in document:
            document = document[step]
        else:
            return None
    return document


def axis_of_runs(key: str, option: str, runs: Mapping[str, Mapping[str, Any]]) -> Axis:
    """An axis with the values that runs have, in their order. Raises BadInput for a field that none has, or that one
    has twice."""
    found: dict[str, None] = {}
    for name, run in runs.items():
        values = values_of(run, key)
        if len(values) > 1:
            raise BadInput(f"workloads of {name} differ in it", file=option, field=key, allowed="workloads.N." + key)
        found |= dict.fromkeys(values)
    if not found:
        raise BadInput("no run has this field", file=option, field=key, allowed="a field of the scenario or topology")
    labels = sorted(found, key=_in_order)
    return Axis(key, tuple(labels), tuple(labels))


def _in_order(text: str) -> tuple[Any, ...]:
    """Numbers in a text count as numbers."""
    return tuple((1, float(part), "") if part.replace(".", "", 1).isdecimal() else (0, 0.0, part)
                 for part in re.split(r"(\d+(?:\.\d+)?)", text) if part)  # fmt: skip


# ---- what is written ----


def to_json(matrix: Matrix) -> dict[str, Any]:
    """matrix.json."""
    return {
        "version": VERSION,
        "scenario": matrix.scenario,
        "rows": {"key": matrix.rows.key, "values": list(matrix.rows.labels)},
        "columns": {"key": matrix.columns.key, "values": list(matrix.columns.labels)},
        "measure": matrix.measure,
        "status": matrix.status,
        "command": list(matrix.command),
        "cells": [asdict(cell) for cell in matrix.cells],
    }


def to_csv(matrix: Matrix) -> str:
    """matrix.csv: a row a cell."""
    text = io.StringIO()
    names = list(Cell.__dataclass_fields__)
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(cell) for cell in matrix.cells)
    return text.getvalue()


def to_text(matrix: Matrix) -> list[list[str]]:
    """Rows of a table for the terminal."""
    head = [f"{matrix.rows.key} \\ {matrix.columns.key}", *matrix.columns.labels]
    return [head, *([name, *(in_words(matrix.at(name, other)) for other in matrix.columns.labels)]
                    for name in matrix.rows.labels)]  # fmt: skip


def in_words(cell: Cell) -> str:
    """A cell in a few letters."""
    return " ".join(filter(None, (MARKS[cell.verdict], cell.figure or "")))


def counted_words(matrix: Matrix) -> Iterator[str]:
    """How many cells have each verdict."""
    for verdict in get_args(Verdict):
        number = len(matrix.having(verdict))
        if number:
            yield f"{number} {'with ' if verdict == 'fail' else ''}{WORDS[verdict]}"
