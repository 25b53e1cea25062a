# SPDX-License-Identifier: Apache-2.0
"""What was once read out of a file, and whether the file can have changed since: large ones are not read again.

A seal is what changes when anybody touches a file, other names and copies included: its size, device, inode, and the
times of its last changes. `ctime` cannot be set back, so contents that were exchanged behind a restored `mtime` are
noticed. A file system counts these times in steps, and a second change within a step leaves them as they are: what was
read so soon after a change does not count.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sundial.whole import whole

SETTLED_NS = 2_000_000_000
"""Longer than the steps of any file system in use (FAT: 2 s)."""
SHA256 = "meta_sha256"
"""The field of a summed document that holds the sha256 of all others."""

Seal = tuple[int, ...]
Read = Callable[[Path], str]


def seal_of(path: Path) -> Seal:
    """Raises OSError."""
    status = path.stat()
    return status.st_size, status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns


@dataclass(frozen=True)
class Known:
    """What was read out of a file with this seal, at this time of the host."""

    value: str
    seal: Seal
    read_ns: int

    def to_json(self) -> dict[str, Any]:
        return {"value": self.value, "seal": list(self.seal), "read_ns": self.read_ns}

    def holds(self, seal: Seal) -> bool:
        """Whether a file that has this seal now must hold the same."""
        return seal == self.seal and self.read_ns - seal[-1] >= SETTLED_NS


def look(path: Path, known: Known | None, read: Read, now_ns: Callable[[], int] = time.time_ns) -> Known:
    """What `read` makes of a file, which is read only where it may have changed.

    Raises OSError, and what `read` raises.
    """
    seal = seal_of(path)
    if known is not None and known.holds(seal):
        return known
    # The time before it is read: of a file that is changed meanwhile nothing will hold.
    began_ns = now_ns()
    return Known(read(path), seal, began_ns)


class Book:
    """What is known of some files, kept in a file of its own. One that is lost or damaged costs reading them again."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def value(self, path: Path, read: Read) -> str:
        """What `read`, always the same for this file, makes of it. Raises OSError, and what `read` raises."""
        name = str(path)
        entries = self._entries()
        before = entries.get(name)
        found = look(path, before, read)
        if found is not before:
            there = {known: entry for known, entry in self._entries().items() if os.access(known, os.F_OK)}
            self._write({**there, name: found})
        return found.value

    def _entries(self) -> dict[str, Known]:
        try:
            written = read_summed(self._place)
        except ValueError:
            return {}
        return {name: Known(each["value"], tuple(each["seal"]), each["read_ns"]) for name, each in written.items()}

    def _write(self, entries: dict[str, Known]) -> None:
        # A checkout that cannot be written to is read again each time.
        with contextlib.suppress(OSError):
            self._place.parent.mkdir(parents=True, exist_ok=True)
            write_summed(self._place, {name: known.to_json() for name, known in entries.items()})


def sha256_of(path: Path) -> str:
    """Hex digest of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_summed(path: Path) -> dict[str, Any]:
    """A document as `write_summed` wrote it. Raises ValueError, which says what it is not."""
    try:
        document = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError("cannot be read") from error
    if not isinstance(document, dict) or document.pop(SHA256, None) != _sum(document):
        raise ValueError("have another sha256")
    return document


def write_summed(path: Path, document: dict[str, Any]) -> None:
    """Write a document whole or not at all, synced, with a sum over it. Raises OSError."""
    with whole(path) as beside, beside.open("w") as file:
        json.dump({**document, SHA256: _sum(document)}, file, indent=1, sort_keys=True)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())


def _sum(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
