# SPDX-License-Identifier: Apache-2.0
"""Writes the files of a draft: all of them, or none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sundial.errors import BadInput
from sundial.whole import whole


def write(files: Mapping[Path, tuple[str, int]], *, force: bool, option: str = "--force") -> None:
    """Write each file with its mode. Raises BadInput if one is there already, unless `force`, and OSError. `option`:
    that of the command which forces it."""
    for path in files:
        if path.is_dir() or (path.exists() and not force):
            allowed = "another name" if path.is_dir() else f"another name, or {option}"
            raise BadInput("exists already", file=str(path), allowed=allowed)
        above = next(parent for parent in path.parents if parent.exists())
        if not above.is_dir():
            raise BadInput(f"{above} is not a folder", file=str(path), allowed="a name in a folder")
    written: list[Path] = []
    made: list[Path] = []
    try:
        for path, (text, mode) in files.items():
            for folder in [parent for parent in reversed(path.parents) if not parent.exists()]:
                folder.mkdir()
                made.append(folder)
            new = not path.exists()
            with whole(path) as beside:
                beside.write_text(text, encoding="utf-8")
                beside.chmod(mode)
            if new:
                written.append(path)
    except BaseException as error:
        for done in written:
            done.unlink(missing_ok=True)
        for folder in reversed(made):
            folder.rmdir()
        if isinstance(error, FileNotFoundError | PermissionError):
            what = f"cannot be written: {error.strerror}"
            raise BadInput(what, file=str(path), allowed="a folder that can be written") from None
        raise
