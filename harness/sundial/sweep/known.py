# SPDX-License-Identifier: Apache-2.0
"""The identity of a run on this host, from the digests of its images, own files and programs."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import sundial
from sundial.errors import HostLacks
from sundial.machines.bootfiles import boot_files, root_of
from sundial.machines.connection import EMULATOR
from sundial.machines.images import Image, Images
from sundial.machines.recipes import asked
from sundial.machines.roots import Roots
from sundial.machines.seals import Book, sha256_of
from sundial.model.experiment import Experiment
from sundial.model.network import Node
from sundial.plan.build import Boot, plan_run
from sundial.plan.paths import DRY
from sundial.run.places import Places, emulator, tool_version
from sundial.sweep.cluster.blobs import files_of
from sundial.sweep.cluster.offer import Offer, Part
from sundial.sweep.identity import Identity, digest, identity
from sundial.sweep.store import Store

Say = Callable[[str], None]


@dataclass(frozen=True)
class Lacking:
    """What has to be made before a run has a key."""

    what: str

    def to_json(self) -> dict[str, Any]:
        """As `run --dry-run` prints it."""
        return {"key": None, "lacking": self.what}


VERIFIERS = ("expect", "judge", "model", "observe", "seams", "segments", "verify", "workloads")
"""Rooms whose sources decide on a verdict."""


class Knowing(Protocol):
    """What identifies runs."""

    def of(self, experiment: Experiment) -> Identity | Lacking:
        """The identity, or the first thing that is lacking."""

    def verifier(self) -> str:
        """What identifies the verifier."""

    def sources(self) -> str:
        """What identifies the harness."""

    def offer(self, store: Store, slots: int, name: str) -> Offer:
        """What this host is as a worker."""

    def files(self, experiment: Experiment) -> Mapping[str, Mapping[str, tuple[str, Path]]]:
        """sha256 and path of each file of each image that a run boots."""


class Identities:
    """Identities on one host. Files are read again only where they can have changed."""

    def __init__(self, recipe: str | None = None, *, say: Say | None = None, places: Places | None = None) -> None:
        """With `say` images and roots are made where they are missing. Raises BadInput for an unknown recipe."""
        self._places = places or Places()
        self._images = Images(self._places.checkout, asked(self._places.state, recipe), self._places.state)
        self._roots = Roots(self._places.checkout, self._places.state)
        self._say = say
        self._known: dict[str, Image | None] = {}
        self._files: dict[str, dict[str, tuple[str, Path]]] = {}

    def of(self, experiment: Experiment) -> Identity | Lacking:
        """The identity, or the first thing that is lacking. Raises BadInput and RunFailed for files of the user's, and
        HostLacks where something is to be made and cannot be."""
        try:
            programs = self._programs()
        except HostLacks as lacks:
            return Lacking(lacks.message)
        boots: dict[str, Boot] = {}
        with TemporaryDirectory(prefix="sundial-") as copies:
            for node in experiment.network.nodes:
                found = self._boot(node, Path(copies))
                if isinstance(found, Lacking):
                    return found
                boots[node.name] = found
        return identity(experiment, plan_run(experiment, DRY), boots, programs)

    def verifier(self) -> str:
        """Digest of what verifies: the sources of VERIFIERS, and the version of tshark."""
        return digest([_sources(VERIFIERS), tool_version("tshark", Book(self._places.programs))])

    def sources(self) -> str:
        """Digest of all sources of the harness."""
        return digest(_sources(("",)))

    def offer(self, store: Store, slots: int, name: str) -> Offer:
        """What this host is as a worker. Raises HostLacks for a program that is missing."""
        book, programs = Book(self._places.programs), self._programs()
        tshark = tool_version("tshark", book) or "missing"
        parts = {
            "Sundial": Part(self.sources(), sundial.__version__),
            "Python": Part(digest(sys.version_info[:2]), ".".join(map(str, sys.version_info[:3]))),
            "QEMU": Part(programs["qemu"], tool_version(EMULATOR, book) or "of an unknown version"),
            "tshark": Part(digest(tshark), tshark),
            **{each: Part(programs[each], "another build") for each in ("plugin", "fabric")},
        }
        return Offer(name, socket.gethostname(), slots, store.id, parts)

    def files(self, experiment: Experiment) -> Mapping[str, Mapping[str, tuple[str, Path]]]:
        """sha256 and path of each file of each image that a run boots, which has a key."""
        found = {}
        for name in {node.image for node in experiment.network.nodes}:
            image = self._image(name)
            assert image is not None, "the run has a key"
            found[name] = self._files[name] = self._files.get(name) or files_of(image)
        return found

    def _programs(self) -> dict[str, str]:
        """sha256 by name. Raises HostLacks."""
        self._places.check()
        built, emulators = Book(self._places.programs), Book(self._places.emulators)
        return {
            "plugin": built.value(self._places.plugin, sha256_of),
            "fabric": built.value(self._places.fabric, sha256_of),
            "qemu": emulators.value(emulator(), sha256_of),
        }

    def _boot(self, node: Node, copies: Path) -> Boot | Lacking:
        image = self._image(node.image)
        if image is None:
            return Lacking(f"image {node.image} is not built")
        if node.root is None or self._say is not None:
            root = root_of(node, image, self._roots, self._say or (lambda _: None))
        else:
            root = self._roots.current(node.root, image)
            if root is None:
                return Lacking(f"the root of {node.name} is not made")
        return boot_files(node, image, copies, root).started_by(Path("/"), "")

    def _image(self, name: str) -> Image | None:
        if name not in self._known:
            say = self._say or (lambda _: None)
            self._known[name] = self._images.current(name, say) if self._say is None else self._images.ensure(name, say)
        return self._known[name]


def _sources(rooms: Sequence[str]) -> dict[str, str]:
    """sha256 of the sources of rooms, by their names in the package."""
    package = Path(sundial.__file__).parent
    sources = sorted(path for room in rooms for path in (package / room).rglob("*.py"))
    return {path.relative_to(package).as_posix(): sha256_of(path) for path in sources}
