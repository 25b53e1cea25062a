# SPDX-License-Identifier: Apache-2.0
"""Damages that verification need not find, each with the reason: `allowed.yaml`."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML

FILE = Path(__file__).parent / "allowed.yaml"


@dataclass(frozen=True)
class Allowed:
    """Patterns of names, as the shell has them, in runs of some names; `[` stands for itself."""

    damages: tuple[str, ...]
    runs: tuple[str, ...]
    reason: str

    def covers(self, run: str, damage: str) -> bool:
        return any(fnmatch.fnmatchcase(run, each) for each in self.runs) and any(
            fnmatch.fnmatchcase(damage, each.replace("[", "[[]")) for each in self.damages
        )


def load() -> list[Allowed]:
    """The list of the repository."""
    return [
        Allowed(tuple(entry["damages"]), tuple(entry.get("runs", ["*"])), entry["reason"])
        for entry in YAML(typ="safe").load(FILE) or []
    ]


def is_allowed(entries: Sequence[Allowed], run: str, damage: str) -> bool:
    """Whether one of them covers it."""
    return any(entry.covers(run, damage) for entry in entries)


def unused(entries: Sequence[Allowed], survivors: Sequence[tuple[str, str]]) -> list[str]:
    """Patterns under which nothing passed: (run, damage) of all that did, of all runs."""
    return [
        pattern
        for entry in entries
        for pattern in entry.damages
        if not any(Allowed((pattern,), entry.runs, "").covers(*each) for each in survivors)
    ]
