# SPDX-License-Identifier: Apache-2.0
"""What of Sundial takes how much of the disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sundial.shelf.entries import Kind, read_entries, size_of


@dataclass(frozen=True)
class Usage:
    """A part, the places that it has, its bytes on the disk, and how to free them."""

    what: str
    places: tuple[Path, ...]
    count: int | None
    bytes: int
    free: str


def of_captures(captures: Path, making: Sequence[Path]) -> list[Usage]:
    """Finished runs, reproductions, damaged folders, and what is being made."""
    entries = read_entries(captures)
    hints: dict[Kind, tuple[str, str]] = {
        "run": ("runs", "sundial gc --keep 20; sundial rm --older 30d"),
        "reproduction": ("reproductions", "sundial rm NAME"),
        "matrix": ("matrices", "sundial rm NAME"),
        "damaged": ("damaged runs", "sundial rm NAME"),
    }
    found = []
    for kind, (what, free) in hints.items():
        paths = [entry.path for entry in entries if entry.kind == kind]
        found.append(Usage(what, (captures,), len(paths), sum(map(size_of, paths)), free))
    found.append(Usage("in the making", (captures,), len(making), sum(map(size_of, making)), ""))
    return found


def of_places(what: str, places: Sequence[Path], free: str) -> Usage:
    """One part that is at several places."""
    there = tuple(path for path in places if path.exists())
    return Usage(what, there, None, sum(map(size_of, there)), free)
