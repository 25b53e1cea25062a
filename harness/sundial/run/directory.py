# SPDX-License-Identifier: Apache-2.0
"""The run directory while it is being written: `captures/.RUN.partial` with one owner, renamed at the end of the run.

Its run.json says `interrupted` from the start, which stays true if the harness dies.
The owner holds a lock on it; if the owner is gone, the next command gives it its name.
A small reserve file is removed when a failure has to be written to a full disk.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sundial.errors import BadInput, RunFailed
from sundial.machines import reaper
from sundial.whole import whole

RECORDS = ("run.json", "reproduce.json", "matrix.json")
"""Files that identify a directory as a run or as a folder of runs."""
RESERVE = ".reserve"
RESERVE_BYTES = 256 * 1024
NUMBERS = 100_000
YOUNG_S = 60.0
"""Seconds in which the owner of a new directory may not have locked it yet."""
_HIDDEN = re.compile(r"\.(.+)\.partial")


class RunFolder:
    """A run directory that is being written: `path` now, `final` afterwards."""

    def __init__(self, path: Path, final: Path, nodes: list[str]) -> None:
        self.path = path
        self.final = final
        self._lock = own(path)
        try:
            (path / "wire").mkdir()
            for node in nodes:
                (path / "nodes" / node).mkdir(parents=True)
            (path / RESERVE).write_bytes(os.urandom(RESERVE_BYTES))
        except OSError:
            self.discard()
            raise

    @property
    def wire(self) -> Path:
        return self.path / "wire"

    def node(self, name: str) -> Path:
        return self.path / "nodes" / name

    def write_json(self, name: str, document: dict[str, Any]) -> None:
        """Write a file whole or not at all."""
        with whole(self.path / name) as beside:
            beside.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")

    def give_up_reserve(self) -> None:
        """Remove the reserve, to make room for the result."""
        (self.path / RESERVE).unlink(missing_ok=True)

    def discard(self) -> None:
        """Remove the directory and its contents."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)

    def finish(self) -> Path:
        """Give it its final name, or the next free one if another run has taken that. Returns the name."""
        self.give_up_reserve()
        name = reaper.rename_free(self.path, self.final)
        os.close(self._lock)
        if name is None:
            raise RunFailed(f"{self.path} cannot be renamed to {self.final.name}")
        return name


def run_names(stem: str) -> Iterator[str]:
    """`STEM-001`, `STEM-002`, ..."""
    return (f"{stem}-{number:03d}" for number in itertools.islice(itertools.count(1), NUMBERS))


def claim_in(captures: Path, stem: str, nodes: list[str]) -> RunFolder:
    """A new folder with the first free number in `captures`; parallel runs get different numbers."""
    captures.mkdir(parents=True, exist_ok=True)
    take_up_abandoned(captures)
    for name in run_names(stem):
        final = captures / name
        if final.exists():
            continue
        made = _claim(final)
        if made is not None:
            # Between the look and the claim the other owner may have finished.
            if final.exists():
                made.rmdir()
                continue
            return RunFolder(made, final, nodes)
    raise RunFailed(f"no free run number for {stem} in {captures}")


def claim_exactly(final: Path, nodes: list[str]) -> RunFolder:
    """The run directory that the user named. Raises BadInput if it exists already or cannot be created."""
    if final.parent.is_dir():
        take_up_abandoned(final.parent, final.name)
    if final.exists():
        raise BadInput(f"{final} exists already", field="--out", allowed="the name of a new directory")
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        made = _claim(final)
    except OSError as error:
        raise BadInput(f"{final} cannot be created: {error.strerror}", field="--out") from error
    if made is None:
        raise BadInput(f"another run is writing {final}", field="--out", allowed="the name of a new directory")
    return RunFolder(made, final, nodes)


def own(path: Path) -> int:
    """A lock on a directory until the process ends or the returned file is closed."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(handle, fcntl.LOCK_EX)
    return handle


def in_the_making(captures: Path) -> list[Path]:
    """Directories of runs in progress."""
    return [path for path in _hidden(captures) if _owned(path)]


def take_up_abandoned(captures: Path, only: str | None = None) -> list[Path]:
    """Name directories whose owners and guards died (all, or `only` that one). Returns their new names.

    Directories without a record are removed.
    """
    taken = []
    for path in _hidden(captures):
        final = path.with_name(_final_name(path))
        if (only is not None and final.name != only) or _owned(path):
            continue
        if any((path / record).is_file() for record in RECORDS):
            (path / RESERVE).unlink(missing_ok=True)
            name = reaper.rename_free(path, final)
            taken += [] if name is None else [name]
        elif time.time() - path.stat().st_mtime > YOUNG_S:
            shutil.rmtree(path, ignore_errors=True)
    return taken


def _hidden(captures: Path) -> list[Path]:
    return sorted(path for path in captures.glob(".*.partial") if _HIDDEN.fullmatch(path.name) and path.is_dir())


def _final_name(path: Path) -> str:
    found = _HIDDEN.fullmatch(path.name)
    assert found is not None
    return found[1]


def _owned(path: Path) -> bool:
    """True if a living process owns it, or if that cannot be found out."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def _claim(final: Path) -> Path | None:
    partial = final.with_name(f".{final.name}.partial")
    try:
        partial.mkdir()
    except FileExistsError:
        return None
    return partial


@contextmanager
def disk_full_is_a_failure() -> Iterator[None]:
    """ENOSPC of our own writes as the user's error."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise RunFailed("the disk is full: no space left for captures and samples") from error
        raise
