# SPDX-License-Identifier: Apache-2.0
"""Files laid into a machine's root: a further archive behind its initrd, which the kernel unpacks over the first.

The writer is the recipes' (images/recipe/cpio.py): recipes run without the harness, and so it is theirs.
"""

from __future__ import annotations

import importlib.util
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from sundial.machines.tree import BadTree, above, follow_links
from sundial.model.bootable import DAMAGES, UNPACKERS, compression
from sundial.model.catalog import ROOT

CPIO = ROOT / "images" / "recipe" / "cpio.py"
UNPACKED_MOST = 256 << 20
"""Most bytes of a compressed initrd to inspect; larger ones are added without inspection."""


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("recipe.cpio", path)
    assert spec is not None, "the name ends in .py"
    assert spec.loader is not None, "the name ends in .py"
    module = importlib.util.module_from_spec(spec)
    # Where a dataclass looks for its own module.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


if TYPE_CHECKING:
    from recipe import cpio
else:
    cpio = _load(CPIO)


class LaidContent(NamedTuple):
    """A file to lay in: where, with an absolute path; what; with which permissions."""

    path: str
    content: bytes
    mode: int


class Conflict(Exception):
    """A file cannot be laid in over what the initrd has; `path` is the file's, the message says why."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(what)
        self.path = path


class Root:
    """The tree that an initrd unpacks to, as far as it can be read."""

    def __init__(self, initrd: bytes) -> None:
        self.complete = True
        """False: it may have more than is known."""
        self.damage: str | None = None
        """What is wrong with it, where a kernel would stop unpacking."""
        self._entries: dict[str, cpio.Entry] = {}
        self._read(initrd)

    def place(self, path: str) -> str:
        """`path` with the links on its way followed, but not a link at its end. Raises Conflict."""

        def target(here: str) -> str | None:
            entry = self._entries.get(here)
            if entry is None or stat.S_ISDIR(entry.mode):
                return None
            if not stat.S_ISLNK(entry.mode):
                raise Conflict(path, f"/{here} is a file")
            return entry.data.decode(errors="surrogateescape")

        try:
            return follow_links(path.strip("/"), target, follow=False)
        except BadTree as error:
            raise Conflict(path, str(error)) from error

    def is_folder(self, place: str) -> bool:
        """Whether there is a folder at what `place` answered."""
        entry = self._entries.get(place)
        return entry is not None and stat.S_ISDIR(entry.mode)

    def _read(self, initrd: bytes) -> None:
        """Archives follow one another, with zeros between; the last may be compressed."""
        start = 0
        while start < len(initrd):
            if initrd[start] == 0:
                start += 1
            elif initrd.startswith(cpio.MAGIC, start):
                try:
                    entries, start = cpio.read(initrd, start)
                except ValueError as error:
                    self.complete, self.damage = False, str(error)
                    return
                self._entries.update({entry.path.strip("/"): entry for entry in entries})
            else:
                self._unpack(initrd[start:])
                return

    def _unpack(self, packed: bytes) -> None:
        unpacker = UNPACKERS.get(compression(packed) or "")
        if unpacker is None:
            self.complete = False
            return
        try:
            made = unpacker()
            inside = made.decompress(packed, UNPACKED_MOST)
        except DAMAGES:
            self.complete = False
            return
        if made.eof and not made.unused_data.strip(b"\0"):
            self._read(inside)
        else:
            self.complete = False


def lay_over(initrd: bytes, files: Sequence[LaidContent]) -> bytes:
    """The initrd with `files` behind it. Raises Conflict."""
    root = Root(initrd)
    archive = cpio.Archive(over_another=True)
    taken: dict[str, str] = {}
    for path, content, mode in files:
        place = root.place(path)
        if root.is_folder(place):
            raise Conflict(path, "there is a folder")
        if place in taken:
            raise Conflict(path, f"a link makes it the same file as {taken[place]}")
        taken[place] = path
        archive.add_file(place, content, mode)
    for folder in {folder for place in taken for folder in above(place)}:
        if not root.is_folder(folder):
            # With a slash behind it a link to a folder, which it may be in what cannot be read, is followed and kept.
            archive.add_folder(f"{folder}/")
    # Aligned as the kernel wants it; four zeros are where its unpacker of lz4 sees an end.
    return initrd + b"\0" * (4 + -len(initrd) % 4) + archive.to_bytes()
