# SPDX-License-Identifier: Apache-2.0
"""Which emulators keep virtual time: those that the project's tests run on, and what was found of others on this host.

An emulator goes by the sha256 of its executable. QEMU's modules need no digest: an executable loads only those of its
own build.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sundial.machines.seals import Book, read_summed, sha256_of, write_summed

TESTED = {
    "1493008ba0036014c727bb23bbe2f399135867e9b5c4fe288ef2b4b816f46b0c": "7.2.22 Debian 1:7.2+dfsg-7+deb12u18+b3",
}
"""Versions of the emulators that `make test` runs on, by sha256."""

OTHER_QEMU = "install the QEMU of Debian 12 or 13 (apt-get install qemu-system-x86), or run with --clock real"
"""What helps where an emulator does not keep virtual time."""


@dataclass(frozen=True)
class Certificate:
    """What was found of an emulator."""

    version: str
    """As the emulator says it itself."""
    difference: str | None = None
    """The first thing that differed between trials, in words; None: nothing did."""
    tested: bool = False
    """The project's own tests run on it; there were no trials."""


class Certificates:
    """The certificates of one checkout: for each emulator and build of the clock plugin, one."""

    def __init__(self, place: Path, digests: Book) -> None:
        """`place`: the file that holds them; a lost or damaged one costs certifying again."""
        self._place = place
        self._digests = digests

    def find(self, emulator: Path, plugin: Path) -> Certificate | None:
        """What is known of an emulator; None: nothing yet. Raises OSError."""
        digest = self._digests.value(emulator, sha256_of)
        found = self._entries().get(self._key(digest, plugin))
        if found is not None:
            return Certificate(**found)
        return Certificate(TESTED[digest], tested=True) if digest in TESTED else None

    def write(self, emulator: Path, plugin: Path, certificate: Certificate) -> None:
        """Remember what trials found. Raises OSError where a program cannot be read."""
        key = self._key(self._digests.value(emulator, sha256_of), plugin)
        entries = {**self._entries(), key: asdict(certificate)}
        # In a checkout that cannot be written to, each process certifies again.
        with contextlib.suppress(OSError):
            write_summed(self._place, entries)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until no other process certifies, and keep others from it. Raises OSError."""
        self._place.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self._place.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def _key(self, digest: str, plugin: Path) -> str:
        return f"{digest} {self._digests.value(plugin, sha256_of)}"

    def _entries(self) -> dict[str, dict[str, Any]]:
        try:
            return read_summed(self._place)
        except ValueError:
            return {}
