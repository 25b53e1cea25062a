# SPDX-License-Identifier: Apache-2.0
"""Guest images: `images/NAME/build` makes `images/out/NAME/{kernel,initrd,manifest.json}`.

An image is current when the digest of everything that its build reads is the one it was built from; that digest is
kept beside it. The declaration (`image.toml`) names the inputs outside of the image's folder: an edit of one guest's
sources must not rebuild every image. What is in an image (versions, package names) is in the build's manifest and taken
as it is.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sundial.errors import BadInput, HostLacks
from sundial.model.images import DECLARATION, ImageKinds

Say = Callable[[str], None]
DIGEST = "inputs.sha256"
LEAVINGS = {"build", "tests", "out", "__pycache__", ".cache"}
"""Folders that are no input of any build."""


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
    description: str


class Images:
    """The images of one checkout."""

    def __init__(self, checkout: Path) -> None:
        self._checkout = checkout
        self._kinds = ImageKinds(checkout / "images")

    def names(self) -> list[str]:
        """Every image that is declared. Raises BadInput for a declaration that is wrong."""
        return list(self._kinds)

    def list(self) -> list[ImageStatus]:
        return [self._status(name) for name in self.names()]

    def build(self, name: str, say: Say) -> Image:
        """Run the image's build. Raises BadInput for an unknown name, HostLacks when it fails."""
        self._check_known(name)
        program = self._checkout / "images" / name / "build"
        if not os.access(program, os.X_OK):
            raise HostLacks(f"images/{name}/build is not an executable file", hint="images/README.md says what it does")
        digest = self._inputs(name)
        say(f"building image {name}")
        done = subprocess.run(
            [str(program)], cwd=program.parent, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            output = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
            raise HostLacks(
                f"image {name} could not be built: {output[-1] if output else f'status {done.returncode}'}",
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
        self._check_known(name)
        about = self._kinds[name].description
        try:
            manifest = json.loads((self._out(name) / "manifest.json").read_text())
            built_from = (self._out(name) / DIGEST).read_text().strip()
            whole = all((self._out(name) / part).is_file() for part in ("kernel", "initrd"))
        except (OSError, ValueError):
            return ImageStatus(name, "missing", None, about)
        if not whole:
            return ImageStatus(name, "missing", None, about)
        return ImageStatus(name, "built" if built_from == self._inputs(name) else "stale", manifest, about)

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

    def _check_known(self, name: str) -> None:
        if name not in self._kinds:
            raise BadInput(f"there is no image {name}", allowed=", ".join(self._kinds) or "none is declared here")

    def _out(self, name: str) -> Path:
        return self._checkout / "images" / "out" / name

    def input_files(self, name: str) -> Sequence[Path]:
        """Everything that the build reads, but not the declaration, which is not in the image. Raises HostLacks."""
        chosen: set[Path] = set()
        for pattern in (f"images/{name}", *self._kinds[name].inputs):
            files = {file for place in self._checkout.glob(pattern.removeprefix("!")) for file in _files(place)}
            if pattern.startswith("!"):
                chosen -= files
            elif files:
                chosen |= files
            else:
                what = f"images/{name}/{DECLARATION}: inputs: there is no {pattern}"
                raise HostLacks(what, hint="restore it from the repository")
        return sorted(chosen - {self._checkout / "images" / name / DECLARATION})

    def _inputs(self, name: str) -> str:
        """sha256 over the names, modes and contents of everything that the build reads. Raises HostLacks."""
        digest = hashlib.sha256()
        for path in self.input_files(name):
            digest.update(f"{path.relative_to(self._checkout)}\0{path.stat().st_mode & 0o111}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
        return digest.hexdigest()


def _files(place: Path) -> Iterator[Path]:
    """The file, or all files beneath the folder that builds read: no documents, and nothing that builds leave."""
    if place.is_file():
        yield place
        return
    for folder, folders, names in os.walk(place):
        folders[:] = [name for name in folders if name not in LEAVINGS]
        yield from (Path(folder) / name for name in names if not name.endswith((".o", ".pyc", ".md")))


def _file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
