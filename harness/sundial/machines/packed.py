# SPDX-License-Identifier: Apache-2.0
"""A tree as a file that a kernel unpacks or mounts: a cpio archive, or an image of EROFS.

Equal trees give equal bytes: entries are sorted, times are 0, and nothing of the host is in them. Formats: the kernel's
driver-api/early-userspace/buffer-format.rst, and fs/erofs/erofs_fs.h of Linux 5.4, whose parts are used here alone: no
compression, no extended attributes, each file in whole blocks of its own, so that a page of memory is a page of a file.
"""

from __future__ import annotations

import hashlib
import posixpath
import stat
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from sundial.machines.tree import Entry, folder

BLOCK = 4096
DEVICE_BYTES = 2 << 20
"""A file that is mapped as memory has a multiple of this size."""

_SUPER = struct.Struct("<IIIBBHQQIIII16s16sI44x")
_MAGIC = 0xE0F5E1E2
_SUPER_AT = 1024
_META = 1
"""The block at which the inodes begin."""
_INODE = struct.Struct("<HHHHQIIIIQII16x")
"""An extended one: format, attributes, mode, -, size, block or device, number, owner, group, time, ns, links."""
_PLAIN = 1
"""The format of an extended inode whose blocks follow one another."""
_UUID = b"sundial's roots."
_DIRENT = struct.Struct("<QHBx")
_SLOT = 32
_FIRST = _INODE.size // _SLOT
"""The root's place among the inodes, counted in slots: readers of a folder skip what has number 0."""
_KINDS = {stat.S_IFREG: 1, stat.S_IFDIR: 2, stat.S_IFCHR: 3, stat.S_IFBLK: 4, stat.S_IFLNK: 7}
_NO_BLOCK = 0xFFFFFFFF


class _Written:
    """A file that is written, with its digest."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self.digest = hashlib.sha256()
        self.at = 0

    def add(self, data: bytes) -> None:
        self._out.write(data)
        self.digest.update(data)
        self.at += len(data)

    def add_content(self, entry: Entry) -> None:
        if isinstance(entry.content, bytes):
            self.add(entry.content)
        else:
            for piece in entry.content.pieces():
                self.add(piece)

    def pad(self, to: int) -> None:
        self.add(bytes(-self.at % to))


def write_cpio(tree: Mapping[str, Entry], out: Path) -> str:
    """The archive ("newc") of a tree; its sha256. Raises BadTree."""
    with out.open("wb") as opened:
        return write_cpio_to(opened, tree)


def write_cpio_to(out: BinaryIO, tree: Mapping[str, Entry]) -> str:
    """The same into an open file."""
    numbers: dict[int, int] = {}
    counts = _links(tree)
    file = _Written(out)
    for path, entry in sorted(tree.items(), key=_order):
        again = id(entry) in numbers
        number = numbers.setdefault(id(entry), len(numbers) + 1)
        links = 2 if entry.is_folder else counts[id(entry)]
        file.add(_newc(path, number, entry, links, 0 if again else entry.size))
        if not again:
            file.add_content(entry)
        file.pad(4)
    file.add(_newc("TRAILER!!!", 0, Entry(0), 1, 0))
    file.pad(512)
    return file.digest.hexdigest()


def _newc(path: str, number: int, entry: Entry, links: int, size: int) -> bytes:
    name = path.encode(errors="surrogateescape") + b"\0"
    fields = [number, entry.mode, entry.uid, entry.gid, links, 0, size, 0, 0, *entry.device, len(name), 0]
    header = b"070701" + b"".join(b"%08X" % field for field in fields) + name
    return header + bytes(-len(header) % 4)


def write_erofs(tree: Mapping[str, Entry], out: Path) -> str:
    """The file system image of a tree, padded to whole DEVICE_BYTES; its sha256. Raises BadTree."""
    tree = {"": folder(), **tree}
    inodes = {id(entry): entry for _, entry in sorted(tree.items(), key=_order)}
    numbers = {key: place * _INODE.size // _SLOT for place, key in enumerate(inodes, 1)}
    children = _children(tree)
    folders = {id(tree[path]): _directory(path, tree, names, numbers) for path, names in children.items()}
    links = _links(tree)
    for path, names in children.items():
        links[id(tree[path])] = 2 + sum(tree[f"{path}/{name}".lstrip("/")].is_folder for name in names)
    sizes = {key: len(folders[key]) if key in folders else entry.size for key, entry in inodes.items()}
    begins, block = {}, _META + _blocks((len(inodes) + 1) * _INODE.size)
    for key, size in sizes.items():
        begins[key] = block if size else _NO_BLOCK
        block += _blocks(size)
    with out.open("wb") as opened:
        file = _Written(opened)
        file.add(bytes(_SUPER_AT))
        file.add(_SUPER.pack(_MAGIC, 0, 0, 12, 0, _FIRST, len(inodes), 0, 0, block, _META, 0, _UUID, bytes(16), 0))
        file.pad(BLOCK)
        file.add(bytes(_INODE.size))
        for number, (key, entry) in enumerate(inodes.items(), 1):
            at = entry.device[0] << 8 | entry.device[1] if stat.S_ISCHR(entry.mode) else begins[key]
            owner = (entry.uid, entry.gid)
            file.add(_INODE.pack(_PLAIN, 0, entry.mode, 0, sizes[key], at, number, *owner, 0, 0, links[key]))
        file.pad(BLOCK)
        for key, entry in inodes.items():
            if key in folders:
                file.add(folders[key])
            else:
                file.add_content(entry)
            file.pad(BLOCK)
        file.pad(DEVICE_BYTES)
        return file.digest.hexdigest()


def _order(item: tuple[str, Entry]) -> bytes:
    return item[0].encode(errors="surrogateescape")


def _blocks(size: int) -> int:
    return -(-size // BLOCK)


def _links(tree: Mapping[str, Entry]) -> dict[int, int]:
    """Paths of each entry, by its identity."""
    counts: dict[int, int] = {}
    for entry in tree.values():
        counts[id(entry)] = counts.get(id(entry), 0) + 1
    return counts


def _children(tree: Mapping[str, Entry]) -> dict[str, list[str]]:
    """Names in each folder, by the folder's path."""
    found: dict[str, list[str]] = {path: [] for path, entry in tree.items() if entry.is_folder}
    for path in tree:
        if path:
            parent, name = posixpath.split(path)
            found[parent].append(name)
    return found


def _directory(path: str, tree: Mapping[str, Entry], names: list[str], numbers: Mapping[int, int]) -> bytes:
    """The content of a folder: blocks of entries, each block with its names behind them."""
    entries = {b".": path, b"..": posixpath.dirname(path)}
    entries |= {name.encode(errors="surrogateescape"): f"{path}/{name}".lstrip("/") for name in names}
    blocks: list[list[bytes]] = [[]]
    room = BLOCK
    for name in sorted(entries):
        if len(name) + _DIRENT.size > room:
            blocks.append([])
            room = BLOCK
        blocks[-1].append(name)
        room -= len(name) + _DIRENT.size
    written = b""
    for number, block in enumerate(blocks):
        at, heads = len(block) * _DIRENT.size, b""
        for name in block:
            entry = tree[entries[name]]
            heads += _DIRENT.pack(numbers[id(entry)], at, _KINDS[stat.S_IFMT(entry.mode)])
            at += len(name)
        data = heads + b"".join(block)
        # A name ends at the first zero, or where the data end.
        written += data if number == len(blocks) - 1 else data + bytes(BLOCK - len(data))
    return written
