# SPDX-License-Identifier: Apache-2.0
"""What a Buildroot release says as text: version, configuration taken, packages, progress. Nothing here runs it."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from recipe.errors import HostLacks, RecipeError

TRIED = ("2024.02.13", "2025.02.16", "2026.05.1")
"""Releases that have taken every line of our defconfigs."""

_PARTS = ("Makefile", "Config.in", "package", "support", "toolchain")
# What a user's own builds leave in the folder: no part of the release.
_LEAVINGS = frozenset({".git", ".config", ".config.old", "output", "dl", "__pycache__"})
_VERSION = re.compile(r"^export BR2_VERSION := (\S+)$", re.MULTILINE)
_EPOCH = re.compile(r"^BR2_VERSION_EPOCH = (\d+)$", re.MULTILINE)
_UNSET = re.compile(r"# (BR2_\w+) is not set")
_STEP = re.compile(r"(?:\x1b\[7m)?>>> +(\S+) (\S*) *\b([A-Z][a-z].*?)(?:\x1b\[27m)?$")
_FINAL = re.compile(r"(?:\x1b\[7m)?>>> +([A-Z][a-z].*?)(?:\x1b\[27m)?$")


@dataclass(frozen=True)
class Release:
    """An unpacked release."""

    folder: Path
    version: str
    epoch: str | None
    """Seconds since 1970 of its date, which files of a reproducible image get."""

    @property
    def warning(self) -> str | None:
        """A line for the user where it is none of those that were tried."""
        if self.version in TRIED:
            return None
        return f"warning: Buildroot {self.version} was not tried; {', '.join(TRIED)} were"


def read(folder: Path) -> Release:
    """Raises HostLacks, in one line, for a folder that holds no release."""
    missing = [part for part in _PARTS if not (folder / part).exists()]
    if missing:
        raise HostLacks(f"{folder} is not a Buildroot release: there is no {missing[0]}")
    makefile = (folder / "Makefile").read_text(errors="replace")
    version, epoch = _VERSION.search(makefile), _EPOCH.search(makefile)
    if version is None:
        raise HostLacks(f"{folder} is not a Buildroot release: its Makefile sets no BR2_VERSION")
    return Release(folder, version[1], epoch and epoch[1])


def tree_sha256(folder: Path) -> str:
    """Over names, modes and contents: of a release, the same for its archive and a checkout of its tag."""
    digest = hashlib.sha256()
    for path in _files(folder):
        kind = b"l" if path.is_symlink() else b"x" if path.stat().st_mode & 0o100 else b"f"
        content = str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()
        name = path.relative_to(folder).as_posix().encode()
        digest.update(b"%s %s\0%s\n" % (kind, name, hashlib.sha256(content).digest()))
    return digest.hexdigest()


def state(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of every file and folder, to see later what was written."""
    return {
        path.relative_to(folder).as_posix(): (status.st_size, status.st_mtime_ns)
        for path in folder.rglob("*")
        for status in [path.lstat()]
    }


def written(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """Paths that differ."""
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def _files(folder: Path) -> list[Path]:
    found = []
    for path in sorted(folder.iterdir()):
        if path.name in _LEAVINGS:
            continue
        found += _files(path) if path.is_dir() and not path.is_symlink() else [path]
    return found


def settings(defconfig: str) -> list[str]:
    """The lines of a defconfig that set something: not its comments."""
    lines = (line.strip() for line in defconfig.splitlines())
    return [line for line in lines if line and (not line.startswith("#") or _UNSET.fullmatch(line))]


def not_taken(defconfig: str, config: str) -> list[str]:
    """Lines of the defconfig that the release has silently dropped: they are not in the .config made from it."""
    taken = set(config.splitlines())
    return [line for line in settings(defconfig) if line not in taken]


class Progress:
    """Lines for the user from what make prints: one for each package, and one for each step at the end."""

    def __init__(self, packages: Iterable[str]) -> None:
        self._waiting = set(packages)
        self._all = len(self._waiting)
        self._said: set[str] = set()

    def line(self, text: str) -> str | None:
        """What to say about a line of output, or None."""
        step, final = _STEP.match(text), _FINAL.match(text)
        if step is None and final is not None and final[1] not in self._said:
            self._said.add(final[1])
            return final[1][0].lower() + final[1][1:]
        if step is None or step[1] not in self._waiting:
            return None
        self._waiting.remove(step[1])
        version = "" if step[2] == "custom" else f" {step[2]}" if step[2] else ""
        return f"{step[1]}{version} ({self._all - len(self._waiting)} of {self._all})"


def package_list(info: Mapping[str, Mapping[str, object]], roots: Iterable[str] | None = None) -> list[dict[str, str]]:
    """Name, version and licences of every package of `make show-info`, or of those that the roots depend on."""
    chosen = set(info) if roots is None else _closure(info, roots)
    return [
        {"name": name, "version": str(about["version"]), "licence": str(about.get("licenses", ""))}
        for name, about in sorted(info.items())
        if name in chosen and about["type"] != "rootfs" and not about["virtual"] and about.get("version")
    ]


def _closure(info: Mapping[str, Mapping[str, object]], roots: Iterable[str]) -> set[str]:
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        if name not in info:
            raise RecipeError(f"make show-info does not list {name}")
        found.add(name)
        dependencies = info[name]["dependencies"]
        assert isinstance(dependencies, list), "so it is in every release"
        waiting += dependencies
    return found


def kernel_release(vmlinux: bytes) -> str:
    """The release that the kernel's banner names."""
    found = re.search(rb"Linux version (\S+) \(", vmlinux)
    if found is None:
        raise RecipeError("the kernel has no banner")
    return found[1].decode()
