# SPDX-License-Identifier: Apache-2.0
"""Runs of one reproduction: written as scenarios that a user can run alone, made, verified, reported, measured."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from sundial.model.load import load_experiments
from sundial.plan.request import Progress, RunRequest
from sundial.reproduce.measure import Measured
from sundial.reproduce.worker import Maker, Makers, Task
from sundial.whole import whole

Mips = Decimal | Mapping[str, Decimal]
"""Speed of all machines of a run, or of each by its name."""

SCENARIOS, RUNS = "scenarios", "runs"
IMAGES = ".images"
"""Copies of the images, while the runs are made."""


@dataclass(frozen=True)
class Spec:
    """One run: what is called on which topology. `settings` are `--set` of the topology, `KEY=VALUE`."""

    name: str
    about: str
    topology: str
    workloads: Sequence[Mapping[str, Any]]
    settings: tuple[str, ...] = ()
    expect: Mapping[str, str] = field(default_factory=dict)
    deadline: str = "1 h"
    linger: str = "300 ms"
    """Long enough for a server to say what it has counted."""
    statistic: str = ""
    """Over series, where it is not the mean."""


@dataclass(frozen=True)
class Step:
    """One run, and what is done with it once it is made."""

    spec: Spec
    take: Callable[[Measured], None]


@dataclass(frozen=True)
class Made:
    """What became of one run."""

    name: str
    about: str
    verdict: str
    """pass, fail, or failed: the run itself did not end."""
    calls: int
    mismatches: int
    error: str = ""
    """Of a run that failed."""


@dataclass(frozen=True)
class Doors:
    """What other rooms do for a reproduction; tests bring their own."""

    maker: Makers
    pin_images: Callable[[Path, Progress, Iterable[str] | None], dict[str, dict[str, str]]]
    """Copies images into a folder, built first where they are not current; the sha256 of each one's parts and its
    recipe, by its name. None: all but those that are built on demand and are not built."""


class Bench:
    """Makes runs in one folder at one seed, and keeps what became of each."""

    def __init__(
        self,
        folder: Path,
        seed: int,
        connect: str,
        doors: Doors,
        progress: Progress,
        maker: Maker,
    ) -> None:
        self.folder = folder
        self.seed = seed
        self.made: list[Made] = []
        self.images: dict[str, dict[str, str]] = {}
        """sha256 of kernel and initrd of each image, and its recipe: the same for all runs."""
        self._connect = connect
        self._doors = doors
        self._progress = progress
        self._maker = maker
        self._begun = 0
        self._expected = 0

    def pin_images(self) -> None:
        """Copy the images, so that all runs boot the same whatever is built meanwhile. Raises HostLacks."""
        self.images = self._doors.pin_images(self.folder / IMAGES, self._progress, None)

    def drop_images(self) -> None:
        """Remove the copies."""
        shutil.rmtree(self.folder / IMAGES, ignore_errors=True)

    def expect(self, more: int) -> None:
        """So many runs are still to come, as far as is known."""
        self._expected = self._begun + more

    def make(self, spec: Spec, mips: Mips) -> Measured | None:
        """One run at these speeds; see `make_all`."""
        (measured,) = self.make_all([(spec, mips)])
        return measured

    def make_all(self, asked: Iterable[tuple[Spec, Mips]]) -> Iterator[Measured | None]:
        """Runs at these speeds, side by side where the maker does so, in the order in which they were asked for.

        None where one failed, which is kept and does not stop the others. Raises BadInput, HostLacks, Interrupted.
        """
        wanted = list(asked)
        tasks = [self._task(spec, mips) for spec, mips in wanted]
        if self.images:
            self._pin_others([task for task, _ in tasks])
        for (spec, _), (task, _), end in zip(wanted, tasks, self._maker.make(tasks), strict=True):
            self.made.append(Made(spec.name, spec.about, *astuple(end)))
            if end.verdict == "failed":
                self._progress.say(f"{spec.name} failed: {end.error}")
                yield None
            else:
                yield Measured(task.out)

    def take_all(self, steps: Sequence[Step], mips: Mips) -> None:
        """All of these at one speed; those that fail are left out."""
        for step, made in zip(steps, self.make_all((step.spec, mips) for step in steps), strict=True):
            if made is not None:
                step.take(made)

    def _pin_others(self, tasks: Sequence[Task]) -> None:
        """Build and copy what these runs boot and was not there before: images that are built on demand."""
        nodes = (node for task in tasks for node in task.request.experiment.network.nodes)
        others = dict.fromkeys(node.image for node in nodes if node.image not in self.images)
        if others:
            self.images.update(self._doors.pin_images(self.folder / IMAGES, self._progress, others))

    def _task(self, spec: Spec, mips: Mips) -> tuple[Task, Progress]:
        self._begun += 1
        self._expected = max(self._expected, self._begun)
        talk = _Numbered(self._progress, f"{self._begun}/{self._expected} {spec.name}")
        out = self.folder / RUNS / spec.name
        scenario = self._written(spec)
        settings = (*_speeds(mips), *spec.settings)
        (experiment,) = load_experiments(str(scenario), topology=spec.topology, overrides=settings, seed=self.seed)
        sets = [word for setting in settings for word in ("--set", setting)]
        command = ("sundial", "run", str(scenario), "--topology", spec.topology, *sets, "--seed", str(self.seed))
        pinned = self.folder / IMAGES if self.images else None
        request = RunRequest(experiment, out.parent, out, self._connect, False, command, images=pinned)
        return Task(spec.about, request, out, sum(map(_calls, spec.workloads, experiment.scenario.workloads))), talk

    def _written(self, spec: Spec) -> Path:
        folder = self.folder / SCENARIOS
        folder.mkdir(exist_ok=True)
        (self.folder / RUNS).mkdir(exist_ok=True)
        document = {
            "description": spec.about,
            "topology": spec.topology,
            "seed": self.seed,
            "deadline": spec.deadline,
            "linger": spec.linger,
            "workloads": [dict(workload) for workload in spec.workloads],
            "expect": dict(spec.expect),
            **({"statistic": spec.statistic} if spec.statistic else {}),
        }
        path = folder / f"{spec.name}.yaml"
        with whole(path) as beside:
            # JSON is YAML too.
            beside.write_text(json.dumps(document, indent=1) + "\n")
        return path


def _calls(workload: Mapping[str, Any], read: object) -> int:
    """About how many calls a workload makes: enough to tell long runs from short ones.

    `read`: what it was read as, where `functions` are those that a word such as all stands for.
    """
    lists = ("clients", "transports", "procedures", "operations", "modes", "sizes")
    several = math.prod(len(workload[name]) for name in lists if isinstance(workload.get(name), list | tuple))
    several *= len(getattr(read, "functions", None) or [0])
    return several * int(workload.get("calls", 1)) * int(workload.get("series", 1))


def _speeds(mips: Mips) -> Iterator[str]:
    if isinstance(mips, Decimal):
        yield f"defaults.mips={mips:f}"
        return
    for machine, speed in mips.items():
        yield f"machines.{machine}.mips={speed:f}"


class _Numbered:
    """Says which run a step belongs to."""

    def __init__(self, progress: Progress, name: str) -> None:
        self._progress = progress
        self._name = name

    def say(self, text: str) -> None:
        self._progress.say(f"{self._name}: {text}")

    def share(self, done: float, text: str) -> None:
        self._progress.share(done, text)
