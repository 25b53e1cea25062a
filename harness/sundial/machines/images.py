# SPDX-License-Identifier: Apache-2.0
"""Guest images: `images/NAME/build` makes `images/out/RECIPE/NAME/{kernel,initrd,manifest.json}`.

An image is current when the digest of everything that its build reads is the one it was built from; that digest is
kept beside it. The declaration (`image.toml`) names the inputs outside of the image's folder: an edit of one guest's
sources must not rebuild every image. What is in an image (versions, package names) is in the build's manifest, with the
sha256 of its parts, which are compared whenever the image is used: one that was changed or cut is built again. They are
read only where they can have changed (`seals`).
"""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sundial.errors import BadInput, HostLacks, RunFailed
from sundial.machines.recipes import Choice, chosen
from sundial.machines.seals import Book, sha256_of
from sundial.model.catalog import OUT, shown
from sundial.model.images import DECLARATION, OWN, ImageKinds

Say = Callable[[str], None]
DIGEST = "inputs.sha256"
MANIFEST = "manifest.json"
LANGUAGES = ("python", "cpp")
"""Whose libraries a manifest may name."""
SEALS = "seals.json"
PARTS = ("kernel", "initrd")
PACKED = (*PARTS, MANIFEST, DIGEST, "symbols.json")
"""What an archive of images has of each."""
LEAVINGS = {"build", "tests", "out", "__pycache__"}
"""Folders that are no input of any build; nor are those whose name begins with a dot, in which tools keep theirs."""


@dataclass(frozen=True)
class Image:
    """A built image."""

    name: str
    kernel: Path
    initrd: Path
    kernel_sha256: str
    initrd_sha256: str
    manifest: dict[str, Any]

    @property
    def recipe(self) -> str:
        """What it was made by."""
        return _recipe(self.manifest)

    @property
    def hz(self) -> int | None:
        """Ticks a second of its kernel, where the manifest names them."""
        return self.manifest.get("hz")

    @property
    def libraries(self) -> dict[str, dict[str, str]]:
        """Versions by name, of each language whose libraries the manifest names."""
        return {language: self.manifest[language] for language in LANGUAGES if language in self.manifest}


@dataclass(frozen=True)
class ImageStatus:
    """One line of `sundial images list`."""

    name: str
    recipe: str
    chosen: bool
    """Whether machines boot the one of this recipe."""
    state: str
    """built, stale, damaged or missing."""
    manifest: dict[str, Any] | None
    description: str


class Damaged(Exception):
    """What a build left is not what it made; the message says how."""


