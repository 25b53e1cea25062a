# SPDX-License-Identifier: Apache-2.0
"""The run directory while it is being written: `captures/.RUN.partial`, one owner, renamed when the run is over.

From its first moment its run.json says `interrupted`, which stays true if the harness dies.
Its owner holds a lock on it; without an owner it is taken up by the next command and gets its name.
A small reserve is kept in it, given up when a failure has to be written to a full disk.
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

RECORDS = ("run.json", "reproduce.json")
"""What says what a directory is: a run, or a folder of runs."""
RESERVE = ".reserve"
RESERVE_BYTES = 256 * 1024
NUMBERS = 100_000
YOUNG_S = 60.0
"""A directory so young may have an owner that has not locked it yet."""
_HIDDEN = re.compile(r"\.(.+)\.partial")


class RunFolder:
    """A run directory in the making. `path` is where it is now, `final` the name it gets."""

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
        """Whole or not at all."""
        with whole(self.path / name) as beside:
            beside.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")

    def give_up_reserve(self) -> None:
        """Make room for the last words."""
        (self.path / RESERVE).unlink(missing_ok=True)

    def discard(self) -> None:
        """Remove it, and all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)

    def finish(self) -> Path:
        """Give it its last name, which another run may have taken meanwhile; the name it got."""
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
    """The first free number in `captures`; making the folder is the claim, so runs at once get different ones."""
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
    """The run directory that the user named. Raises BadInput when it is there already or cannot be made."""
    if final.parent.is_dir():
        take_up_abandoned(final.parent, final.name)
    if final.exists():
        raise BadInput(f"{final} exists already", field="--out", allowed="the name of a new directory")
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        made = _claim(final)
    except OSError as error:
        raise BadInput(f"{final} cannot be made: {error.strerror}", field="--out") from error
    if made is None:
        raise BadInput(f"another run is writing {final}", field="--out", allowed="the name of a new directory")
    return RunFolder(made, final, nodes)


def own(path: Path) -> int:
    """Lock a directory for the life of this process, or until what is answered is closed."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(handle, fcntl.LOCK_EX)
    return handle


def in_the_making(captures: Path) -> list[Path]:
    """Directories of runs that are being made at this moment."""
    return [path for path in _hidden(captures) if _owned(path)]


def take_up_abandoned(captures: Path, only: str | None = None) -> list[Path]:
    """Give directories their names whose owners died together with their guards, or `only` that one; their new names.

    What has no record yet is removed.
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
    """Whether a living process has it; one that cannot be looked at counts as such."""
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
    """ENOSPC of our own writes as the error that the user meets."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise RunFailed("the disk is full: no space left for captures and samples") from error
        raise
