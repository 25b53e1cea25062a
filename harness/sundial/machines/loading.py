# SPDX-License-Identifier: Apache-2.0
"""Programs of a root that cannot start in it: for another processor, or without their loader, a library or, of scripts,
their interpreter."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from sundial.machines.elf import HEADER_BYTES, BadElf, Program, architecture, read_program
from sundial.machines.tree import BadTree, Entry, place

ELF = b"\x7fELF"
PROGRAMS = ("bin", "sbin", "usr/bin", "usr/sbin", "usr/local/bin", "usr/local/sbin")
"""Folders of programs."""
LIBRARIES = (
    "lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu",
    "lib",
    "usr/lib",
    "lib64",
    "usr/lib64",
    "usr/local/lib",
)
"""Folders in which loaders look, of Debian's glibc, of others' and of musl."""
PACKAGES = {
    "libc": "libc6",
    "libm": "libc6",
    "libpthread": "libc6",
    "libdl": "libc6",
    "librt": "libc6",
    "libz": "zlib1g",
}
"""Debian's packages of libraries that are not called by their library."""
OF_BUSYBOX = frozenset({"ash", "awk", "env", "sed", "sh"})
"""Interpreters that the image has by itself."""
_SCRIPT = re.compile(rb"#![ \t]*(/[!-~]+)")
_CONF = re.compile(r"etc/ld\.so\.conf(\.d/[^/]+\.conf)?|etc/ld-musl-x86_64\.path")


@dataclass(frozen=True)
class Missing:
    """One reason why a program cannot start."""

    path: str
    what: str
    library: str | None = None
    damaged: bool = False
    """It is not a program at all."""

    def __str__(self) -> str:
        return f"/{self.path} {self.what}"


def programs_of(tree: Mapping[str, Entry]) -> list[str]:
    """Paths of the files in folders of programs that can be executed."""
    folders = {place(tree, folder, follow=True) for folder in PROGRAMS}
    return sorted(
        path
        for path, entry in tree.items()
        if entry.is_file and entry.mode & 0o111 and posixpath.dirname(path) in folders
    )


def elsewhere(tree: Mapping[str, Entry], own: Collection[int]) -> list[str]:
    """Paths of ELF files in other folders that can be executed, among the entries with the ids of `own`."""
    known = set(programs_of(tree))
    return sorted(
        path
        for path, entry in tree.items()
        if id(entry) in own and entry.is_file and entry.mode & 0o111 and path not in known
        if entry.head(len(ELF)) == ELF
    )


def missing(tree: Mapping[str, Entry], paths: Iterable[str]) -> Iterator[Missing]:
    """What the programs at these paths lack in the tree, with all libraries that they load."""
    root = _Root(tree)
    for path in paths:
        yield from root.missing(path)


def packages_of(library: str) -> list[str]:
    """Names that Debian gives to the package of a library, the likeliest first."""
    name, _, version = library.partition(".so")
    version = version.lstrip(".")
    if name in PACKAGES:
        return [PACKAGES[name]]
    if library.startswith(("ld-musl", "libc.musl")):
        return ["musl"]
    if library.startswith("ld-linux"):
        return ["libc6"]
    base = name.lower().replace("_", "-")
    joined = f"{base}-{version}" if base[-1:].isdigit() else f"{base}{version}"
    return list(dict.fromkeys([joined, f"{joined}t64", f"{base}-{version}", base]))


class _Root:
    def __init__(self, tree: Mapping[str, Entry]) -> None:
        self._tree = tree
        self._folders = list(LIBRARIES)
        for path in sorted(filter(_CONF.fullmatch, tree)):
            if tree[path].is_file:
                words = re.split(r"[\s:]+", tree[path].read().decode(errors="replace"))
                self._folders += [word.strip("/") for word in words if word.startswith("/")]
        self._program = cache(self._read)

    def missing(self, path: str) -> Iterator[Missing]:
        head = self._tree[path].head(HEADER_BYTES)
        kind = architecture(head)
        if kind is None:
            yield from self._interpreting(path, head)
            return
        if kind != "amd64":
            yield Missing(path, f"is for {kind}, and machines are amd64")
            return
        try:
            yield from self._loading(path)
        except BadElf as error:
            yield Missing(path, f"cannot be executed: it {error}", damaged=True)

    def _interpreting(self, path: str, head: bytes) -> Iterator[Missing]:
        script = _SCRIPT.match(head)
        interpreter = script[1].decode() if script else ""
        name = posixpath.basename(interpreter)
        if script and script.end() < len(head) and name not in OF_BUSYBOX and self._file(interpreter) is None:
            yield Missing(path, f"needs the program {interpreter}", name)
        if not script and b"\0" in head:
            yield Missing(path, "cannot be executed: it is neither an ELF file nor a script", damaged=True)

    def _loading(self, path: str) -> Iterator[Missing]:
        program = self._program(path)
        if program.interpreter and self._file(program.interpreter) is None:
            loader = posixpath.basename(program.interpreter)
            yield Missing(path, f"needs the loader {program.interpreter}", loader)
            return
        seen: dict[str, str] = {}
        waiting = [(name, program, path) for name in program.needed]
        while waiting:
            name, asking, at = waiting.pop(0)
            found = seen.get(name) or self._library(name, asking, at, program, path)
            if found is None:
                yield Missing(path, f"needs the library {name}", name)
                return
            library = self._program(found)
            lacking = asking.asked.get(name, frozenset()) - library.defined
            if lacking and library.defined:
                yield Missing(path, f"needs {min(lacking)} of {name}, and the root has an older one")
                return
            if name not in seen:
                seen[name] = found
                waiting += [(each, library, found) for each in library.needed]

    def _library(self, name: str, asking: Program, at: str, program: Program, path: str) -> str | None:
        if "/" in name:
            return self._file(name)
        own = [(each, at) for each in asking.paths] + [(each, path) for each in program.paths]
        folders = [re.sub(r"\$\{?ORIGIN\}?", f"/{posixpath.dirname(file)}", each).strip("/") for each, file in own]
        return next(filter(None, (self._file(f"{folder}/{name}") for folder in [*folders, *self._folders])), None)

    def _file(self, path: str) -> str | None:
        try:
            found = place(self._tree, path, follow=True)
        except BadTree:
            return None
        return found if found in self._tree and self._tree[found].is_file else None

    def _read(self, path: str) -> Program:
        return read_program(self._tree[path].read())
