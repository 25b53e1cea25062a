# SPDX-License-Identifier: Apache-2.0
"""Files and folders as a stream of tar, both ways. A guest may send anything.

A member is written only below its folder, never through a link, and never over a file that was there before. Devices,
pipes, links that lead out, and names that climb are left out and named.
"""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from sundial.printable import printable

BLOCK = 64 * 1024
MODE = 0o777
"""Bits of the mode that are kept: neither set-user-ID nor sticky."""
OWNER = 0o700
"""What the owner of a folder may do until all is in it."""

Count = Callable[[int], None]
"""Is called with each number of bytes of content that went by."""


@dataclass
class Copied:
    """What was copied, and what was not."""

    entries: int = 0
    bytes: int = 0
    left_out: list[tuple[str, str]] = field(default_factory=list)
    """Names, and why."""


def size_of(path: Path) -> int:
    """Bytes of content below a path."""
    return sum(each.lstat().st_size for each in _below(path) if each.is_file() and not each.is_symlink())


def pack(path: Path, name: str, to: BinaryIO, copied: Copied, count: Count) -> None:
    """Write a file or folder as members called `name` and below. A link at `path` itself is followed.

    Raises OSError.
    """
    with tarfile.open(fileobj=to, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        top = path.resolve()
        for each in _below(top):
            inner = PurePosixPath(name, *each.relative_to(top).parts)
            _pack_one(tar, each, str(inner), copied, count)


def _below(path: Path) -> Iterator[Path]:
    yield path
    if path.is_dir() and not path.is_symlink():
        for each in sorted(path.iterdir()):
            yield from _below(each)


def _pack_one(tar: tarfile.TarFile, path: Path, name: str, copied: Copied, count: Count) -> None:
    info = tar.gettarinfo(str(path), arcname=name)
    if info is None or not (info.isreg() or info.isdir() or info.issym() or info.islnk()):
        copied.left_out.append((name, "a socket, pipe or device"))
        return
    info.uid = info.gid = 0
    info.uname = info.gname = "root"
    info.mode &= MODE
    if info.islnk():
        info.type, info.linkname = tarfile.REGTYPE, ""
        info.size = path.lstat().st_size
    try:
        content = path.open("rb") if info.isreg() else None
    except OSError as error:
        copied.left_out.append((name, str(error.strerror)))
        return
    if content is None:
        tar.addfile(info)
    else:
        with content:
            tar.addfile(info, _Counted(content, count))
        copied.bytes += info.size
    copied.entries += 1


class _Counted:
    """A file that says how much was read of it."""

    def __init__(self, file: BinaryIO, count: Count) -> None:
        self._file = file
        self._count = count

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._count(len(data))
        return data


def unpack(stream: BinaryIO, top: str, to: Path, copied: Copied, count: Count) -> None:
    """Write the members `top` and below as `to` and below; `to` must not exist, its folder must.

    Raises OSError, and tarfile.TarError for what is not a whole archive.
    """
    links: dict[PurePosixPath, Path] = {}
    folders: list[tuple[Path, int]] = []
    with tarfile.open(fileobj=stream, mode="r|") as tar:
        for member in tar:
            name = PurePosixPath(member.name)
            why = refusal(member, top, links)
            if why is not None:
                copied.left_out.append((printable(member.name), why))
                continue
            path = to.joinpath(*name.parts[1:])
            if member.issym():
                links[name] = path
            try:
                _write(tar, member, path, folders, copied, count)
            except (FileExistsError, FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
                copied.left_out.append((printable(member.name), str(error.strerror)))
    _check_links(links, to, copied)
    for path, mode in reversed(folders):
        path.chmod(mode)
    while stream.read(BLOCK):  # what fills the last block up
        pass


def _check_links(links: Mapping[PurePosixPath, Path], to: Path, copied: Copied) -> None:
    """Remove links that lead out by way of other links."""
    inside = os.path.realpath(to)
    for name, path in links.items():
        real = os.path.realpath(path)
        if path.is_symlink() and real != inside and not real.startswith(inside + os.sep):
            path.unlink()
            copied.entries -= 1
            copied.left_out.append((printable(str(name)), "a link that leads out of the folder"))


def refusal(member: tarfile.TarInfo, top: str, links: Container[PurePosixPath]) -> str | None:
    """Why a member is left out; None if it may be written. `links`: the links before it. Pure."""
    name = PurePosixPath(member.name)
    if name.is_absolute() or ".." in name.parts or "\0" in member.name:
        return "its name leads out of the folder"
    if not name.parts or name.parts[0] != top:
        return "it is not below what was asked for"
    if any(parent in links for parent in name.parents):
        return "it is behind a link"
    if member.issym():
        target = PurePosixPath(member.linkname)
        if target.is_absolute() or _climbs(name, target):
            return "a link that leads out of the folder"
        return None
    if member.isreg() or member.isdir():
        return None
    return "a second name of a file" if member.islnk() else "a device or pipe"


def _climbs(name: PurePosixPath, target: PurePosixPath) -> bool:
    """True if a link called `name` leads out of the folder that its first part names."""
    depth = len(name.parts) - 2
    for part in target.parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return True
    return False


def _write(
    tar: tarfile.TarFile,
    member: tarfile.TarInfo,
    path: Path,
    folders: list[tuple[Path, int]],
    copied: Copied,
    count: Count,
) -> None:
    mode = member.mode & MODE
    if member.isdir():
        if not path.is_dir():
            path.mkdir(mode=OWNER)
        folders.append((path, mode))
    elif member.issym():
        path.unlink(missing_ok=True)
        path.symlink_to(member.linkname)
    else:
        content = tar.extractfile(member)
        assert content is not None
        path.unlink(missing_ok=True)  # an archive may have a name twice
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            while data := content.read(BLOCK):
                file.write(data)
                count(len(data))
            os.fchmod(handle, mode)
        copied.bytes += member.size
    copied.entries += 1


def merge(source: Path, target: Path) -> None:
    """Move what is in `source` into the folder `target`; files of one name are replaced. Raises OSError."""
    for each in sorted(source.iterdir()):
        there = target / each.name
        if each.is_dir() and not each.is_symlink() and there.is_dir() and not there.is_symlink():
            merge(each, there)
        else:
            each.replace(there)
    target.chmod(stat.S_IMODE(source.stat().st_mode))
    source.rmdir()


def discard(path: Path) -> None:
    """Remove a file or a folder, whatever modes are in it."""
    if path.is_dir() and not path.is_symlink():
        for folder, folders, _ in os.walk(path):
            for each in folders:
                inner = Path(folder, each)
                if not inner.is_symlink():
                    inner.chmod(OWNER)
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
