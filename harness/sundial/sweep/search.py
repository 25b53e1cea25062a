# SPDX-License-Identifier: Apache-2.0
"""Runs drawn until one fails; the failing one made small, and the one command that makes it again."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any

from sundial.errors import BadInput
from sundial.model.catalog import COMMAND
from sundial.model.experiment import Experiment
from sundial.model.sweep import Search, Sweep
from sundial.plan.request import Progress, Silence
from sundial.reproduce.matrix import written
from sundial.sweep.design import Axis, Point
from sundial.sweep.perform import Sweeping
from sundial.sweep.plans import Plan, Seen
from sundial.sweep.schedule import Engine, Schedule
from sundial.sweep.shrink import Case, Shrinker, name_of
from sundial.sweep.store import Kept
from sundial.sweep.tables import row_of

REPEATS_MOST = 50
"""Draws in sequence that were all drawn before: the file has no more runs."""
TIMELINE, WORKLOADS, MACHINES = "timeline", "workloads", "machines"


@dataclass(frozen=True)
class Draws:
    """Runs in a fixed order, up to the first with a fault; the order in which they end changes nothing."""

    points: Sequence[Point]
    ahead: int
    fault: Callable[[Point], str | None]
    """Of a run that was made."""

    def wanted(self, seen: Seen) -> Sequence[Point]:
        for number, point in enumerate(self.points):
            if point not in seen:
                return self.points[: number + self.ahead]
            if self.fault(point) is not None:
                return self.points[: number + 1]
        return self.points

    @property
    def bounds(self) -> tuple[int, int]:
        return min(1, len(self.points)), len(self.points)


def draw(sweep: Sweep, axes: Sequence[Axis], first: tuple[str, ...]) -> list[Point]:
    """The draws of a search, each once: a random half of the axes has its simplest value in each."""
    found: dict[Point, None] = {}
    asked, repeats, number = (sweep.search or Search()).runs, 0, 0
    while len(found) < asked and repeats < REPEATS_MOST:
        random = Random(f"draw {number}")
        values = (axis.simple if random.random() < 0.5 else axis.at(random.random()) for axis in axes)
        seed = sweep.seeds.start + (number % len(sweep.seeds) if len(sweep.seeds) > 1 else number)
        point = Point(tuple(values), seed, first)
        repeats = repeats + 1 if point in found else 0
        found[point] = None
        number += 1
    return list(found)


class Searching(Sweeping):
    """A search on this host."""

    NOUN = "search"

    def make_plan(self) -> Plan:
        return Draws(draw(self.sweep, self.axes, self._expected), self.request.slots, self._fault_in_store)

    @cached_property
    def _expected(self) -> tuple[str, ...]:
        """The bounds of the file as a setting, beside those of the scenario, so that one command checks them all."""
        if not self.sweep.expect:
            return ()
        simple = Point(tuple(axis.simple for axis in self.axes), self.sweep.seeds.start)
        own = self.resolve(simple).experiment.scenario.expect.metrics
        return (f"expect.metrics={written([str(bound) for bound in (*own, *self.sweep.expect)])}",)

    def fault_of(self, point: Point, kept: Kept) -> str | None:
        """The name of a run's fault; None if it passed."""
        row = row_of(0, point, "", kept, *self.metrics(point, kept))
        return None if row.verdict == "pass" else name_of(row.verdict, row.first)

    def _fault_in_store(self, point: Point) -> str | None:
        kept = self.find(point)
        return None if kept is None else self.fault_of(point, kept)

    def drawn_again(self, points: Mapping[Point, Kept]) -> list[Point]:
        """A search makes no run again."""
        return []

    def conclude(self, engine: Engine[Point], schedule: Schedule[Point, Kept], progress: Progress) -> None:
        """Make the first failing run small."""
        draws = list(self.plan.wanted({point: {} for point in schedule.seen}))
        failing = next((point for point in draws if point in schedule.seen and self._fault_in_store(point)), None)
        if failing is None:
            return
        name = self._fault_in_store(failing)
        assert name is not None
        progress.say(f"making the failing run small: {name}")
        experiment = self.resolve(failing).experiment
        whole = parts_of(experiment)

        def point_of(case: Case) -> Point:
            first = (*self._expected, *settings_without(experiment, whole, case.parts))
            return Point(case.values, failing.seed, first)

        def fault(case: Case) -> str | None:
            point = point_of(case)
            progress.share(shrinker.probes / max(1, shrinker.most), f"probe {shrinker.probes}")
            one = self.schedule(engine, Silence())
            try:
                self.resolve(point)
                one.perform(lambda: [point])
            except BadInput:
                return None  # what cannot be left out
            return None if point not in one.seen else self.fault_of(point, one.seen[point])

        shrinker = Shrinker(fault, name, self.axes, (self.sweep.search or Search()).probes)
        case = shrinker.shrink(Case(whole, failing.cell))
        point = point_of(case)
        kept = self.find(point)
        self.found = {
            "fault": name,
            "draws": draws.index(failing) + 1,
            "probes": shrinker.probes,
            "path": None if kept is None else str(kept.run),
            "command": shlex.join([COMMAND, *self.task(point).request.command[1:]]),
        }


def parts_of(experiment: Experiment) -> dict[str, tuple[Any, ...]]:
    """What may be left out of a run."""
    scenario = experiment.scenario_json()
    return {
        TIMELINE: tuple(scenario.get(TIMELINE, ())),
        WORKLOADS: tuple(scenario[WORKLOADS]),
        MACHINES: tuple(experiment.topology_json()["machines"]),
    }


def settings_without(
    experiment: Experiment, whole: Mapping[str, Sequence[Any]], parts: Mapping[str, Sequence[Any]]
) -> Iterator[str]:
    """Settings that leave out of a run what `parts` lacks of the whole."""
    gone = set(whole[MACHINES]) - set(parts[MACHINES])
    if gone:
        topology = experiment.topology_json()
        yield f"machines={written({name: topology['machines'][name] for name in parts[MACHINES]})}"
        segments = {name: _without_ports(segment, gone) for name, segment in topology["segments"].items()}
        yield f"segments={written({name: each for name, each in segments.items() if each['ports']})}"
    if list(parts[TIMELINE]) != list(whole[TIMELINE]):
        yield f"{TIMELINE}={written(list(parts[TIMELINE]))}"
    if gone or list(parts[WORKLOADS]) != list(whole[WORKLOADS]):
        yield f"{WORKLOADS}={written([_without_clients(each, gone) for each in parts[WORKLOADS]])}"


def _without_ports(value: Any, gone: set[str]) -> Any:
    """A part of a segment without what names ports of these machines."""
    if isinstance(value, dict):
        kept = {name: each for name, each in value.items() if str(name).partition(":")[0] not in gone}
        return {name: _without_ports(each, gone) for name, each in kept.items()}
    if isinstance(value, list):
        return [_without_ports(each, gone) for each in value if str(each).partition(":")[0] not in gone]
    return value


def _without_clients(workload: Mapping[str, Any], gone: set[str]) -> dict[str, Any]:
    clients = workload.get("clients")
    if not isinstance(clients, list):
        return dict(workload)
    return {**workload, "clients": [name for name in clients if name not in gone]}
