# SPDX-License-Identifier: Apache-2.0
"""What verification must find: `expected.yaml`. A row is a damage to a recorded run and the field of the finding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML

from mutation.damage import Damage
from mutation.gate import damaged
from sundial.errors import SundialError
from sundial.verify import verify_run

FILE = Path(__file__).parent / "expected.yaml"


@dataclass(frozen=True)
class Row:
    """One damage. Either `field` or `refused` is set."""

    damage: str
    field: str | None = None
    """The field of a finding."""
    refused: str | None = None
    """Part of the message with which the run is refused."""
    copy: int = 1
    """Rows of the same number share a copy of the run."""
    night: bool = False
    why: str = ""
    """Why the finding names another field than the damage."""


def load() -> dict[str, list[Row]]:
    """Rows by the name of their run."""
    return {run: [Row(**row) for row in rows] for run, rows in YAML(typ="safe").load(FILE).items()}


def groups(rows: Iterable[Row]) -> list[list[Row]]:
    """Rows that share a copy. A run that is refused has no other findings, so such a row has a copy to itself."""
    shared: dict[int, list[Row]] = {}
    for row in rows:
        shared.setdefault(-len(shared) if row.refused else row.copy, []).append(row)
    return list(shared.values())


def found(run: Path, damages: Sequence[Damage], seed: int, work: Path) -> set[str]:
    """Fields of the findings in a run with these damages; the message if the run is refused."""
    copy, idle = damaged(run, damages, seed, work)
    assert not idle, f"changed nothing: {idle}"
    try:
        return {problem["field"] for problem in verify_run(copy.path).problems}
    except SundialError as error:
        return {str(error)}


def missed(rows: Sequence[Row], fields: set[str]) -> list[Row]:
    """Rows whose finding is missing."""
    return [row for row in rows if not is_found(row, fields)]


def is_found(row: Row, fields: set[str]) -> bool:
    """Whether the row's finding is there."""
    if row.refused is not None:
        return any(row.refused in message for message in fields)
    return row.field in fields