class Images:
    """The images of one checkout, made by the recipe that is chosen.

    They are built in `state`, by default the checkout; those that were built in the checkout serve until then.
    """

    def __init__(self, checkout: Path, choice: Choice | None = None, state: Path | None = None) -> None:
        """Raises BadInput where no image has the recipe."""
        self._checkout = checkout
        self._state = checkout if state is None else state
        self._kinds = ImageKinds(checkout / "images")
        self._choice = chosen(self._state) if choice is None else choice
        if self._choice.recipe is not None:
            known = dict.fromkeys(recipe for kind in self._kinds.values() for recipe in kind.recipes)
            if self._choice.recipe not in known:
                raise BadInput(f"no image has a recipe {self._choice.recipe}", allowed=", ".join(known))

    def names(self) -> list[str]:
        """Every image that is declared. Raises BadInput for a declaration that is wrong."""
        return list(self._kinds)

    def usual(self) -> list[str]:
        """Those that are built unless others are named."""
        return [name for name, kind in self._kinds.items() if not kind.on_demand]

    def recipe(self, name: str) -> str:
        """The one that the image is made by. Raises BadInput for an unknown name."""
        self._check_known(name)
        return self._kinds[name].recipe(self._choice.recipe)

    def list(self) -> list[ImageStatus]:
        return [self._status(name, recipe) for name in self.names() for recipe in self._kinds[name].recipes]

    def build(self, name: str, say: Say) -> Image:
        """Run the image's build. Raises BadInput for an unknown name, HostLacks when it fails."""
        recipe = self.recipe(name)
        program = self._checkout / "images" / name / "build"
        if not os.access(program, os.X_OK):
            raise HostLacks(f"images/{name}/build is not an executable file", hint="images/README.md says what it does")
        out, digest = self._state / OUT / recipe / name, self._inputs(name, recipe)
        options = ["--out", str(out)]
        if recipe != OWN:
            options += ["--recipe", recipe]
        if self._state != self._checkout:
            options += ["--cache", str(self._state / OUT / "cache")]
        release = self._choice.release if recipe == self._choice.recipe else None
        if release is not None:
            if not release.is_dir():
                what = f"image {name} has to be built again, and its Buildroot release {release} is not there"
                raise HostLacks(what, hint="make images BUILDROOT=DIR")
            options += ["--buildroot", str(release)]
        say(f"building image {name}{'' if recipe == OWN else f' ({recipe})'}")
        hint = f"run {shlex.join([f'images/{name}/build', *options])} to see all of its output"
        status, last = run_build([str(program), *options], program.parent, say)
        if status != 0:
            raise HostLacks(f"image {name} could not be built: {last or f'status {status}'}", hint=hint)
        try:
            image = _load(name, recipe, out)
        except Damaged as damage:
            raise HostLacks(f"image {name} was just built and cannot be used: {damage}", hint=hint) from damage
        (out / DIGEST).write_text(digest + "\n")
        return image

    def ensure(self, name: str, say: Say) -> Image:
        """The image, built first where it is missing, damaged, or what it is made from has changed."""
        return self.current(name, say) or self.build(name, say)

    def current(self, name: str, say: Say) -> Image | None:
        """The image; None where it has to be built."""
        recipe = self.recipe(name)
        try:
            if self._is_current(name, recipe):
                return _load(name, recipe, self._out(name, recipe))
        except Damaged as damage:
            say(f"image {name} is damaged: {damage}")
        return None

    def fetch(self, archive: Path) -> Sequence[Image]:
        """Take images out of a tar archive of RECIPE/NAME/FILE, as builds leave them in images/out.

        Raises BadInput where one is damaged or was built from other inputs than these; nothing is taken then.
        """
        shown_name = shown(archive)
        room = self._state / OUT
        room.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=room) as scratch:
            found = _unpack(archive, Path(scratch))
            for recipe, name in found:
                kind = self._kinds.get(name)
                if kind is None or recipe not in kind.recipes:
                    raise BadInput(f"has an image {name} of recipe {recipe}, which is not declared", file=shown_name)
                out = Path(scratch) / recipe / name
                try:
                    _load(name, recipe if recipe != OWN else None, out)
                    inputs = (out / DIGEST).read_text().strip()
                except (Damaged, OSError) as damage:
                    raise BadInput(f"image {name} ({recipe}) is damaged: {damage}", file=shown_name) from damage
                if inputs != self._inputs(name, recipe):
                    what = f"image {name} ({recipe}) was built from other sources than those of this version"
                    raise BadInput(what, file=shown_name, allowed="the archive of this version")
            for recipe, name in found:
                place = room / recipe / name
                shutil.rmtree(place, ignore_errors=True)
                place.parent.mkdir(exist_ok=True)
                (Path(scratch) / recipe / name).rename(place)
        return [_load(name, None, room / recipe / name) for recipe, name in found]

    def _status(self, name: str, recipe: str) -> ImageStatus:
        state, manifest = "missing", None
        if _is_whole(self._out(name, recipe)):
            try:
                manifest = _load(name, recipe, self._out(name, recipe)).manifest
                state = "built" if self._is_current(name, recipe) else "stale"
            except Damaged:
                state = "damaged"
        return ImageStatus(
            name, recipe, recipe == self.recipe(name), state, manifest, self._kinds[name].description or ""
        )

    def _is_current(self, name: str, recipe: str) -> bool:
        try:
            out = self._out(name, recipe)
            return _is_whole(out) and (out / DIGEST).read_text().strip() == self._inputs(name, recipe)
        except (OSError, ValueError):
            return False

    def _check_known(self, name: str) -> None:
        if name not in self._kinds:
            raise BadInput(f"there is no image {name}", allowed=", ".join(self._kinds) or "none is declared here")

    def _out(self, name: str, recipe: str) -> Path:
        built, shipped = (place / OUT / recipe / name for place in (self._state, self._checkout))
        return shipped if _is_whole(shipped) and not _is_whole(built) else built

    def input_files(self, name: str, recipe: str) -> Sequence[Path]:
        """Everything that the build reads, but not the declaration, of which it reads the tables of libraries. Raises
        HostLacks."""
        chosen: set[Path] = set()
        kind = self._kinds[name]
        for pattern in (f"images/{name}", *kind.inputs, *kind.recipes[recipe]):
            files = {file for place in self._checkout.glob(pattern.removeprefix("!")) for file in _files(place)}
            if pattern.startswith("!"):
                chosen -= files
            elif files:
                chosen |= files
            else:
                what = f"images/{name}/{DECLARATION}: inputs: there is no {pattern}"
                raise HostLacks(what, hint="restore it from the repository")
        return sorted(chosen - {self._checkout / "images" / name / DECLARATION})

    def _inputs(self, name: str, recipe: str) -> str:
        """sha256 over the names, modes and contents of everything that the build reads. Raises HostLacks."""
        digest = hashlib.sha256()
        if asked := self._kinds[name].libraries:
            digest.update(json.dumps(asked, sort_keys=True).encode())
        for path in self.input_files(name, recipe):
            digest.update(f"{path.relative_to(self._checkout)}\0{path.stat().st_mode & 0o111}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
        return digest.hexdigest()


class PinnedImages:
    """Copies of images as they were at one moment."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def ensure(self, name: str, say: Say) -> Image:
        """The image. Raises RunFailed for one that is not as it was, or was not there."""
        if not (self._folder / name).is_dir():
            hint = f"./sundial images build {name}, and begin again"
            raise RunFailed(f"image {name} was not built when all images were copied to {self._folder}", hint=hint)
        try:
            return _load(name, None, self._folder / name)
        except Damaged as damage:
            raise RunFailed(f"the copy of image {name} in {self._folder} was changed: {damage}") from damage


def pin(images: Images, folder: Path, say: Say, names: Iterable[str] | None = None) -> dict[str, dict[str, str]]:
    """Copy images into `folder`, for PinnedImages; the sha256 of each one's parts and its recipe. Without `names` all
    of them but those that are built on demand and are not built.

    Raises HostLacks.
    """
    pinned = {}
    if names is None:
        there = [status.name for status in images.list() if status.chosen and status.state == "built"]
        names = dict.fromkeys([*images.usual(), *there])
    for name in names:
        image = images.ensure(name, say)
        shutil.copytree(image.kernel.parent, folder / name, ignore=shutil.ignore_patterns(SEALS))
        pinned[name] = {"kernel": image.kernel_sha256, "initrd": image.initrd_sha256, "recipe": image.recipe}
    return pinned


def run_build(command: list[str], folder: Path, say: Say) -> tuple[int, str]:
    """Run a build in `folder`, saying the lines of its output as they come; its exit status and its last line, of
    errors first."""
    last = ""
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        nowhere, pipe = subprocess.DEVNULL, subprocess.PIPE
        with subprocess.Popen(
            command,
            cwd=folder,
            # Recipes run by this Python, not by one that is first in PATH.
            env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"},
            stdin=nowhere,
            stdout=pipe,
            stderr=errors,
            text=True,
            errors="replace",
        ) as process:
            assert process.stdout is not None, "asked for above"
            try:
                for line in filter(None, map(str.strip, process.stdout)):
                    say(line)
                    last = line
            except BaseException:
                process.terminate()
                raise
        errors.seek(0)
        said = [line.strip() for line in errors if line.strip()]
    return process.returncode, said[-1] if said else last


def _unpack(archive: Path, scratch: Path) -> list[tuple[str, str]]:
    """Recipe and name of each image in an archive, whose files are in `scratch` then. Raises BadInput."""
    found: dict[tuple[str, str], None] = {}
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                parts = Path(member.name).parts
                if member.isdir():
                    continue
                if len(parts) != 3 or parts[2] not in PACKED or {"/", ".."} & {*parts} or not member.isfile():
                    what = f"has {member.name!r}, which is not a file of an image"
                    raise BadInput(what, file=shown(archive), allowed=f"RECIPE/NAME/FILE, FILE: {', '.join(PACKED)}")
                (scratch / parts[0] / parts[1]).mkdir(parents=True, exist_ok=True)
                content = tar.extractfile(member)
                assert content is not None, "it is a file"
                with (scratch / Path(*parts)).open("wb") as file:
                    shutil.copyfileobj(content, file)
                found[parts[0], parts[1]] = None
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise BadInput(f"is not an archive of images: {error}", file=shown(archive)) from error
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror or error}", file=shown(archive)) from error
    if not found:
        raise BadInput("has no images", file=shown(archive))
    return list(found)


def _is_whole(out: Path) -> bool:
    return all((out / part).is_file() for part in (*PARTS, MANIFEST, DIGEST))


def _recipe(manifest: dict[str, Any]) -> str:
    return str(manifest.get("recipe", OWN))


def _load(name: str, recipe: str | None, out: Path) -> Image:
    """The image in `out`, which must be of the recipe where one is given. Raises Damaged."""
    try:
        manifest = json.loads((out / MANIFEST).read_text())
        book = Book(out / SEALS)
        kernel, initrd = (book.value(out / part, sha256_of) for part in PARTS)
    except (OSError, ValueError, RecursionError) as error:
        raise Damaged(f"cannot be read: {error}") from error
    named = manifest.get("sha256") if isinstance(manifest, dict) else None
    if not isinstance(named, dict) or not isinstance(manifest.get("cmdline"), str):
        raise Damaged(f"its {MANIFEST} is not what the build wrote")
    if recipe not in (None, _recipe(manifest)):
        raise Damaged(f"its {MANIFEST} says recipe {_recipe(manifest)}, not {recipe}")
    hz = manifest.get("hz")
    if hz is not None and (type(hz) is not int or hz < 1):
        raise Damaged(f"hz in its {MANIFEST} is not a number of ticks a second")
    for language in LANGUAGES:
        versions = manifest.get(language, {})
        if not isinstance(versions, dict) or not all(isinstance(version, str) for version in versions.values()):
            raise Damaged(f"{language} in its {MANIFEST} are no versions by name")
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
        folders[:] = [name for name in folders if name not in LEAVINGS and not name.startswith(".")]
        yield from (Path(folder) / name for name in names if not name.endswith((".o", ".pyc", ".md")))
