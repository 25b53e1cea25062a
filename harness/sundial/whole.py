# SPDX-License-Identifier: Apache-2.0
"""Files that are written whole or not at all: a full disk leaves what was there before."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """The path of a file beside `path`, which takes its place when the block has written it. Raises OSError."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(3)}")
    try:
        yield beside
        beside.replace(path)
    except Exception as error:
        # Of polars, whose errors are not the operating system's.
        if not isinstance(error, OSError) and f"(os error {errno.ENOSPC})" in str(error):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error
        raise
    finally:
        beside.unlink(missing_ok=True)
