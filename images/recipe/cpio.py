# SPDX-License-Identifier: Apache-2.0
"""A reproducible initramfs: the "newc" cpio of the kernel's buffer-format.rst.

Entries are sorted; times, owners and inode numbers carry nothing of the host. The harness lays files into a machine's
root with the same writer (harness/sundial/machines/archives.py), so this needs the standard library alone. As a program,
for guest-apps/sss-core/Makefile:

    python3 cpio.py ARCHIVE PROGRAM...    the programs, by their names
"""

import stat
import sys
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

MAGIC = b"070701"
_TRAILER = "TRAILER!!!"
_HEADER = 110
_FIELD = 8
_MODE, _SIZE, _NAME_SIZE = 1, 6, 11
"""Places of these fields behind the magic number."""


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)


def _entry(name: str, inode: int, mode: int, data: bytes, device: tuple[int, int]) -> bytes:
    links = 2 if stat.S_ISDIR(mode) else 1
    encoded = name.encode() + b"\0"
    fields = [inode, mode, 0, 0, links, 0, len(data), 0, 0, *device, len(encoded), 0]
    header = MAGIC + b"".join(b"%08X" % field for field in fields)
    return _padded(header + encoded) + _padded(data)


@dataclass(frozen=True)
class Entry:
    """What an archive says of one path; `data` is a file's content, or a link's target."""

    path: str
    mode: int
    data: bytes


def read(archive: bytes, start: int = 0) -> tuple[list[Entry], int]:
    """The entries of the archive at `start`, and where it ends. Raises ValueError for what is damaged."""
    entries: list[Entry] = []
    while True:
        header = archive[start : start + _HEADER]
        if len(header) < _HEADER or not header.startswith(MAGIC):
            raise ValueError(f"no entry of cpio at {start}")
        mode, size, name_size = (_field(header, place) for place in (_MODE, _SIZE, _NAME_SIZE))
        data_at = start + _HEADER + name_size + -(_HEADER + name_size) % 4
        name = archive[start + _HEADER : start + _HEADER + name_size]
        if not name.endswith(b"\0") or data_at + size > len(archive):
            raise ValueError(f"the entry of cpio at {start} is cut off")
        start = data_at + size + -size % 4
        path = name[:-1].decode(errors="surrogateescape")
        if path == _TRAILER:
            return entries, start
        entries.append(Entry(path, mode, archive[data_at : data_at + size]))


def _field(header: bytes, place: int) -> int:
    begin = len(MAGIC) + place * _FIELD
    return int(header[begin : begin + _FIELD], 16)


class Archive:
    """Files by path, without a leading slash. Folders above a file come by themselves, but where it is to lie over
    another archive: a folder that this one names would take the place of a link to a folder there.
    """

    def __init__(self, *, over_another: bool = False) -> None:
        self._entries: dict[str, tuple[int, bytes, tuple[int, int]]] = {}
        self._over_another = over_another

    def add_folder(self, path: str, mode: int = 0o755) -> None:
        self._add(path, stat.S_IFDIR | mode, b"")

    def add_file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        self._add(path, stat.S_IFREG | mode, data)

    def add_link(self, path: str, target: str) -> None:
        self._add(path, stat.S_IFLNK | 0o777, target.encode())

    def add_character_device(self, path: str, major: int, minor: int, mode: int) -> None:
        self._add(path, stat.S_IFCHR | mode, b"", (major, minor))

    def _add(self, path: str, mode: int, data: bytes, device: tuple[int, int] = (0, 0)) -> None:
        if path in self._entries:
            raise ValueError(f"{path}: twice in the archive")
        for parent in () if self._over_another else PurePosixPath(path).parents:
            name = str(parent)
            if name != "." and name not in self._entries:
                self._entries[name] = (stat.S_IFDIR | 0o755, b"", (0, 0))
        self._entries[path] = (mode, data, device)

    def paths(self) -> list[str]:
        return sorted(self._entries)

    def to_bytes(self) -> bytes:
        parts = [_entry(path, inode, *self._entries[path]) for inode, path in enumerate(self.paths(), 1)]
        parts.append(_entry(_TRAILER, 0, 0, b"", (0, 0)))
        whole = b"".join(parts)
        return whole + b"\0" * (-len(whole) % 512)


def main(arguments: list[str]) -> int:
    """Writes an archive of programs; 0 or an exception, since it is a step of make."""
    out, *programs = map(Path, arguments)
    archive = Archive()
    for program in programs:
        archive.add_file(program.name, program.read_bytes(), 0o755)
    out.write_bytes(archive.to_bytes())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
