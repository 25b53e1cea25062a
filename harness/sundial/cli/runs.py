# SPDX-License-Identifier: Apache-2.0
"""Run directories by reference: a path, a name below captures/, or `latest`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sundial.cli import rooms
from sundial.errors import BadInput

LATEST = "latest"


def find_run(reference: str) -> Path:
    """The run directory that a reference means; it has a run.json. Raises BadInput."""
    if reference == LATEST:
        runs = list_runs()
        if not runs:
            raise BadInput("there are no runs yet", hint="make one with: sundial run quickstart")
        return runs[-1][0]
    for path in (Path(reference), rooms.CAPTURES / reference):
        if (path / "run.json").is_file():
            return path
    _refuse_unfinished(reference)
    if Path(reference).is_dir() or (rooms.CAPTURES / reference).is_dir():
        raise BadInput("has no run.json: it is not a run directory", file=reference, allowed="what 'sundial run' wrote")
    raise BadInput(f"there is no run {reference!r}", allowed="a run directory, its name (see 'sundial ls'), or latest")


def find_entry(reference: str) -> Any:
    """A run, a reproduction or a damaged run (`shelf.entries.Entry`). Raises BadInput."""
    if reference == LATEST:
        return rooms.entry(find_run(reference))
    for path in (Path(reference), rooms.CAPTURES / reference):
        entry = rooms.entry(path) if path.is_dir() and not path.name.startswith(".") else None
        if entry is not None and (entry.kind != "damaged" or path.absolute().parent == rooms.CAPTURES.absolute()):
            return entry
    return rooms.entry(find_run(reference))


def _refuse_unfinished(reference: str) -> None:
    for folder in rooms.in_the_making():
        if reference in (name_in_the_making(folder), folder.name, str(folder)):
            raise BadInput(f"{reference} is still running", allowed="a run that has ended (see 'sundial ls')")


def name_in_the_making(folder: Path) -> str:
    """The name that the folder of a run that is being made will have."""
    return folder.name.removeprefix(".").removesuffix(".partial")


def reference_to(folder: Path) -> str:
    """What the user may type for a run directory: its name below captures/, otherwise its path."""
    return folder.name if folder.parent == rooms.CAPTURES else str(folder)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file. Raises BadInput."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"is not readable JSON: {error}", file=str(path)) from error
    if not isinstance(value, dict):
        raise BadInput("is not a JSON object", file=str(path))
    return value


def list_runs() -> list[tuple[Path, dict[str, Any]]]:
    """The runs below captures/ with their run.json, the oldest first; unreadable ones are left out.

    Directories that a killed harness left under a hidden name get their final names first.
    """
    rooms.take_up_abandoned()
    return _listed("run.json")


def list_reproductions() -> list[tuple[Path, dict[str, Any]]]:
    """The reproductions of papers below captures/ with their reproduce.json, in the same way."""
    return _listed("reproduce.json")


def _listed(record: str) -> list[tuple[Path, dict[str, Any]]]:
    found = []
    for path in rooms.CAPTURES.glob(f"*/{record}"):
        if path.parent.name.startswith("."):
            continue
        try:
            found.append((path.stat().st_mtime_ns, path.parent, read_json(path)))
        except (BadInput, OSError):
            continue
    return [(folder, run) for _, folder, run in sorted(found, key=lambda item: (item[0], item[1]))]


def captures(folder: Path) -> dict[str, Path]:
    """All captures of a run directory by name: those of frames, by segment, then those that kinds of segments add in
    their folders (`elan`, then `elan.cells`, `elan.pdus`)."""
    wire = folder / "wire"
    return {path.stem: path for path in (*sorted(wire.glob("*.pcapng")), *sorted(wire.glob("*/*.pcapng")))}
