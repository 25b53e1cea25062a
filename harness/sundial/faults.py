# SPDX-License-Identifier: Apache-2.0
"""Unexpected errors as the user sees them: a refusal by the host, or an internal error of Sundial with its log."""

from __future__ import annotations

import os
import tempfile
import time
import traceback
from pathlib import Path

from sundial.errors import InternalError, SundialError, from_host

LOG = "error.log"
"""In a run directory."""
KEPT = 20
"""Most logs in the folder of logs; the oldest are removed."""


def known(error: Exception, folder: Path, name: str | None = None) -> SundialError:
    """The error that the user sees; the traceback of an internal error goes to `folder`/`name`."""
    if isinstance(error, SundialError):
        return error
    refused = from_host(error) if isinstance(error, OSError | MemoryError) else None
    if refused is not None:
        return refused
    said = " ".join(str(error).split())[:300]
    return InternalError(f"internal error: {type(error).__name__}: {said}", log=write_log(error, folder, name))


def write_log(error: BaseException, folder: Path, name: str | None = None) -> str | None:
    """Write the traceback into `folder`, or else into the folder of temporary files; its path, or None if both fail.

    Without a `name` it is named after the time, and the oldest of `folder` are removed.
    """
    text = "".join(traceback.format_exception(error))
    stamped = time.strftime(f"%Y%m%dT%H%M%S-{os.getpid()}.log")
    for place, called in ((folder, name or stamped), (Path(tempfile.gettempdir()), f"sundial-{stamped}")):
        try:
            place.mkdir(parents=True, exist_ok=True)
            # Never through another user's link in a folder that all may write.
            handle = os.open(place / called, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except OSError:
            continue
        if name is None and place == folder:
            for old in sorted(folder.glob("*.log"))[:-KEPT]:
                old.unlink(missing_ok=True)
        return str(place / called)
    return None
