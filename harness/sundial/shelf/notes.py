# SPDX-License-Identifier: Apache-2.0
"""What the user wrote about a run: `notes.json` beside its record."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sundial import NOTES
from sundial.errors import BadInput
from sundial.whole import whole

TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")
TAG_ALLOWED = "up to 32 letters, digits, dots, hyphens and underscores, beginning with a letter or digit"
NOTE_MOST = 500


@dataclass(frozen=True)
class Notes:
    """Tags in the order in which they were given, a note, and the day on which the captures were removed."""

    tags: tuple[str, ...] = ()
    note: str = ""
    captures_removed: str = ""
    """Date (ISO 8601); empty if they are there."""

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "tags": list(self.tags)}


def read_notes(folder: Path) -> Notes:
    """The notes of a run; empty ones if it has none, or a file that is not readable."""
    try:
        found = json.loads((folder / NOTES).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return Notes()
    if not isinstance(found, dict):
        return Notes()
    tags = found.get("tags")
    known = [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []
    return Notes(tuple(known), str(found.get("note") or ""), str(found.get("captures_removed") or ""))


def change(folder: Path, changed: Callable[[Notes], Notes]) -> Notes:
    """Write other notes; two commands at a time lose nothing. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        notes = changed(read_notes(folder))
        if notes == Notes():
            (folder / NOTES).unlink(missing_ok=True)
        else:
            with whole(folder / NOTES) as beside:
                beside.write_text(json.dumps(notes.to_json(), indent=1) + "\n", encoding="utf-8")
        return notes
    finally:
        os.close(handle)


def tagged(notes: Notes, tags: Sequence[str]) -> Notes:
    """With these tags, too. Raises BadInput."""
    for tag in tags:
        if not TAG.fullmatch(tag):
            raise BadInput(f"{tag!r} is not a tag", field="TAG", allowed=TAG_ALLOWED)
    return replace(notes, tags=tuple(dict.fromkeys([*notes.tags, *tags])))


def untagged(notes: Notes, tags: Sequence[str]) -> Notes:
    """Without these tags. Raises BadInput for one that is not there."""
    for tag in tags:
        if tag not in notes.tags:
            raise BadInput(f"the run has no tag {tag!r}", field="--remove", allowed=", ".join(notes.tags) or "none")
    return replace(notes, tags=tuple(tag for tag in notes.tags if tag not in tags))


def noted(notes: Notes, text: str) -> Notes:
    """With this note, an empty one for none. Raises BadInput."""
    if not text.isprintable() or len(text) > NOTE_MOST:
        raise BadInput("the note is not one printable line", field="TEXT", allowed=f"up to {NOTE_MOST} characters")
    return replace(notes, note=text)
