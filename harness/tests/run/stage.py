# SPDX-License-Identifier: Apache-2.0
"""A run of fakes: everything of a run but machines, fabric and images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sundial.machines.fake import FakeHypervisor
from sundial.model.load import load_experiments
from sundial.plan.request import EMBEDDED, RunRequest
from sundial.run.fabric import FakeFabric
from sundial.run.session import Session

RECIPE = """#!/bin/sh
set -eu
out=$2
mkdir -p "$out"
echo kernel > "$out/kernel"
echo initrd > "$out/initrd"
sum() { sha256sum "$out/$1" | cut -d' ' -f1; }
echo '{"version": 1, "kernel_release": "6.1", "cmdline": "console=ttyS0", "sha256": {"kernel": "'"$(sum kernel)"'",
 "initrd": "'"$(sum initrd)"'"}}' > "$out/manifest.json"
"""


class Words:
    """A Progress that remembers."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def share(self, done: float, text: str) -> None:
        return


@dataclass
class Stage:
    """A run of fakes. `act` is called once all machines run, with everything at hand."""

    session: Session
    hypervisor: FakeHypervisor
    captures: Path
    act: Callable[[Stage], None] = lambda stage: stage.fabric.finish(5_000_000_000)
    words: Words = field(default_factory=Words)
    fabrics: list[FakeFabric] = field(default_factory=list)

    @property
    def fabric(self) -> FakeFabric:
        return self.fabrics[-1]

    def request(self, out: Path | None = None) -> RunRequest:
        (experiment,) = load_experiments("quickstart", topology="two-hosts-10base-t", seed=7, clock="real")
        return RunRequest(experiment, self.captures, out, EMBEDDED, True, ("sundial", "run", "quickstart"))

    def partial(self) -> Path:
        (found,) = self.captures.glob(".*.partial")
        return found

    def leftovers(self) -> list[str]:
        """Whatever a run should not have left."""
        found = [*self.captures.glob(".*"), *self.session.shm_folder.iterdir()]
        found += [path for path in self.session.runtime.path.iterdir() if path.name != "owner.json"]
        return [path.name for path in found]
