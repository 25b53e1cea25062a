# SPDX-License-Identifier: Apache-2.0
"""A sweep from its file to its folder: all points validated, runs made, tables and page written.

The folder is named after what the file says, so the same command finds it again; results are in the store.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from sundial.compare.figures import paired
from sundial.errors import BadInput, HostLacks, RunFailed
from sundial.model.catalog import COMMAND
from sundial.model.experiment import Experiment
from sundial.model.load import load_experiments
from sundial.model.sweep import Sweep
from sundial.plan.request import Progress, RunRequest
from sundial.reproduce.worker import Making
from sundial.shelf.entries import size_of
from sundial.sweep.design import Axis, Cell, Point, axes_of, cells_of, plain, settings_of
from sundial.sweep.engines import Placing, Pool, engine_of, shown
from sundial.sweep.identity import Identity, digest
from sundial.sweep.known import Knowing, Lacking
from sundial.sweep.making import SweepMaking, SweepTask
from sundial.sweep.memo import FILE, Memo
from sundial.sweep.page import PAGE, write_page
from sundial.sweep.place import HERE, Place
from sundial.sweep.plans import Bisect, Crossing, Metrics, Plan, plan_of
from sundial.sweep.schedule import Engine, Schedule, drawn
from sundial.sweep.schedule import Progress as Counts
from sundial.sweep.store import Kept, Store
from sundial.sweep.tables import CALLS, RUNS, Row, row_of, write_tables
from sundial.verify.bounds import measured_all
from sundial.whole import whole

RECORD = "sweep.json"
VERSION = 1
Case = tuple[Cell, tuple[str, ...]]
"""What runs have in common that differ only by their seeds: `cell` and `first` of a point."""
SAMPLE = 50
"""Runs of which time and size are looked at, for an estimate."""


@dataclass(frozen=True)
class Request:
    """What is to be made."""

    sweep: Sweep
    data: Mapping[str, Any]
    """The sweep as JSON has it."""
    captures: Path
    out: Path | None
    store: Path
    slots: int
    """Runs at a time on this host."""
    connect: str
    recipe: str | None
    command: tuple[str, ...]
    place: Place = HERE
    """Where runs are made."""


@dataclass(frozen=True)
class Resolved:
    """A point with its experiment and its identity."""

    experiment: Experiment
    identity: Identity
    key: str


@dataclass
class Swept:
    """What a sweep came to so far."""

    folder: Path
    rows: list[Row]
    crossings: list[Crossing | None]
    counts: Counts
    checked: int
    """Runs of those drawn that were made again and are equal."""
    to_check: int
    given_up: Mapping[Point, str] = field(default_factory=dict)
    found: Mapping[str, Any] | None = None
    """The smallest failing run of a search, and the command that makes it."""

    @property
    def status(self) -> int:
        """4 where a run failed or was given up; else 1 where one has mismatches or differs; else 0."""
        verdicts = {row.verdict for row in self.rows}
        if "failed" in verdicts or self.given_up:
            return 4
        return 1 if verdicts & {"fail", "differs"} else 0

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        verdicts = {name: len(self.having(name)) for name in ("pass", "fail", "failed", "differs")}
        return {
            "folder": str(self.folder),
            "status": self.status,
            "wanted": self.counts.wanted,
            "made": self.counts.made,
            "had": self.counts.had,
            "lost": self.counts.lost,
            "given_up": len(self.given_up),
            **verdicts,
            "checked": self.checked,
            "to_check": self.to_check,
            "crossings": [None if each is None else asdict(each) for each in self.crossings],
            "found": None if self.found is None else dict(self.found),
        }

    def having(self, verdict: str) -> list[Row]:
        """Runs with this verdict."""
        return [row for row in self.rows if row.verdict == verdict]


def interval(values: Sequence[float], cell: Cell) -> tuple[float, float]:
    """The 95 % interval of the median by the percentile bootstrap over runs; the cell is the seed."""
    return paired(np.array(values, dtype=np.float64), (int(digest(list(cell))[:8], 16),))


class Sweeping:
    """One sweep on this host."""

    NOUN = "sweep"

    def __init__(self, request: Request, identities: Knowing, say: Callable[[str], None]) -> None:
        """Validates all points that are known. Raises BadInput before anything is started."""
        self.request = request
        self.sweep = request.sweep
        self.axes: list[Axis] = axes_of(self.sweep)
        self.store = Store(request.store)
        self.verifier = identities.verifier()
        self._identities = identities
        self._cases: dict[Case, Experiment] = {}
        self._resolved: dict[Point, Resolved] = {}
        self._memo = Memo(self.folder / FILE, identities.sources())
        self.found: dict[str, Any] | None = None
        """What a search found."""
        self.plan = self.make_plan()
        known: dict[Case, tuple[int, Point]] = {}
        for number, point in enumerate(self.plan.wanted({})):
            known.setdefault((point.cell, point.first), (number, point))
        for count, (number, point) in enumerate(known.values()):
            if count % 100 == 0 and count:
                say(f"validating {count} of {len(known)} points")
            self._check(point, number)

    def make_plan(self) -> Plan:
        """Which runs are made. Raises BadInput."""
        return plan_of(self.sweep, self.axes, cells_of(self.sweep, self.axes), interval)

    @property
    def folder(self) -> Path:
        """Folder of this sweep."""
        if self.request.out is not None:
            return self.request.out.absolute()
        return self.request.captures.absolute() / f"{self.NOUN}-{self.sweep.name}-{digest(dict(self.request.data))[:8]}"

    def _check(self, point: Point, number: int) -> None:
        try:
            self.resolve(point)
        except BadInput as error:
            names = (f"{axis.name} {plain(value)}" for axis, value in zip(self.axes, point.cell, strict=True))
            error.hint = f"run {number} of the sweep: {', '.join([*names, f'seed {point.seed}'])}; nothing was started"
            raise

    def resolve(self, point: Point) -> Resolved:
        """The experiment of a point. Raises BadInput, HostLacks."""
        if point not in self._resolved:
            case = (point.cell, point.first)
            if case not in self._cases:
                self._cases[case] = experiment_of(self.sweep, settings_of(self.sweep, self.axes, point), point.seed)
            experiment = self._cases[case].with_seed(point.seed)
            found = self._identities.of(experiment)
            if isinstance(found, Lacking):
                raise HostLacks(f"{found.what}, so that runs have no keys", hint="./sundial doctor says what to do")
            self._resolved[point] = Resolved(experiment, found, found.key)
        return self._resolved[point]

    def key(self, point: Point) -> str:
        """The key of a point. It follows from that of another seed. Raises BadInput, HostLacks."""
        if point in self._resolved:
            return self._resolved[point].key
        of_first_seed = self.resolve(replace(point, seed=self.sweep.seeds.start)).key
        name = self._memo.name("key", of_first_seed, point.seed)
        found: str | None = self._memo.get(name)
        if found is None:
            found = self.resolve(point).key
            self._memo.put(name, found)
        return found

    def find(self, point: Point) -> Kept | None:
        """What the store has of a point, if this verifier has verified it."""
        kept = self.store.find(self.key(point))
        return kept if kept is not None and kept.result.verifier == self.verifier else None

    def metrics(self, point: Point, kept: Kept) -> tuple[Metrics, Sequence[str]]:
        """Values of a run, and the bounds that it does not meet. A run that did not pass has no values."""
        asked = [*self.sweep.metrics.values(), *self.sweep.expect]
        name = self._memo.name("values", self.verifier, kept.result.bytes, [str(each) for each in asked])
        found = self._memo.get(name)
        if found is None:
            measured = measured_all(kept.run, asked) if kept.result.verdict != "failed" else [None] * len(asked)
            values = [None if each is None else each.to_json()["seen"] for each in measured]
            bounds = measured[len(self.sweep.metrics) :]
            unmet = [f"{each.bound}: seen {each.seen_text}" for each in bounds if each is not None and not each.met]
            found = {"values": dict(zip(self.sweep.metrics, values, strict=False)), "unmet": unmet}
            self._memo.put(name, found)
        counts = kept.result.verdict == "pass" and not kept.differing
        return (found["values"] if counts else dict.fromkeys(found["values"])), found["unmet"]

    def perform(self, making: Making, progress: Progress, pool: Callable[[Making, int], Pool] | None = None) -> Swept:
        """Make what is not in the store: on the cluster of the request, else in the processes of a pool (default:
        Workers). Whatever ends it, tables and page say what there is.

        Raises BadInput for a point that only a worker could refuse, HostLacks, Interrupted.
        """
        with self._owned():
            self._write_record()
            self.store.tidy()
            schedule: Schedule[Point, Kept] | None = None
            try:
                request = self.request
                placing = Placing(making, request.place, request.slots, self.store, self._identities, progress)
                with engine_of(placing, self.task, pool) as engine:
                    schedule = self.schedule(engine, progress)
                    progress.say("making runs")
                    self._make_wanted(schedule)
                    self.conclude(engine, schedule, progress)
            finally:
                self.store.tidy()
                if schedule is not None:
                    swept = self.write(schedule)
        return swept

    def _make_wanted(self, schedule: Schedule[Point, Kept]) -> None:
        schedule.perform(lambda: self.plan.wanted(self._seen(schedule)))

    def conclude(self, engine: Engine[Point], schedule: Schedule[Point, Kept], progress: Progress) -> None:
        """What is done once all runs are made: those drawn are made again, and compared by the store."""
        to_check = [point for point in self.drawn_again(schedule.seen) if not self._is_checked(point)]
        if to_check:
            progress.say("making some runs again, to compare them")
            self.schedule(engine, progress).perform(lambda: to_check, had=False)

    def schedule(self, engine: Engine[Point], progress: Progress) -> Schedule[Point, Kept]:
        """A schedule whose runs are found in the store."""
        return Schedule(engine, self.find, self.sweep.retries, shown(progress))

    def _seen(self, schedule: Schedule[Point, Kept]) -> dict[Point, Metrics]:
        return {point: self.metrics(point, kept)[0] for point, kept in schedule.seen.items()}

    def drawn_again(self, points: Mapping[Point, Kept]) -> list[Point]:
        """The runs that are made twice."""
        by_key = {self.key(point): point for point in points}
        return [by_key[key] for key in drawn(list(by_key), float(self.sweep.check))]

    def _is_checked(self, point: Point) -> bool:
        kept = self.store.find(self.key(point))
        return kept is not None and (kept.again > 0 or bool(kept.differing))

    def task(self, point: Point, *, keep: str | None = None) -> SweepTask:
        """The run of a point for a worker."""
        found = self.resolve(point)
        words = [word for text in settings_of(self.sweep, self.axes, point) for word in ("--set", text)]
        topology = [] if self.sweep.topology is None else ["--topology", self.sweep.topology]
        scale = [] if self.sweep.scale is None else ["--scale", self.sweep.scale]
        command = ("sundial", "run", self.sweep.scenario, *topology, *scale, *words, "--seed", str(point.seed))
        connect, recipe = self.request.connect, self.request.recipe
        run = RunRequest(found.experiment, Path(), None, connect, False, command, recipe=recipe)
        kept: Any = keep or self.sweep.keep
        return SweepTask("", run, Path(), 0, found.key, found.identity.over, self.verifier, kept)

    def state(
        self, seen: Mapping[Point, Kept], given_up: Mapping[Point, str] | None = None, counts: Counts | None = None
    ) -> Swept:
        """What there is, in the order of the plan."""
        values = {point: self.metrics(point, kept) for point, kept in seen.items()}
        found = {point: each[0] for point, each in values.items()}
        order = self.plan.wanted(found)
        rows = [
            row_of(number, point, self.key(point), kept, *values[point])
            for number, point in enumerate(order)
            if (kept := seen.get(point)) is not None
        ]
        crossings = self.plan.crossings(found) if isinstance(self.plan, Bisect) else []
        to_check = self.drawn_again(seen)
        checked = sum(seen[each].again > 0 for each in to_check)
        counts = counts or Counts(len(order), 0, len(rows))
        return Swept(self.folder, rows, crossings, counts, checked, len(to_check), given_up or {}, self.found)

    def had(self) -> dict[Point, Kept]:
        """What the store has of all runs that are wanted so far."""
        seen: dict[Point, Kept] = {}
        while True:
            wanted = self.plan.wanted({point: self.metrics(point, kept)[0] for point, kept in seen.items()})
            more = {p: kept for p in wanted if p not in seen and (kept := self.find(p)) is not None}
            if not more:
                return seen
            seen |= more

    def estimate(self) -> dict[str, Any]:
        """How many runs there are, what is there, and what the rest takes, from what like runs took."""
        seen = self.had()
        least, most = self.plan.bounds
        to_make = max(0, most - len(seen))
        checks = len(drawn([self.key(point) for point in self.plan.wanted({})], float(self.sweep.check)))
        known = list(seen.values()) or self.store.some(SAMPLE)
        taken = [float(kept.result.host["wall_s"]) for kept in known if "wall_s" in kept.result.host]
        a_run = sum(taken) / len(taken) if taken else None
        sizes = [size_of(kept.run) for kept in known[:SAMPLE]]
        return {
            "least": least,
            "most": most,
            "had": len(seen),
            "checks": checks,
            "slots": self.request.slots,
            "s_a_run": a_run,
            "s": None if a_run is None else a_run * (to_make + checks) / self.request.slots,
            "bytes": None if not sizes else to_make * sum(sizes) // len(sizes),
            "folder": str(self.folder),
        }

    def show(self, number: int, making: Making | None, progress: Progress) -> dict[str, Any]:
        """What became of one run. With `making`, it is made again if its captures were dropped. Raises BadInput."""
        swept = self.state(self.had())
        row = next((row for row in swept.rows if row.number == number), None)
        if row is None:
            there = ", ".join(str(row.number) for row in swept.rows[:8])
            raise BadInput(f"there is no run {number} in the store", field="N", allowed=there or "none is there yet")
        kept, point = row.kept, row.point
        if making is not None and not kept.has_captures:
            progress.say(f"making run {number} again")
            put = SweepMaking(making.run, making.verify, making.report, self.store.folder)
            made = put.make(self.task(point, keep="all"), progress)
            if made.error:
                raise RunFailed(made.error)
            kept = self.store.find(row.key) or kept
        command = self.task(point).request.command
        return {
            "run": number,
            "key": row.key,
            **{axis.name: plain(value) for axis, value in zip(self.axes, point.cell, strict=True)},
            "seed": point.seed,
            "verdict": row.verdict,
            "first": row.first,
            **row.metrics,
            "again": kept.again,
            "differs": ", ".join(kept.differing),
            "captures": kept.has_captures,
            "path": str(kept.run),
            "command": shlex.join([COMMAND, *command[1:]]),
        }

    def write(self, schedule: Schedule[Point, Kept]) -> Swept:
        """Tables, page and record, each whole or not at all."""
        # Checks may have found differences since.
        seen = {point: self.find(point) or kept for point, kept in schedule.seen.items()}
        swept = self.state(seen, schedule.given_up, schedule.progress)
        shown = {name: value for name, value in swept.to_json().items() if name not in ("made", "had", "lost")}
        rows, given_up = [each.to_json() for each in swept.rows], [repr(each) for each in swept.given_up.items()]
        name = self._memo.name("written", rows, given_up, shown, self.request.data)
        if self._memo.get(name) is None or not all((self.folder / each).is_file() for each in (RUNS, CALLS, PAGE)):
            write_tables(self.folder, self.axes, list(self.sweep.metrics), swept.rows)
            write_page(self.folder, self.sweep, self.axes, swept, interval, self.request.command)
            self._memo.put(name, True)
        self._memo.save()
        self._write_record(swept)
        return swept

    def _write_record(self, swept: Swept | None = None) -> None:
        document = {
            "version": VERSION,
            "kind": self.NOUN,
            "sweep": dict(self.request.data),
            "store": str(self.store.folder),
            "recipe": self.request.recipe,
            "command": list(self.request.command),
            "result": None if swept is None else swept.to_json(),
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        with whole(self.folder / RECORD) as beside:
            beside.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")

    @contextlib.contextmanager
    def _owned(self) -> Iterator[None]:
        """Raises BadInput where another command makes the sweep, or the folder is another one's."""
        record = self.folder / RECORD
        if self.folder.exists() and not record.is_file() and any(self.folder.iterdir()):
            raise BadInput(f"{self.folder} is not a sweep", file="--out", allowed="a new folder, or that of this sweep")
        if record.is_file() and read_record(self.folder, self.NOUN)["sweep"] != dict(self.request.data):
            raise BadInput(f"{self.folder} has another sweep", file="--out", allowed="another folder")
        self.folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise BadInput(f"another command makes {self.folder}", allowed="one command at a time") from None
        try:
            yield
        finally:
            os.close(handle)


def experiment_of(sweep: Sweep, settings: Sequence[str], seed: int) -> Experiment:
    """One run. Raises BadInput, also where the scenario varies something else, and for runs that do not repeat."""
    found = load_experiments(sweep.scenario, topology=sweep.topology, overrides=settings, scale=sweep.scale, seed=seed)
    if len(found) != 1:
        keys = ", ".join(sorted({part.partition("=")[0] for part in found[0].variant.split(", ")}))
        raise BadInput(f"the scenario varies {keys}", file=sweep.scenario, allowed="a value of it in set, or an axis")
    if found[0].clock != "virtual":
        what = "runs under the real clock do not repeat to the byte"
        raise BadInput(what, file=sweep.scenario, field="clock", allowed="virtual")
    return found[0]


def read_record(folder: Path, noun: str = Sweeping.NOUN) -> dict[str, Any]:
    """sweep.json of a folder. Raises BadInput."""
    try:
        found = json.loads((folder / RECORD).read_bytes())
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict) or (found.get("version"), found.get("kind")) != (VERSION, noun):
        raise BadInput(f"is not a {noun}", file=str(folder), allowed=f"the folder of a {noun}")
    return found
