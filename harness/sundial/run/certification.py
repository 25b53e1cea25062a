# SPDX-License-Identifier: Apache-2.0
"""Certifies an emulator for virtual time: short runs whose clocks look at different times must be equal.

The clock plugin relies on internals of QEMU (harness/clock/README.md). An emulator that is not known yet makes the runs
of `COURSES` once, 20 to 30 s of processor time. In each course the first trial is an ordinary run; the others have
gates alone, or further gates and looks at pseudo-random times, in the run or from the guests' boot on. Guests must be
ready at the same instant with the same main memory, execute the same number of instructions, and leave the same files.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sundial.errors import HostLacks, RunFailed
from sundial.machines.certificates import OTHER_QEMU, Certificate
from sundial.model.experiment import Experiment
from sundial.model.load import load_experiments
from sundial.plan.domain import escaped
from sundial.plan.request import CALM, Progress, RunRequest, RunResult, Silence, Stirring
from sundial.run.places import emulator
from sundial.run.session import Session
from sundial.units import icount_shift

Make = Callable[..., RunResult]
"""Makes a run, as `runner.run` does."""

CHECK_S = 30.0


@dataclass(frozen=True)
class Trial:
    """One run of a course."""

    name: str
    """Its folder, and how differences name it."""
    stirring: Stirring
    cold: bool = False
    trace: bool = False


@dataclass(frozen=True)
class Course:
    """A scenario and the trials that must come out the same; the first one is the measure."""

    scenario: str
    overrides: tuple[str, ...]
    trials: tuple[Trial, ...]


ORDINARY = Trial("ordinary", CALM)
COURSES = (
    Course(
        "quickstart",
        ("sizes=16,4096", "calls=3", "linger=50 ms"),
        (
            ORDINARY,
            Trial("gates alone", Stirring(looks=False)),
            Trial("gates every 5 us", Stirring(jitter_ns=5_000), trace=True),
            Trial("gates every 100 us from the boot on", Stirring(jitter_ns=100_000), cold=True),
        ),
    ),
    Course(
        "shrimp-rpc-sweep",
        ("sizes=16,4096", "calls=3", "linger=50 ms"),
        (ORDINARY, Trial("gates every 5 us from the boot on", Stirring(jitter_ns=5_000), cold=True)),
    ),
)
"""Linux on Ethernet, and SSS-CORE with the adapter of a backplane, which takes more of QEMU."""


@dataclass(frozen=True)
class Evidence:
    """What a trial left, by machine or by file. Times in ns."""

    ready_ns: Mapping[str, int]
    """Virtual time at which the guest was ready."""
    memories: Mapping[str, str]
    clocks: Mapping[str, Mapping[str, Any]]
    """Reports of the clock plugin."""
    files: Mapping[str, bytes]
    """What has to be equal to the byte, by its path in the run directory."""
    instruction_ns: Mapping[str, int]


def require(session: Session, progress: Progress, make: Make, *, again: bool = False) -> Certificate | None:
    """The certificate of a session's emulator, which is certified if it is not known yet, or `again`.

    Raises HostLacks where it does not keep virtual time. None for a session that takes every emulator.
    """
    certificates, plugin = session.certificates, session.places.plugin
    if certificates is None:
        return None
    found = None if again else certificates.find(emulator(), plugin)
    if found is None:
        with certificates.alone():
            # Another process may have done it meanwhile.
            found = None if again else certificates.find(emulator(), plugin)
            if found is None:
                found = certify(session, progress, make)
                certificates.write(emulator(), plugin, found)
    if found.difference is not None:
        raise HostLacks(f"QEMU {found.version} does not keep virtual time: {found.difference}", hint=OTHER_QEMU)
    return found


def certify(session: Session, progress: Progress, make: Make) -> Certificate:
    """The outcome of all trials, made and compared. Raises HostLacks where one of them cannot be made."""
    version = session.hypervisor.versions()["qemu"]
    lacks = plugin_lacks(emulator(), session.places.plugin)
    if lacks is not None:
        raise HostLacks(f"QEMU {version} cannot keep virtual time: {lacks}", hint=OTHER_QEMU)
    folder = session.places.trials
    shutil.rmtree(folder, ignore_errors=True)
    difference = next(_differences(session, folder, version, progress, make), None)
    if difference is None:
        shutil.rmtree(folder, ignore_errors=True)
    return Certificate(version, difference)


def plugin_lacks(qemu: Path, plugin: Path) -> str | None:
    """What an emulator lacks of what the clock plugin needs, in one line; None: nothing."""
    argv = [str(qemu), "-M", "none", "-display", "none", "-nodefaults", "-plugin", f"file={escaped(plugin)},mode=check"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=CHECK_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    said = done.stderr.splitlines()
    # The plugin's own words are better than QEMU's, whose message begins with the plugin's path.
    own = [line.removeprefix("sundial-clock: ") for line in said if line.startswith("sundial-clock: ")]
    qemus = [line.partition(f"{plugin}: ")[2] or line for line in said]
    return next(iter(own or qemus), f"it ended with status {done.returncode}")


def _differences(session: Session, folder: Path, version: str, progress: Progress, make: Make) -> Iterator[str]:
    """In the order in which they are found; the trials after the first one need not be made."""
    for course in COURSES:
        measure: Evidence | None = None
        for trial in course.trials:
            progress.say(f"certifying QEMU {version}: {course.scenario}, {trial.name}")
            try:
                evidence = _made(course, trial, folder / course.scenario / trial.name.replace(" ", "-"), session, make)
            except RunFailed as error:
                where = f"{course.scenario}, {trial.name}"
                raise HostLacks(
                    f"QEMU {version} could not be certified ({where}): {error.message}", hint=error.hint
                ) from error
            found = first_fault(trial, evidence)
            if found is None and measure is not None:
                found = first_difference(measure, evidence)
            if found is not None:
                yield f"{course.scenario}, {trial.name}: {found}"
            measure = measure or evidence


def _made(course: Course, trial: Trial, folder: Path, session: Session, make: Make) -> Evidence:
    """A trial, made. Raises RunFailed."""
    overrides = (*course.overrides, *(("trace=steps",) if trial.trace else ()))
    (experiment,) = load_experiments(course.scenario, overrides=overrides, clock="virtual")
    folder.parent.mkdir(parents=True, exist_ok=True)
    request = RunRequest(experiment, folder.parent, folder, session.connect, trial.cold, (), trial=trial.stirring)
    return _evidence(experiment, make(request, Silence(), session=session))


def _evidence(experiment: Experiment, made: RunResult) -> Evidence:
    kept = [path for path in (made.path / "wire").rglob("*") if path.is_file()]
    kept += [*made.path.glob("nodes/*/samples.jsonl"), *made.path.glob("nodes/*/console.log")]
    return Evidence(
        ready_ns={name: int(clock["zero_ns"]) for name, clock in made.clocks.items()},
        memories=made.memories,
        clocks=made.clocks,
        files={str(path.relative_to(made.path)): path.read_bytes() for path in kept},
        instruction_ns={node.name: 1 << icount_shift(node.mips) for node in experiment.network.nodes},
    )


def first_fault(trial: Trial, evidence: Evidence) -> str | None:
    """What is wrong with one trial by itself, in words."""
    for machine, clock in evidence.clocks.items():
        looks, overshoot_ns = clock.get("looks", 0), clock.get("max_overshoot_ns", 0)
        if clock.get("status") != "finished":
            return f"{machine} did not end by its clock"
        if trial.stirring.looks and not looks:
            return f"{machine} has no looks: where QEMU counts instructions was not found"
        if not trial.stirring.looks and looks:
            return f"{machine} has {looks} looks, expected gates alone"
        if overshoot_ns >= evidence.instruction_ns[machine]:
            return f"{machine} ran {overshoot_ns} ns past a gate"
        if trial.trace and not clock.get("stamps_checked"):
            return f"{machine} has no stamp that was compared with QEMU's clock"
    return None


def first_difference(measure: Evidence, other: Evidence) -> str | None:
    """The first thing in which a trial is not like the one that it is measured by, in words."""
    for machine, expected in measure.ready_ns.items():
        if other.ready_ns[machine] != expected:
            return f"{machine} is ready at {other.ready_ns[machine]} ns, expected {expected} ns"
        if other.memories[machine] != measure.memories[machine]:
            return f"the main memory of {machine} differs when it is ready"
    # Captures first: they say the most.
    for name in sorted({*measure.files, *other.files}, key=lambda name: (not name.endswith(".pcapng"), name)):
        one, two = measure.files.get(name), other.files.get(name)
        if one is None or two is None:
            return f"{name} is there in one run only"
        if one != two:
            return f"{name} differs from byte {_first_differing(one, two)} on"
    for machine, clock in measure.clocks.items():
        expected, actual = clock["instructions"], other.clocks[machine]["instructions"]
        if actual != expected:
            return f"{machine} executed {actual} instructions, expected {expected}"
    return None


def _first_differing(one: bytes, two: bytes) -> int:
    pairs = zip(one, two, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(two)))
