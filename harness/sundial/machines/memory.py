# SPDX-License-Identifier: Apache-2.0
"""Files that hold a guest's main memory: all of it there while a guest boots, then only the pages that are not zero."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

PAGE = 4096
_PIECE = 256 * PAGE
_ZERO = bytes(_PIECE)


def allocate(path: Path, size: int) -> None:
    """Make a file of `size` bytes whose space is there: a guest that writes to it must not find the disk full.

    Raises OSError.
    """
    with path.open("xb") as file:
        os.posix_fallocate(file.fileno(), 0, size)


def copy_without_zeros(source: Path, target: Path) -> None:
    """Copy memory into a new file, synced, that has holes where pages are zero. Raises OSError."""
    with source.open("rb") as old, target.open("xb") as new:
        size = os.fstat(old.fileno()).st_size
        os.truncate(new.fileno(), size)
        for offset, piece in _pieces(old.fileno(), size):
            for at in range(0, len(piece), PAGE):
                page = piece[at : at + PAGE]
                if page != _ZERO[: len(page)]:
                    os.pwrite(new.fileno(), page, offset + at)
        os.fsync(new.fileno())


def memory_sha256(path: Path) -> str:
    """Hex digest of memory: of each piece that is not zero, with its place, so that holes need no reading."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        digest.update(size.to_bytes(8, "little"))
        for offset, piece in _pieces(file.fileno(), size):
            digest.update(offset.to_bytes(8, "little"))
            digest.update(piece)
    return digest.hexdigest()


def _pieces(file: int, size: int) -> Iterator[tuple[int, bytes]]:
    """The pieces of a file that are not all zero, each with its offset; they begin at multiples of their length."""
    at = 0
    while at < size:
        try:
            at = os.lseek(file, at, os.SEEK_DATA)
        except OSError:  # ENXIO: nothing but a hole up to the end
            return
        at -= at % _PIECE
        piece = os.pread(file, min(_PIECE, size - at), at)
        if not piece:
            return
        if piece != _ZERO[: len(piece)]:
            yield at, piece
        at += _PIECE
