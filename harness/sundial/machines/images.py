# SPDX-License-Identifier: Apache-2.0
"""Guest images: recipes in `images/NAME`, results in `images/out/NAME/{kernel,initrd,manifest.json}`.

A result is current when the digest of everything that its recipe reads is the one it was built from; that digest is
kept beside it. `images/NAME/inputs` names, one a line, what a recipe reads beside its own folder: an edit of one
guest's sources must not make every image again. What is in an image (versions, package names) is the recipe's manifest
and taken as it is.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sundial.errors import BadInput, HostLacks

Say = Callable[[str], None]
DIGEST = "inputs.sha256"
DECLARED = "inputs"


@dataclass(frozen=True)
class Image:
    """A built image."""

    name: str
    kernel: Path
    initrd: Path
    kernel_sha256: str
    initrd_sha256: str
    manifest: dict[str, Any]


@dataclass(frozen=True)
class ImageStatus:
    """One line of `sundial images list`."""

    name: str
    state: str
    """built, stale or missing."""
    manifest: dict[str, Any] | None


class Images:
    """The images of one checkout."""

    def __init__(self, checkout: Path) -> None:
        self._checkout = checkout

    def names(self) -> list[str]:
        """Every image that has a recipe."""
        recipes = self._checkout / "images"
        return sorted(path.parent.name for path in recipes.glob("*/build"))

    def list(self) -> list[ImageStatus]:
        return [self._status(name) for name in self.names()]

    def build(self, name: str, say: Say) -> Image:
        """Run the recipe. Raises BadInput for an unknown name, HostLacks when it fails."""
        recipe = self._recipe(name)
        digest = self._inputs(name)
        say(f"building image {name}")
        done = subprocess.run(
            [str(recipe)], cwd=recipe.parent, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            said = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
            raise HostLacks(
                f"image {name} could not be built: {said[-1] if said else f'status {done.returncode}'}",
                hint=f"run images/{name}/build to see all of its output",
            )
        (self._out(name) / DIGEST).write_text(digest + "\n")
        return self._load(name)

    def ensure(self, name: str, say: Say) -> Image:
        """The image, built first where it is missing or what it is made from has changed."""
        if self._status(name).state != "built":
            return self.build(name, say)
        return self._load(name)

    def _status(self, name: str) -> ImageStatus:
        self._recipe(name)
        try:
            manifest = json.loads((self._out(name) / "manifest.json").read_text())
            built_from = (self._out(name) / DIGEST).read_text().strip()
            whole = all((self._out(name) / part).is_file() for part in ("kernel", "initrd"))
        except (OSError, ValueError):
            return ImageStatus(name, "missing", None)
        if not whole:
            return ImageStatus(name, "missing", None)
        return ImageStatus(name, "built" if built_from == self._inputs(name) else "stale", manifest)

    def _load(self, name: str) -> Image:
        out = self._out(name)
        try:
            manifest = json.loads((out / "manifest.json").read_text())
            return Image(
                name,
                out / "kernel",
                out / "initrd",
                _file_sha256(out / "kernel"),
                _file_sha256(out / "initrd"),
                manifest,
            )
        except (OSError, ValueError) as error:
            raise HostLacks(f"image {name} is not whole: {error}", hint=f"./sundial images build {name}") from error

    def _recipe(self, name: str) -> Path:
        path = self._checkout / "images" / name / "build"
        if name not in self.names():
            raise BadInput(f"there is no image {name}", allowed=", ".join(self.names()) or "none has a recipe here")
        return path

    def _out(self, name: str) -> Path:
        return self._checkout / "images" / "out" / name

    def _inputs(self, name: str) -> str:
        """sha256 over the names, modes and contents of everything the recipe reads. Raises HostLacks."""
        digest = hashlib.sha256()
        for place in (f"images/{name}", *self._declared(name)):
            for path in sorted(_files(self._checkout / place)):
                status = path.stat()
                digest.update(f"{path.relative_to(self._checkout)}\0{status.st_mode & 0o111}\0".encode())
                digest.update(hashlib.sha256(path.read_bytes()).digest())
        return digest.hexdigest()

    def _declared(self, name: str) -> Sequence[str]:
        """Folders and files, relative to the checkout, that the recipe reads beside its own folder."""
        declared = self._checkout / "images" / name / DECLARED
        lines = declared.read_text().splitlines() if declared.is_file() else []
        places = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
        for place in places:
            if not (self._checkout / place).exists():
                raise HostLacks(
                    f"images/{name}/{DECLARED} names {place}, which is not there", hint="restore it from the repository"
                )
        return places


def _files(place: Path) -> list[Path]:
    """The file, or all files beneath the folder, but not what builds and tests leave."""
    if place.is_file():
        return [place]
    found = []
    for folder, folders, names in os.walk(place):
        folders[:] = [name for name in folders if name not in {"build", "tests", "out", "__pycache__", ".cache"}]
        found += [Path(folder) / name for name in names if not name.endswith((".o", ".pyc"))]
    return found


def _file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
