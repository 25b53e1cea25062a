# SPDX-License-Identifier: Apache-2.0
"""Guest images: `images/NAME/build` makes `images/out/NAME/{kernel,initrd,manifest.json}`.

An image is current when the digest of everything that its build reads is the one it was built from; that digest is
kept beside it. The declaration (`image.toml`) names the inputs outside of the image's folder: an edit of one guest's
sources must not rebuild every image. What is in an image (versions, package names) is in the build's manifest, with the
sha256 of its parts, which are compared whenever the image is used: one that was changed or cut is built again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sundial.errors import BadInput, HostLacks, RunFailed
from sundial.model.images import DECLARATION, ImageKinds

Say = Callable[[str], None]
DIGEST = "inputs.sha256"
MANIFEST = "manifest.json"
PARTS = ("kernel", "initrd")
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
    """built, stale, damaged or missing."""
    manifest: dict[str, Any] | None
    description: str


class Damaged(Exception):
    """What a build left is not what it made; the message says how."""


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
        try:
            return _load(name, self._out(name))
        except Damaged as damage:
            hint = f"run images/{name}/build to see all of its output"
            raise HostLacks(f"image {name} was just built and cannot be used: {damage}", hint=hint) from damage

    def ensure(self, name: str, say: Say) -> Image:
        """The image, built first where it is missing, damaged, or what it is made from has changed."""
        try:
            if self._is_current(name):
                return _load(name, self._out(name))
        except Damaged as damage:
            say(f"image {name} is damaged: {damage}")
        return self.build(name, say)

    def _status(self, name: str) -> ImageStatus:
        self._check_known(name)
        about = self._kinds[name].description
        if not self._is_whole(name):
            return ImageStatus(name, "missing", None, about)
        try:
            image = _load(name, self._out(name))
        except Damaged:
            return ImageStatus(name, "damaged", None, about)
        return ImageStatus(name, "built" if self._is_current(name) else "stale", image.manifest, about)

    def _is_whole(self, name: str) -> bool:
        return all((self._out(name) / part).is_file() for part in (*PARTS, MANIFEST, DIGEST))

    def _is_current(self, name: str) -> bool:
        self._check_known(name)
        try:
            return self._is_whole(name) and (self._out(name) / DIGEST).read_text().strip() == self._inputs(name)
        except (OSError, ValueError):
            return False

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


class PinnedImages:
    """Copies of images as they were at one moment."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def ensure(self, name: str, say: Say) -> Image:
        """The image. Raises RunFailed for one that is not as it was."""
        try:
            return _load(name, self._folder / name)
        except Damaged as damage:
            raise RunFailed(f"the copy of image {name} in {self._folder} was changed: {damage}") from damage


def pin(images: Images, folder: Path, say: Say) -> dict[str, dict[str, str]]:
    """Copy all images into `folder`, for PinnedImages; the sha256 of each one's parts. Raises HostLacks."""
    pinned = {}
    for name in images.names():
        image = images.ensure(name, say)
        shutil.copytree(image.kernel.parent, folder / name)
        pinned[name] = {"kernel": image.kernel_sha256, "initrd": image.initrd_sha256}
    return pinned


def _load(name: str, out: Path) -> Image:
    """Raises Damaged."""
    try:
        manifest = json.loads((out / MANIFEST).read_text())
        kernel, initrd = (_file_sha256(out / part) for part in PARTS)
    except (OSError, ValueError, RecursionError) as error:
        raise Damaged(f"cannot be read: {error}") from error
    named = manifest.get("sha256") if isinstance(manifest, dict) else None
    if not isinstance(named, dict) or not isinstance(manifest.get("cmdline"), str):
        raise Damaged(f"its {MANIFEST} is not what the build wrote")
    for part, found in zip(PARTS, (kernel, initrd), strict=True):
        if named.get(part) != found:
            raise Damaged(f"its {part} has another sha256 than {MANIFEST} says")
    return Image(name, out / "kernel", out / "initrd", kernel, initrd, manifest)


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
