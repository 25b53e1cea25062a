# SPDX-License-Identifier: Apache-2.0
"""One build at a time where two would write the same files; a lock goes with the process that holds it."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from recipe.progress import say

_SCRATCH = ".build-"


@contextlib.contextmanager
def locked(path: Path, waiting_for: str) -> Iterator[None]:
    """Holds the lock file `path`, which stays; says what is waited for while another process holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for {waiting_for}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def scratch_in(folder: Path) -> Iterator[Path]:
    """A folder that is removed afterwards, or by the next build where this one is killed."""
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / ".scratch.lock", "another build to begin"):
        for left in folder.glob(f"{_SCRATCH}*"):
            if (handle := _own(left)) is not None:
                shutil.rmtree(left, ignore_errors=True)
                os.close(handle)
        made = Path(tempfile.mkdtemp(prefix=_SCRATCH, dir=folder))
        handle = _own(made)
        assert handle is not None, "just made"
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
        os.close(handle)


def _own(folder: Path) -> int | None:
    """A handle that holds the lock of a folder; None where a living process holds it, or the folder is gone."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle
