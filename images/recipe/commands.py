# SPDX-License-Identifier: Apache-2.0
"""The names by which programs of a root are started without a path. The harness refuses others before a run."""

import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from recipe import cpio, lz4

PACKED = "lib/*.cpio.lz4"
"""What the runner unpacks."""
BUSYBOX = "bin/busybox"
FOLDERS = {"bin", "sbin", "usr/bin", "usr/sbin", "usr/local/bin", "usr/local/sbin"}
"""PATH in a guest."""


def commands(initrd: bytes, scratch: Path) -> list[str] | None:
    """All names, sorted; None where they cannot be known: the root has no busybox, or one that this host cannot run."""
    try:
        entries = list(_entries(initrd))
    except ValueError:
        return None
    busybox = next((entry for entry in entries if entry.path == BUSYBOX), None)
    applets = None if busybox is None else _applets(busybox.data, scratch)
    if applets is None:
        return None
    links = {entry.path: entry.data.decode() for entry in entries if stat.S_ISLNK(entry.mode)}
    if any(target.startswith("/") for path, target in links.items() if path in FOLDERS):
        return None
    paths = (PurePosixPath(entry.path) for entry in entries if not stat.S_ISDIR(entry.mode))
    return sorted({*applets, *(path.name for path in paths if str(path.parent) in FOLDERS)})


def _entries(initrd: bytes) -> Iterator[cpio.Entry]:
    """Of all archives, one after the other, and of those in them."""
    at = 0
    while at < len(initrd):
        found, at = cpio.read(initrd, at)
        at += len(initrd[at:]) - len(initrd[at:].lstrip(b"\0"))
        for entry in found:
            yield entry
            if PurePosixPath(entry.path).match(PACKED):
                yield from cpio.read(lz4.decompress(entry.data))[0]


def _applets(busybox: bytes, scratch: Path) -> list[str] | None:
    program = scratch / "busybox"
    program.write_bytes(busybox)
    program.chmod(0o755)
    try:
        done = subprocess.run([program, "--list"], capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.split()
