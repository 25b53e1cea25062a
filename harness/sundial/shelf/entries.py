# SPDX-License-Identifier: Apache-2.0
"""The folders of captures/ that hold runs, reproductions, matrices, or what is left of a run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sundial.shelf.notes import Notes, read_notes

Kind = Literal["run", "reproduction", "matrix", "damaged"]
RECORDS: dict[str, Kind] = {
    "run.json": "run",
    "reproduce.json": "reproduction",
    "matrix.json": "matrix",
}
PARTS = ("wire", "nodes", "runs")
"""Folders of a run or a reproduction: one of them shows what a folder without a record was."""
UNVERIFIED = "unverified"
_OF_MATRIX = {0: "pass", 1: "fail", 4: "fail"}
"""The verdict of a matrix, by its exit status."""


@dataclass(frozen=True)
class Entry:
    """One folder. `changed_s`: when its record was written (seconds since 1970), which orders entries."""

    path: Path
    kind: Kind
    changed_s: float
    document: dict[str, Any]
    """run.json, reproduce.json or matrix.json; empty if damaged."""
    verdict: str | None
    """Of verify.json, or of all runs of a matrix; None of others."""
    notes: Notes

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def status(self) -> str:
        if self.kind == "matrix":
            missing = any(cell.get("verdict") == "missing" for cell in self.document.get("cells") or ())
            return "incomplete" if missing else "complete"
        return "damaged" if self.kind == "damaged" else str(self.document.get("status"))

    @property
    def scenario(self) -> str | None:
        return _name(self.document.get("scenario"))

    @property
    def topology(self) -> str | None:
        return _name(self.document.get("topology"))


def read_entries(captures: Path) -> list[Entry]:
    """All of them, the oldest first; hidden folders, such as runs in the making, are not among them."""
    found = [entry for path in _folders(captures) if (entry := read_entry(path)) is not None]
    return sorted(found, key=lambda entry: (entry.changed_s, entry.name))


def read_entry(path: Path) -> Entry | None:
    """One folder; None if it holds nothing of Sundial's."""
    try:
        for record, kind in RECORDS.items():
            if (path / record).is_file():
                document = _object(path / record)
                changed = (path / record).stat().st_mtime
                verdict = _verdict(path) if kind == "run" else _of_cells(document) if kind == "matrix" else None
                return Entry(path, kind if document else "damaged", changed, document, verdict, read_notes(path))
        if any((path / part).is_dir() for part in PARTS):
            return Entry(path, "damaged", path.stat().st_mtime, {}, None, read_notes(path))
    except OSError:
        return None
    return None


def size_of(path: Path) -> int:
    """Bytes on the disk of a file or a folder; each file once. What vanishes meanwhile counts as nothing."""
    seen: set[tuple[int, int]] = set()
    total = 0
    for stat in _stats(path):
        if (stat.st_dev, stat.st_ino) not in seen:
            seen.add((stat.st_dev, stat.st_ino))
            total += stat.st_blocks * 512
    return total


def _stats(path: Path) -> Iterator[os.stat_result]:
    try:
        yield path.lstat()
        with os.scandir(path) as inside:
            entries = list(inside)
    except OSError:
        return
    for entry in entries:
        try:
            if entry.is_dir(follow_symlinks=False):
                yield from _stats(Path(entry.path))
            else:
                yield entry.stat(follow_symlinks=False)
        except OSError:
            continue


def _folders(captures: Path) -> list[Path]:
    try:
        with os.scandir(captures) as inside:
            return [Path(entry.path) for entry in inside if entry.is_dir() and not entry.name.startswith(".")]
    except OSError:
        return []


def _verdict(path: Path) -> str:
    verdict = _object(path / "verify.json").get("verdict")
    return verdict if isinstance(verdict, str) else UNVERIFIED


def _of_cells(document: dict[str, Any]) -> str | None:
    """The verdict of a matrix; None while no cell has one."""
    made = any(cell.get("verdict") in ("pass", "fail", "failed") for cell in document.get("cells") or ())
    return _OF_MATRIX.get(document.get("status", -1)) if made else None


def _object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _name(part: Any) -> str | None:
    name = part.get("name") if isinstance(part, dict) else part
    return name if isinstance(name, str) else None
