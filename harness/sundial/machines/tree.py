# SPDX-License-Identifier: Apache-2.0
"""A file system as a dictionary: what a root is put together from before anything of it is written.

Nothing is unpacked on the host. So a path, a link or an owner in an archive has a meaning only within the tree, and the
content of a large file stays where it is until it is written.
"""

from __future__ import annotations

import os
import posixpath
import stat
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

LINKS_MOST = 40
"""On the way to one path, as in Linux."""
PATH_MOST, NAME_MOST = 4096, 255
"""Bytes of a path and of a name, as in Linux."""
FILE_MOST = (1 << 32) - 1
"""Most bytes of one file: the length in a cpio archive and in an inode of EROFS has 32 bits."""
ARCHIVE_END = "TRAILER!!!"
_PIECE = 1 << 20
WHITEOUT, OPAQUE = ".wh.", ".wh..wh..opq"


class BadTree(Exception):
    """A tree cannot be read or made; the message is one line."""


@dataclass(frozen=True)
class Slice:
    """Bytes within a file of the host."""

    path: Path
    offset: int
    size: int

    def pieces(self) -> Iterator[bytes]:
        """The bytes, in pieces. Raises BadTree if the file cannot be read or has become shorter."""
        left = self.size
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                while left:
                    piece = file.read(min(left, _PIECE))
                    if not piece:
                        raise BadTree(f"{self.path} was changed while it was read")
                    left -= len(piece)
                    yield piece
        except OSError as error:
            raise BadTree(f"{self.path} cannot be read: {error.strerror}") from error


@dataclass(frozen=True, eq=False)
class Entry:
    """A file, folder, link or device. Two paths with the same object are hard links."""

    mode: int
    uid: int = 0
    gid: int = 0
    content: bytes | Slice = b""
    """Of a file its content, of a link its target."""
    device: tuple[int, int] = (0, 0)

    @property
    def size(self) -> int:
        return len(self.content) if isinstance(self.content, bytes) else self.content.size

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)

    @property
    def target(self) -> str:
        """Of a link."""
        assert isinstance(self.content, bytes), "targets are in memory"
        return self.content.decode(errors="surrogateescape")

    def read(self) -> bytes:
        """The whole content."""
        return self.content if isinstance(self.content, bytes) else b"".join(self.content.pieces())

    def head(self, size: int) -> bytes:
        """The first bytes of the content."""
        if isinstance(self.content, bytes):
            return self.content[:size]
        part = Slice(self.content.path, self.content.offset, min(size, self.content.size))
        return b"".join(part.pieces())


Tree = dict[str, Entry]
"""Entries by path without a leading slash."""


def folder(mode: int = 0o755) -> Entry:
    return Entry(stat.S_IFDIR | mode)


def link(target: str) -> Entry:
    return Entry(stat.S_IFLNK | 0o777, content=target.encode(errors="surrogateescape"))


def file(content: bytes | Slice, mode: int = 0o644) -> Entry:
    return Entry(stat.S_IFREG | mode, content=content)


def place(tree: Mapping[str, Entry], path: str, *, follow: bool = False) -> str:
    """`path` with the links on its way followed; with `follow` a link at its end too. Raises BadTree."""

    def target(here: str) -> str | None:
        entry = tree.get(here)
        return entry.target if entry is not None and entry.is_link else None

    return follow_links(path, target, follow=follow)


def follow_links(path: str, target: Callable[[str], str | None], *, follow: bool) -> str:
    """As `place`; `target` is where a link leads, None if a path without a leading slash is not a link."""
    done, left, links = "", path.split("/"), 0
    while left:
        part = left.pop(0)
        if part in ("", ".", ".."):
            done = posixpath.dirname(done) if part == ".." else done
            continue
        here = f"{done}/{part}".lstrip("/")
        to = target(here) if follow or any(left) else None
        if to is not None:
            done = "" if to.startswith("/") else done
            left, links = [*to.split("/"), *left], links + 1
            if links > LINKS_MOST:
                raise BadTree(f"/{here} is a link that leads to itself")
        else:
            done = here
    return done


def above(path: str) -> Iterator[str]:
    """The folders above a path, the nearest first, without the root."""
    while path := posixpath.dirname(path):
        yield path


def remove(tree: Tree, path: str, *, below_only: bool = False) -> None:
    """Take out a path with all that is below it."""
    gone = [other for other in tree if other.startswith(f"{path}/")] if path else list(tree)
    for other in gone:
        del tree[other]
    if not below_only:
        tree.pop(path, None)


def with_folders(tree: Tree) -> None:
    """Add the folders that are missing above entries; a file that is above others makes room."""
    for path in list(tree):
        for parent in above(path):
            there = tree.get(parent)
            if there is None or not there.is_folder:
                tree[parent] = folder()


def size_of(tree: Mapping[str, Entry]) -> int:
    """Bytes of all files, hard links once."""
    return sum(entry.size for entry in {id(entry): entry for entry in tree.values()}.values())


