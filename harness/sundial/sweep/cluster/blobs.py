# SPDX-License-Identifier: Apache-2.0
"""Files of images by their digests: a worker gets those that it lacks."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from sundial.machines.images import DIGEST, PACKED, Image
from sundial.machines.seals import sha256_of
from sundial.sweep.identity import digest

Wanted = Mapping[str, Mapping[str, str]]
"""sha256 of each file of each image: by the image's name, then by the file's."""


def files_of(image: Image) -> dict[str, tuple[str, Path]]:
    """The files of an image that machines boot or that describe it: sha256 and path, by name."""
    known = {"kernel": image.kernel_sha256, "initrd": image.initrd_sha256}
    folder = image.kernel.parent
    paths = (folder / name for name in PACKED if name != DIGEST)
    return {path.name: (known.get(path.name) or sha256_of(path), path) for path in paths if path.is_file()}


class Blobs:
    """A folder of files called by their digests, and of images made from them. Several processes may use it."""

    def __init__(self, folder: Path) -> None:
        """Raises OSError."""
        self._blobs, self._images = folder / "blobs", folder / "images"
        for each in (self._blobs, self._images):
            each.mkdir(parents=True, exist_ok=True)

    def lacking(self, digests: Iterable[str]) -> list[str]:
        """Those that are not here."""
        return [each for each in digests if not (self._blobs / each).is_file()]

    def put(self, sha256: str, content: bytes) -> None:
        """Keep a file. Raises ValueError for one that is not what its digest says."""
        if hashlib.sha256(content).hexdigest() != sha256:
            raise ValueError(f"a file with digest {sha256} has other bytes")
        beside = self._beside(self._blobs)
        beside.write_bytes(content)
        beside.rename(self._blobs / sha256)

    def adopt(self, out: Path) -> None:
        """Take in what this host has built: RECIPE/NAME/FILE below `out`."""
        for path in out.glob("*/*/*"):
            if path.name in PACKED and path.name != DIGEST:
                beside = self._beside(self._blobs)
                with contextlib.suppress(OSError):  # an image that is built again at this moment
                    shutil.copyfile(path, beside)
                    beside.rename(self._blobs / sha256_of(beside))

    def images(self, wanted: Wanted) -> Path:
        """A folder with these images, as `machines.images.pin` makes one. Raises OSError for a file that is missing."""
        place = self._images / digest({name: dict(files) for name, files in wanted.items()})
        if not place.is_dir():
            beside = self._beside(self._images)
            for name, files in wanted.items():
                (beside / name).mkdir(parents=True)
                for file, sha256 in files.items():
                    os.link(self._blobs / sha256, beside / name / file)
            try:
                beside.rename(place)
            except OSError:  # another process was first
                shutil.rmtree(beside, ignore_errors=True)
        return place

    @staticmethod
    def _beside(folder: Path) -> Path:
        return folder / f".{os.getpid()}-{secrets.token_hex(4)}"
