# SPDX-License-Identifier: Apache-2.0
"""Console logs: their last lines for an error message, and whether the guest's kernel has given up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from sundial.printable import printable_bytes

TAIL_LINES = 12
PANIC_LINES = 60
_READ_MOST = 1 << 16
_STYLING = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|[\x07\x08\r\x7f]")
"""What a shell and a kernel write for a terminal's sake; left out of what is quoted."""
_PANIC = re.compile(rb"Kernel panic - not syncing[^\r\n]*|^PANIC\b[^\r\n]*", re.MULTILINE)
"""Linux's words, and SSS-CORE's."""
_STOPPED = re.compile(rb"^(?:\[ *\d+\.\d+\] )?reboot: (Power down|Restarting system|System halted)", re.MULTILINE)
"""Linux' words when a program has called reboot(2)."""
_OVERLAP = 64
_PIECE = 1 << 18
_LINE_MOST = 4096
"""Of a panic's line."""
QEMU_LINES = 3
_LIBVIRTS = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+\+0000: ")
_STAMP = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z ")
"""Before what QEMU says, by its option -msg timestamp=on."""


def tail(path: Path, lines: int = TAIL_LINES) -> tuple[str, ...]:
    """The last lines of a console log, without control characters and blank lines; empty where there is no log."""
    return _cleaned(_end(path))[-lines:]


def last_words(path: Path) -> tuple[str, ...]:
    """The last lines of a console log; where a kernel has given up, from there on, its backtrace included."""
    end = _end(path)
    panic = _PANIC.search(end)
    return tail(path) if panic is None else _cleaned(end[panic.start() :])[:PANIC_LINES]


def qemu_words(log: Path) -> str:
    """The last lines that a QEMU wrote to stderr, in one; empty where it wrote none.

    `log` is libvirt's: its own lines, which begin with a date, and the command line, a word a line, are left out.
    """
    lines = _cleaned(_end(log))
    before = ("", *lines)
    said = [
        _STAMP.sub("", line)
        for previous, line in zip(before, lines, strict=False)
        if not line.endswith("\\") and not previous.endswith("\\") and not _LIBVIRTS.match(line)
    ]
    return "; ".join(said[-QEMU_LINES:])


def _end(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _READ_MOST))
            return file.read()
    except OSError:
        return b""


def _cleaned(text: bytes) -> tuple[str, ...]:
    lines = (_shown(line).rstrip() for line in text.split(b"\n"))
    return tuple(line for line in lines if line)


def _shown(line: bytes) -> str:
    return printable_bytes(_STYLING.sub(b"", line).expandtabs())


class GrowingFile:
    """A file that a guest writes while it is read here."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0

    @property
    def seen_bytes(self) -> int:
        """How much of it has been read: a sign of life."""
        return self._read

    def read_new(self) -> Iterator[bytes]:
        """What has come since the last call, in pieces; nothing where it cannot be read (yet)."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._read)
                while piece := file.read(_PIECE):
                    self._read += len(piece)
                    yield piece
        except OSError:
            return


class PanicWatch(GrowingFile):
    """Reads a growing console log and finds the kernel's last words in it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._rest = b""
        self.stopped: str | None = None
        """The kernel's words of a program that powered its machine off, restarted it or halted it."""

    def look(self) -> str | None:
        """Read what is new; the panic's line once there is one."""
        found = None
        for piece in self.read_new():
            text = self._rest + piece
            found = _PANIC.search(text)
            stopped = _STOPPED.search(text)
            self.stopped = self.stopped or (stopped and _shown(stopped[1]))
            self._rest = text[-_OVERLAP:] if found is None else text[found.start() :][:_LINE_MOST]
        if found is None:
            found = _PANIC.search(self._rest)
        if found is None:
            return None
        # The line may still be growing; what is there says enough.
        return _shown(found.group()).strip()