def read_folder(root: Path) -> Tree:
    """A folder of the host, with owner root. Raises BadTree."""
    tree: Tree = {}
    linked: dict[tuple[int, int], Entry] = {}
    try:
        for where, status in walk(root):
            path = where.relative_to(root).as_posix()
            _check_path(path, str(root))
            kind, mode = stat.S_IFMT(status.st_mode), status.st_mode & 0o7777
            if kind == stat.S_IFLNK:
                tree[path] = link(str(where.readlink()))
            elif kind == stat.S_IFDIR:
                tree[path] = folder(mode)
            elif kind == stat.S_IFREG:
                if status.st_size > FILE_MOST:
                    raise BadTree(f"{where} has {status.st_size} bytes, and a file may have {FILE_MOST}")
                made = file(Slice(where, 0, status.st_size), mode)
                one = (status.st_dev, status.st_ino)
                tree[path] = linked.setdefault(one, made) if status.st_nlink > 1 else made
            else:
                raise BadTree(f"{where} is a {_kind(kind)}, which a root cannot have")
    except OSError as error:
        raise BadTree(f"{error.filename or root} cannot be read: {error.strerror}") from error
    return tree


def walk(root: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Everything below a folder, sorted, with its status; links are not followed. Raises OSError."""
    with os.scandir(root) as found:
        entries = sorted(found, key=lambda entry: os.fsencode(entry.name))
    for entry in entries:
        status = entry.stat(follow_symlinks=False)
        yield Path(entry.path), status
        if stat.S_ISDIR(status.st_mode):
            yield from walk(Path(entry.path))


def add_layer(tree: Tree, layer: Path, name: str) -> None:
    """Lay a tar archive, not compressed, over the tree, with its whiteouts. Raises BadTree; `name` is for messages."""
    try:
        with tarfile.open(layer, "r:") as tar:
            members = list(tar)
    except (tarfile.TarError, ValueError, EOFError, zlib.error) as error:
        raise BadTree(f"{name} is damaged: {error}") from error
    if members:
        last = members[-1]
        if last.isreg() and last.offset_data + last.size > layer.stat().st_size:
            raise BadTree(f"{name} is cut off in {last.name!r}")
    paths = [_inside(member.name, name) for member in members]
    _white_out(tree, paths)
    for path, member in zip(paths, members, strict=True):
        if not any(part.startswith(WHITEOUT) for part in path.split("/")):
            _add_member(tree, path, member, layer, name)
    with_folders(tree)


def _white_out(tree: Tree, paths: Iterable[str]) -> None:
    """Take out what a layer hides of those below it."""
    for path in paths:
        parent, base = posixpath.split(path)
        if not base.startswith(WHITEOUT):
            continue
        where = place(tree, parent, follow=True)
        if base == OPAQUE:
            remove(tree, where, below_only=True)
        elif not base.startswith(".wh..wh."):
            remove(tree, f"{where}/{base.removeprefix(WHITEOUT)}".lstrip("/"))


def _add_member(tree: Tree, path: str, member: tarfile.TarInfo, layer: Path, name: str) -> None:
    if not path:
        return
    path = place(tree, path)
    mode, owner = member.mode & 0o7777, (member.uid, member.gid)
    if not all(0 <= each < 1 << 32 for each in owner):
        raise BadTree(f"{name}: /{path} has an owner that is not a number of Linux")
    there = tree.get(path)
    if member.isdir():
        if there is not None and not there.is_folder:
            remove(tree, path)
        tree[path] = Entry(stat.S_IFDIR | mode, *owner)
        return
    if member.issym():
        made = Entry(stat.S_IFLNK | 0o777, *owner, member.linkname.encode(errors="surrogateescape"))
        if not member.linkname or len(made.content if isinstance(made.content, bytes) else b"") >= PATH_MOST:
            raise BadTree(f"{name}: link /{path} has an invalid target")
    elif member.islnk():
        other = place(tree, _inside(member.linkname, name))
        if other not in tree or tree[other].is_folder:
            raise BadTree(f"{name}: hard link /{path} leads to /{other}, which is not a file before it")
        made = tree[other]
    elif member.isreg() and member.sparse is None:
        if member.size > FILE_MOST:
            raise BadTree(f"{name}: /{path} has {member.size} bytes, and a file may have {FILE_MOST}")
        made = Entry(stat.S_IFREG | mode, *owner, Slice(layer, member.offset_data, member.size))
    else:
        raise BadTree(f"{name}: /{path} is a {_tar_kind(member)}, which a root cannot have")
    if there is not None and there.is_folder:
        remove(tree, path)
    tree[path] = made


def _inside(path: str, name: str) -> str:
    """A path of an archive without a leading slash. Raises BadTree if it leads out of the root."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise BadTree(f"{name}: path {path!r} leads out of the root")
    clean = "/".join(parts)
    _check_path(clean, name)
    return clean


def _check_path(path: str, name: str) -> None:
    encoded = path.encode(errors="surrogateescape")
    long = len(encoded) >= PATH_MOST or any(len(part) > NAME_MOST for part in encoded.split(b"/"))
    if long or b"\0" in encoded or path == ARCHIVE_END:
        raise BadTree(f"{name}: path {path[:60]!r} is not valid in a root")


def _kind(kind: int) -> str:
    names = {stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}
    return names.get(kind, "special file")


def _tar_kind(member: tarfile.TarInfo) -> str:
    if member.isdev():
        return "pipe" if member.isfifo() else "device"
    return "sparse file" if member.sparse is not None else "special file"
