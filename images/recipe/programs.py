# SPDX-License-Identifier: Apache-2.0
"""Programs with the libraries they need, found among unpacked packages, never on the host."""

from dataclasses import dataclass
from pathlib import Path

from recipe.elf import Elf, is_elf
from recipe.errors import RecipeError

LIBRARY_FOLDERS = (
    "lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu/systemd",
    # Where the alternatives of some libraries lie.
    "usr/lib/x86_64-linux-gnu/blas",
    "usr/lib/x86_64-linux-gnu/lapack",
    "lib64",
    "usr/lib64",
)


def beneath(package: Path, path: str) -> Path:
    """Where the unpacked package has the path, which since Debian 13 can be beneath usr."""
    found, merged = package / path, package / "usr" / path
    return merged if merged.exists() and not found.exists() else found


@dataclass(frozen=True)
class Found:
    """A file of a package."""

    package: str
    path: Path


class PackageTree:
    """All unpacked packages, each in a folder of its own name."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def file(self, package: str, path: str) -> Path:
        found = beneath(self._root / package, path)
        if not found.is_file():
            raise RecipeError(f"package {package}: has no file /{path}")
        return found

    def library(self, name: str) -> Found:
        for package in sorted(self._root.iterdir()):
            for folder in LIBRARY_FOLDERS:
                path = package / folder / name
                if path.is_symlink() or path.is_file():
                    return Found(package.name, self._resolved(package, path))
        raise RecipeError(f"library {name}: in none of the packages")

    def _resolved(self, package: Path, path: Path) -> Path:
        """Follows links inside the package; an absolute link starts at the package's root."""
        while path.is_symlink():
            target = path.readlink()
            path = package / target.relative_to("/") if target.is_absolute() else path.parent / target
        return path


def libraries_for(programs: list[bytes], tree: PackageTree) -> dict[str, Found]:
    """Soname to file for everything the programs load, the dynamic linker included."""
    found: dict[str, Found] = {}
    waiting = list(programs)
    while waiting:
        data = waiting.pop()
        if not is_elf(data):
            continue
        elf = Elf(data)
        names = list(elf.needed)
        if elf.interpreter:
            names.append(Path(elf.interpreter).name)
        # libc loads it when a thread is cancelled, and ends the program without it.
        if elf.imports("pthread_cancel"):
            names.append("libgcc_s.so.1")
        for name in names:
            if name not in found:
                found[name] = tree.library(name)
                waiting.append(found[name].path.read_bytes())
    return dict(sorted(found.items()))
