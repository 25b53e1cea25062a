# SPDX-License-Identifier: Apache-2.0
"""A run directory as what is to be made again, and whether this host makes the same run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import sundial
from sundial.errors import BadInput, HostLacks
from sundial.machines.seals import sha256_of
from sundial.model.experiment import Experiment
from sundial.model.recorded import recorded_experiment
from sundial.observe.rundir import RunDirectory, open_run
from sundial.replay.instants import Frames, instant_of, read_frames
from sundial.run.session import Session
from sundial.sweep.known import Identities, Lacking
from sundial.sweep.making import changed_meanwhile

REPLAYED = "runs of a scenario under virtual time that came to their end"


@dataclass(frozen=True)
class Recorded:
    """A run that can be made again."""

    folder: Path
    document: Mapping[str, Any]
    experiment: Experiment
    segments: Mapping[str, Frames]
    end_ns: int
    epoch_ns: int
    """Zero of the run, as captures have it."""

    @property
    def failure(self) -> str | None:
        """How the run failed."""
        error = self.document["error"]
        return None if error is None else str(error["message"])

    def capture(self, segment: str) -> Path:
        """The capture of a segment."""
        return self.folder / "wire" / f"{segment}.pcapng"

    def instant(self, until: str) -> int:
        """The instant of `--until`. Raises BadInput."""
        return instant_of(until, self.segments, self.end_ns)

    def check_machine(self, name: str | None) -> None:
        """Raises BadInput for a machine that the run does not have."""
        machines = [node.name for node in self.experiment.network.nodes]
        if name is not None and name not in machines:
            raise BadInput(f"the run has no machine {name!r}", field="--gdb", allowed=", ".join(machines))


def read_recorded(folder: Path) -> Recorded:
    """Raises BadInput for what is not such a run, or is not as it was written."""
    run = open_run(folder)
    document = run.document
    if run.by_hand:
        _refuse(folder, "is a topology that was kept up: what was done by hand is not repeated")
    if run.clock != "virtual":
        _refuse(folder, "was made under the real clock")
    complete = document.get("status") == "complete"
    part, field = ("time", "virtual_ns") if complete else ("error", "end_ns")
    end_ns = (document.get(part) or {}).get(field)
    if not isinstance(end_ns, int):
        _refuse(folder, "has no length" if complete else f"is {document.get('status')}, and was cut short")
    try:
        experiment = recorded_experiment(document)
    except BadInput as error:
        raise error.within(file=str(folder / "run.json")) from None
    _check_captures(run)
    captures = {name: folder / "wire" / f"{name}.pcapng" for name in experiment.topology.segments}
    segments = {name: read_frames(path, run.epoch_ns) for name, path in captures.items() if path.is_file()}
    return Recorded(folder, document, experiment, segments, end_ns, run.epoch_ns)


def _refuse(folder: Path, what: str) -> NoReturn:
    raise BadInput(f"the run {what}", file=str(folder), allowed=REPLAYED)


def _check_captures(run: RunDirectory) -> None:
    for name, expected in run.captures.items():
        path = run.path / name
        if not path.is_file():
            raise BadInput("is not there any more", file=str(path), allowed="runs with their captures")
        if sha256_of(path) != expected:
            raise BadInput("is not the capture that the run wrote", file=str(path), allowed="its bytes unchanged")


def check_same(recorded: Recorded, session: Session) -> str | None:
    """The recipe of the run's images, for the request. Raises BadInput where this host would make another run, and
    HostLacks where it lacks something."""
    document = recorded.document
    versions = document.get("versions") or {}
    here = {"sundial": sundial.__version__, **session.hypervisor.versions()}
    for name in ("sundial", "qemu"):
        if versions.get(name) != here[name]:
            what = f"the run was made with {name} {versions.get(name)}, here is {here[name]}"
            raise BadInput(what, file=str(recorded.folder), allowed=f"{name} {versions.get(name)}")
    recipe = recipe_of(document)
    identity = Identities(recipe).of(recorded.experiment)
    if isinstance(identity, Lacking):
        raise HostLacks(identity.what, hint="./sundial images build, or make setup")
    changed = changed_meanwhile(identity.over, document)
    if changed is not None:
        what = f"{changed} is not what the run was made with"
        raise BadInput(what, file=str(recorded.folder), allowed="the same build")
    return recipe


def recipe_of(document: Mapping[str, Any]) -> str | None:
    """The recipe that all of the run's images are made by; None: the one that is chosen."""
    recipes = {image.get("recipe") for image in (document.get("images") or {}).values()}
    found = recipes.pop() if len(recipes) == 1 else None
    return found if isinstance(found, str) and found != "own" else None
