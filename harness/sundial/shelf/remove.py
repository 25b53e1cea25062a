# SPDX-License-Identifier: Apache-2.0
"""Removes runs, or their captures."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

from sundial.errors import BadInput
from sundial.shelf.entries import Entry, size_of
from sundial.shelf.notes import change

ENDING = ".removed"
"""A folder that is being removed is `.NAME.removed`."""


def check_removable(entry: Entry, *, force: bool) -> None:
    """Raises BadInput for a link, for a part of a reproduction or a matrix, and unless `force` for a tagged one."""
    if entry.path.is_symlink():
        raise BadInput("is a link to a run, which is not followed", file=str(entry.path), allowed="the run itself")
    above = entry.path.resolve().parent.parent
    for record, noun in (("reproduce.json", "reproduction"), ("matrix.json", "matrix")):
        if entry.path.resolve().parent.name == "runs" and (above / record).is_file():
            raise BadInput(f"is a part of the {noun} {above.name}", file=str(entry.path), allowed=above.name)
    if entry.notes.tags and not force:
        tags = ", ".join(entry.notes.tags)
        raise BadInput(f"is tagged {tags}", file=entry.name, allowed="--force, or a run without tags")


def remove(entry: Entry) -> None:
    """Remove the folder; a Ctrl-C meanwhile does not leave a part of it. Raises OSError."""
    hidden = entry.path.with_name(f".{entry.name}{ENDING}")
    if hidden.exists():
        _rmtree(hidden)
    entry.path.rename(hidden)
    _rmtree(hidden)


def captures_of(entry: Entry) -> list[Path]:
    """Its captures and the views of them, those of the runs of a reproduction too; links are not followed."""
    found = []
    for folder, folders, names in os.walk(entry.path):
        place = Path(folder)
        if "views" in folders and (place / "run.json").is_file():
            found.append(place / "views")
            folders.remove("views")
        if "wire" in place.relative_to(entry.path).parts:
            found += [place / name for name in names if name.endswith(".pcapng")]
    return sorted(found)


def captures_size(entry: Entry) -> int:
    """Their bytes on the disk."""
    return sum(map(size_of, captures_of(entry)))


def remove_captures(entry: Entry, today: date) -> None:
    """Remove captures and views, and write so into the notes of each run first. Raises OSError."""
    for run in _runs(entry):
        change(run, lambda notes: replace(notes, captures_removed=today.isoformat()))
    for path in captures_of(entry):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def clean_up(captures: Path) -> None:
    """Remove what a killed command has left of its removals."""
    for path in captures.glob(f".*{ENDING}"):
        shutil.rmtree(path, ignore_errors=True)


def _runs(entry: Entry) -> Iterator[Path]:
    yield entry.path
    if entry.kind in ("reproduction", "matrix"):
        yield from sorted(path.parent for path in entry.path.glob("runs/*/run.json"))


def _rmtree(path: Path) -> None:
    try:
        shutil.rmtree(path)
    except KeyboardInterrupt:
        shutil.rmtree(path, ignore_errors=True)
        raise
