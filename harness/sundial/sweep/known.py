# SPDX-License-Identifier: Apache-2.0
"""The identity of a run on this host, from the digests of its images, own files and programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import sundial
from sundial.errors import HostLacks
from sundial.machines.bootfiles import boot_files, root_of
from sundial.machines.images import Image, Images
from sundial.machines.recipes import asked
from sundial.machines.roots import Roots
from sundial.machines.seals import Book, sha256_of
from sundial.model.experiment import Experiment
from sundial.model.network import Node
from sundial.plan.build import Boot, plan_run
from sundial.plan.paths import DRY
from sundial.run.places import Places, emulator, tool_version
from sundial.sweep.identity import Identity, digest, identity

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


class Identities:
    """Identities on one host. Files are read again only where they can have changed."""

    def __init__(self, recipe: str | None = None, *, say: Say | None = None, places: Places | None = None) -> None:
        """With `say` images and roots are made where they are missing. Raises BadInput for an unknown recipe."""
        self._places = places or Places()
        self._images = Images(self._places.checkout, asked(self._places.state, recipe), self._places.state)
        self._roots = Roots(self._places.checkout, self._places.state)
        self._say = say
        self._known: dict[str, Image | None] = {}

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
        package = Path(sundial.__file__).parent
        sources = sorted(path for room in VERIFIERS for path in (package / room).rglob("*.py"))
        known = {path.relative_to(package).as_posix(): sha256_of(path) for path in sources}
        return digest([known, tool_version("tshark", Book(self._places.programs))])

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
