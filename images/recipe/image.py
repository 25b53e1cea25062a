# SPDX-License-Identifier: Apache-2.0
"""From images/NAME/RECIPE.py, which says what goes into an image, to kernel, initrd and manifest.json.

Needs no root and writes only below images/out (or DIR). The same packages and sources give the same bytes.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from recipe.commands import commands
from recipe.errors import HostLacks, RecipeError, exit_status
from recipe.locks import locked, scratch_in

CHECKOUT = Path(__file__).resolve().parents[2]
IMAGES = CHECKOUT / "images"
OWN = "own"
"""The recipe of an image whose image.toml names none."""


@dataclass(frozen=True)
class Workspace:
    """Where an image is made: `scratch` is removed afterwards, `cache` keeps what was downloaded."""

    scratch: Path
    cache: Path
    release: Path | None = None
    """The Buildroot release that was given."""


@dataclass(frozen=True)
class Contents:
    """An image before it is written; `facts` are fields of its manifest that no other image has."""

    kernel: bytes
    initrd: bytes
    kernel_release: str
    cmdline: str
    packages: list[dict[str, str]]
    facts: dict[str, object] = field(default_factory=dict)
    compiler: str | None = None
    """Where it is not the host's."""
    beside: dict[str, bytes] = field(default_factory=dict)
    """Further files by name, which the harness does not read."""


class ImageModule(Protocol):
    """What images/NAME/RECIPE.py holds."""

    DEVELOPMENT_FILES: list[tuple[str, str]]
    """Without these it cannot be made: (file, package)."""

    def make(self, workspace: Workspace) -> Contents:
        """The image. Raises RecipeError."""


def recipes(name: str) -> list[str]:
    """What the image can be made by, the usual one first."""
    declared = tomllib.loads((IMAGES / name / "image.toml").read_text())
    return list(declared.get("recipes", {OWN: []}))


def load(name: str, recipe: str) -> ImageModule:
    """The module images/NAME/RECIPE.py. Raises RecipeError where there is none."""
    path = IMAGES / name / f"{recipe}.py"
    if not path.is_file():
        raise RecipeError(f"images/{name}/{recipe}.py, which makes the image, is not there")
    spec = importlib.util.spec_from_file_location(f"image_{name}_{recipe}", path)
    assert spec is not None, "the name ends in .py"
    assert spec.loader is not None, "the name ends in .py"
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def check_host(files: Iterable[tuple[str, str]]) -> None:
    """Raises HostLacks with every development package that is missing, in one line, for a checkout that make cannot build
    in, and for a host of another architecture than the guests."""
    if (machine := os.uname().machine) != "x86_64":
        raise HostLacks(f"this host is {machine}, and images are built on x86-64 hosts: copy images/out of one")
    if any(letter.isspace() for letter in str(CHECKOUT)):
        raise HostLacks(f"no image can be built in {str(CHECKOUT)!r}: make reads a name with a space in it as two")
    missing = [package for path, package in files if not Path(path).exists()]
    if missing:
        raise HostLacks(f"packages missing on this host: {' '.join(missing)}")


def cores() -> int:
    """What this process may use of the host."""
    return len(os.sched_getaffinity(0))


def run_make(folder: Path, **variables: Path) -> None:
    """`make all` in a folder of the checkout. Raises RecipeError with the end of what the compiler said."""
    settings = [f"{name}={value}" for name, value in variables.items()]
    command = ["make", "-s", f"-j{cores()}", "-C", str(folder), *settings, "all"]
    # Under `make`, its own jobs and options are not meant for this one.
    environment = {
        name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")
    }
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        what = folder.relative_to(CHECKOUT)
        raise RecipeError(f"{what} does not compile:\n" + "\n".join(lines[-20:]))


def build(name: str, recipe: str, out: Path, cache: Path, release: Path | None = None) -> None:
    """Writes kernel, initrd and manifest.json to `out`.

    Files are exchanged one by one, the manifest last, so that a manifest always describes files that are complete.
    """
    module = load(name, recipe)
    check_host(module.DEVELOPMENT_FILES)
    with locked(out.with_name(f".{out.name}.lock"), f"another build of {out}"):
        with scratch_in(cache) as scratch:
            contents = module.make(Workspace(scratch, cache, release))
            names = commands(contents.initrd, scratch)
        text = json.dumps(_manifest(name, recipe, contents, names), indent=2) + "\n"
        out.mkdir(parents=True, exist_ok=True)
        parts = {"kernel": contents.kernel, "initrd": contents.initrd}
        for file, data in (contents.beside | parts | {"manifest.json": text.encode()}).items():
            (out / f".{file}").write_bytes(data)
            (out / f".{file}").replace(out / file)


def _manifest(name: str, recipe: str, contents: Contents, names: list[str] | None) -> dict[str, object]:
    files = {"kernel": contents.kernel, "initrd": contents.initrd}
    return {
        "version": 1,
        "name": name,
        "recipe": recipe,
        "kernel_release": contents.kernel_release,
        "cmdline": contents.cmdline,
        **contents.facts,
        **({} if names is None else {"commands": names}),
        "sha256": {file: hashlib.sha256(data).hexdigest() for file, data in files.items()},
        "bytes": {file: len(data) for file, data in files.items()},
        "compiler": contents.compiler or _compiler_version(),
        "packages": contents.packages,
    }


def _compiler_version() -> str:
    command = [*shlex.split(os.environ.get("CC", "gcc")), "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()[0] if done.stdout else "unknown"


def main() -> int:
    """The command line of every image's `build`; exit status as in README.md."""
    name = sys.argv[1]
    known = recipes(name)
    parser = argparse.ArgumentParser(
        prog=f"images/{name}/build", description=f"Builds the image {name}: kernel, initrd and manifest.json."
    )
    parser.add_argument("--recipe", choices=known, default=known[0])
    parser.add_argument("--buildroot", type=Path, metavar="DIR", help="the release for a recipe that needs one")
    parser.add_argument("--out", type=Path, metavar="DIR")
    parser.add_argument("--cache", type=Path, default=IMAGES / "out" / "cache", metavar="DIR")
    options = parser.parse_args(sys.argv[2:])
    out = options.out or IMAGES / "out" / options.recipe / name
    release = options.buildroot and options.buildroot.resolve()
    return exit_status(
        parser.prog, lambda: build(name, options.recipe, out.resolve(), options.cache.resolve(), release)
    )
