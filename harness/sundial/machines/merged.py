# SPDX-License-Identifier: Apache-2.0
"""Programs of others and an image in one root: their files in their usual paths, and the image's runner as it is.

The shape is the other's: where its /bin is a link or its /usr/bin a folder, the image's files go along. Each file is
the other's, except those that the image needs to boot and to serve (`KEPT`).
"""

from __future__ import annotations

import posixpath
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from sundial.machines.loading import LIBRARIES
from sundial.machines.tree import BadTree, Entry, Slice, Tree, file, folder, link, place, with_folders

KEPT = frozenset(
    {
        *("init", "bin/busybox", "bin/modprobe", "bin/insmod", "bin/runner", "lib/extras.cpio.lz4"),
        *("etc/hosts", "etc/netconfig", "etc/nsswitch.conf", "etc/mtab"),
    }
)
"""Files that are always the image's."""
KEPT_FOLDERS = ("dev/", "usr/lib/sundial/", "lib/modules/", "lib/swap/")
JOINED = frozenset({"etc/passwd", "etc/group"})
"""Files with a line for each name."""
MOUNTED = ("dev", "proc", "sys")
"""Folders on which file systems are mounted."""
PROGRAM_FOLDERS = ("sbin", "usr/bin", "usr/sbin", "usr/local/bin", "usr/local/sbin")
"""Of programs, beside bin."""
_MAGIC = b"070701"
_HEADER = 110


def read_initrd(path: Path) -> Tree:
    """The tree of an image's initrd: cpio archives one after another, not compressed. Raises BadTree."""
    data = path.read_bytes()
    tree: Tree = {}
    at = 0
    while at < len(data):
        if data[at] == 0:
            at += 1
            continue
        if not data.startswith(_MAGIC, at):
            raise BadTree(f"{path} has something that is not a cpio archive")
        at = _read_archive(data, at, path, tree)
    return tree


def _read_archive(data: bytes, at: int, path: Path, tree: Tree) -> int:
    while True:
        header = data[at : at + _HEADER]
        if len(header) < _HEADER:
            raise BadTree(f"{path} is cut off")
        fields = [int(header[6 + 8 * number : 14 + 8 * number], 16) for number in range(13)]
        _, mode, uid, gid, _, _, size, _, _, major, minor, name_size, _ = fields
        name = data[at + _HEADER : at + _HEADER + name_size - 1].decode(errors="surrogateescape").strip("/")
        begin = at + _HEADER + name_size + -(_HEADER + name_size) % 4
        at = begin + size + -size % 4
        if name == "TRAILER!!!":
            return at
        content = Slice(path, begin, size) if stat.S_ISREG(mode) else data[begin : begin + size]
        if name not in tree or not (tree[name].is_folder and stat.S_ISDIR(mode)):
            tree[name] = Entry(mode, uid, gid, content, (major, minor))


def merge(image: Mapping[str, Entry], other: Mapping[str, Entry]) -> Tree:
    """The root of both. Raises BadTree if they do not fit."""
    tree: Tree = {path: entry for path, entry in other.items() if path.split("/")[0] not in MOUNTED or "/" not in path}
    for path in MOUNTED:
        tree[path] = folder()
    with_folders(tree)
    libraries = {posixpath.basename(path) for path in _libraries(tree)}
    for path, entry in sorted(image.items()):
        # One of the image's beside one of the other's would be loaded into programs of both.
        if not (_is_library(path) and posixpath.basename(path) in libraries):
            _add(tree, path, entry)
    _join(tree, image, other)
    with_folders(tree)
    if "tmp" not in other:
        tree["tmp"] = folder(0o1777)
    for path, target in [*_beside(tree), *_linked_libraries(tree)]:
        tree[path] = link(target)
    init = tree.get("init")
    if init is not None and init.is_file:
        tree["init"] = _own_shell(init)
    return tree


def _add(tree: Tree, path: str, entry: Entry) -> None:
    """Add an entry of the image."""
    there = place(tree, path)
    if entry.is_folder:
        there = place(tree, path, follow=True)
        if there and (there not in tree or not tree[there].is_folder):
            tree[there] = entry
        return
    if entry.is_link:
        target = "/" + posixpath.normpath(posixpath.join("/", posixpath.dirname(path), entry.target)).lstrip("/")
        if place(tree, target, follow=True) == there or (there in tree and path not in KEPT):
            return
        if there != path:
            entry = link(target)
    kept = path in KEPT or path.startswith(KEPT_FOLDERS)
    if kept or there not in tree:
        tree[there] = entry


def _join(tree: Tree, image: Mapping[str, Entry], other: Mapping[str, Entry]) -> None:
    """Lines of both, by name: the image's first, since its programs have their numbers."""
    for path in JOINED & image.keys() & other.keys():
        lines: dict[bytes, bytes] = {}
        for side in (image, other):
            entry = side[place(side, path, follow=True)]
            for line in entry.read().splitlines():
                if line.strip():
                    lines.setdefault(line.split(b":")[0], line)
        tree[place(tree, path, follow=True)] = file(b"".join(line + b"\n" for line in lines.values()))


def _beside(tree: Mapping[str, Entry]) -> Iterator[tuple[str, str]]:
    """Links that let each program be found in /bin, where the commands of a machine that is up are installed later and
    would hide it, and the kernel's own helper in /sbin."""
    bin_folder = place(tree, "bin", follow=True)
    names = {path.removeprefix(f"{bin_folder}/") for path in tree if posixpath.dirname(path) == bin_folder}
    for where in PROGRAM_FOLDERS:
        at = place(tree, where, follow=True)
        if at == bin_folder:
            continue
        for path in sorted(path for path in tree if posixpath.dirname(path) == at):
            name = posixpath.basename(path)
            if name not in names and not tree[path].is_folder:
                names.add(name)
                yield f"{bin_folder}/{name}", f"/{path}"
    sbin = place(tree, "sbin", follow=True)
    if sbin != bin_folder:
        for name in ("modprobe", "insmod"):
            yield f"{sbin}/{name}", "/bin/busybox"


def _is_library(path: str) -> bool:
    name = posixpath.basename(path)
    # Programs name their loader with its path.
    return ".so" in name and not name.startswith("ld-") and posixpath.dirname(path) in LIBRARIES


def _libraries(tree: Mapping[str, Entry]) -> Iterator[str]:
    """Files in folders of libraries."""
    folders = {place(tree, folder, follow=True) for folder in LIBRARIES}
    for path, entry in tree.items():
        if ".so" in posixpath.basename(path) and posixpath.dirname(path) in folders and not entry.is_folder:
            yield path


def _linked_libraries(tree: Mapping[str, Entry]) -> Iterator[tuple[str, str]]:
    """Links in the first folder that is searched. Else a library that the image unpacks there later would hide them."""
    first = place(tree, LIBRARIES[0], follow=True)
    there = {posixpath.basename(path) for path in tree if posixpath.dirname(path) == first}
    if first not in tree:
        return
    for path in sorted(_libraries(tree)):
        name = posixpath.basename(path)
        if name not in there:
            there.add(name)
            yield f"{first}/{name}", f"/{path}"


def _own_shell(init: Entry) -> Entry:
    """The image's init, run by the image's own shell: its commands are then busybox's."""
    text = init.read()
    first, _, rest = text.partition(b"\n")
    if first != b"#!/bin/sh":
        raise BadTree("the init of this image is not a script of /bin/sh")
    return Entry(init.mode, init.uid, init.gid, b"#!/bin/busybox sh\n" + rest)
