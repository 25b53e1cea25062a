# SPDX-License-Identifier: Apache-2.0
"""One fault, tried: the commands that its file asks for run until one of them fails."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Literal, Protocol, cast

from planted.faults import Fault
from planted.scratch import Scratch

Tier = Literal["gate", "all"]
Result = Literal["caught", "hung", "too slow", "survives", "does not build"]
"""`too slow`: the command does not end in time without the fault either, which decides nothing."""
CASES: Mapping[Tier, int] = {"gate": 200, "all": 10_000}
"""Of properties, as the Makefile has them."""
LAST_BYTES = 1 << 20
_TEST = re.compile(
    r"^(?:FAILED|ERROR) (\S+\.py(?:::.*?)?)(?: - .*)?$|^test (\S+) \.\.\. FAILED|^---- (\S+) stdout ----", re.MULTILINE
)
_COMPILER = re.compile(r"^\S+:\d+:\d+: (?:fatal )?error: |^error: could not compile|SyntaxError: ", re.MULTILINE)


class Step(Protocol):
    """As `tests.changed` has it."""

    @property
    def suite(self) -> str: ...
    @property
    def argv(self) -> tuple[str, ...]: ...


Ask = Callable[[Sequence[str], Tier], Sequence[Step]]
"""The commands for changed files, cheap ones first."""


@dataclass(frozen=True)
class Failure:
    """What a command that did not pass has left."""

    suite: str
    test: str
    """The first test that failed, or the last words."""
    result: Result = "caught"
    step: Step | None = None
    """The command, where it did not end."""


@dataclass(frozen=True)
class Outcome:
    """What became of a fault."""

    name: str
    room: str
    tier: Tier
    result: Result
    caught_by: list[str] = field(default_factory=list)
    """Suite and test; several where all commands ran."""
    seconds: float = 0.0
    happened: str | None = None

    @property
    def is_noticed(self) -> bool:
        return self.result in ("caught", "hung")


def asked(paths: Sequence[str], tier: Tier) -> Sequence[Step]:
    """What the checkout's own selection of tests answers."""
    steps = cast(Ask, import_module("tests.changed").steps)
    return steps(paths, tier)


def try_fault(
    scratch: Scratch, fault: Fault, tier: Tier, limit_s: float, *, ask: Ask = asked, keep_going: bool = False
) -> Outcome:
    """Plants a fault, runs what its file asks for, and takes it out again."""
    began = time.monotonic()
    steps = ask([fault.file], tier)
    with scratch.with_fault(fault):
        failures = run_steps(scratch.root, steps, tier, limit_s, keep_going=keep_going)
    seconds = round(time.monotonic() - began, 1)
    result = failures[0].result if failures else "survives"
    if failures and failures[0].step is not None:
        clean = run_step(scratch.root, failures[0].step, tier, limit_s)
        if clean is not None and clean.result == "hung":
            result = "too slow"
    words = [f"{failure.suite}: {failure.test}" for failure in failures]
    return Outcome(fault.name, fault.room, tier, result, words, seconds, fault.happened)


def run_steps(
    root: Path, steps: Sequence[Step], tier: Tier, limit_s: float, *, keep_going: bool = False
) -> list[Failure]:
    """The commands that fail: the first one, or all of them."""
    failures = []
    for step in steps:
        failure = run_step(root, step, tier, limit_s)
        if failure is not None:
            failures.append(failure)
            if not keep_going or failure.result == "does not build":
                break
    return failures


def run_step(root: Path, step: Step, tier: Tier, limit_s: float) -> Failure | None:
    """None where it passes. It has a session of its own, all of which ends with it."""
    process = subprocess.Popen(
        until_first_failure(step.argv),
        cwd=root,
        env=environment(tier),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said, _ = process.communicate()
        return Failure(step.suite, f"hung: no end within {limit_s:g} s", "hung", step)
    return None if process.returncode == 0 else failure_of(step, said)


def failure_of(step: Step, said: str) -> Failure:
    """What the output of a command that failed says."""
    said = said[-LAST_BYTES:]
    found = _TEST.search(said)
    if found is not None:
        return Failure(step.suite, found[1] or found[2] or found[3])
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith("make")]
    broken = _COMPILER.search(said)
    if broken is not None:
        return Failure(step.suite, said[broken.start() :].splitlines()[0], "does not build")
    return Failure(step.suite, lines[-1] if lines else "no words")


def until_first_failure(argv: Sequence[str]) -> list[str]:
    """Pytest stops at the first test that fails, whether a shell runs it or not."""
    found = []
    for word in argv:
        found.append(word if word == "pytest" else re.sub(r"\bpytest(?= )", "pytest -x", word))
        if word == "pytest":
            found.append("-x")
    return found


def environment(tier: Tier) -> dict[str, str]:
    """As the Makefile sets it for the tier, without what a make or a pytest that runs this has set."""
    cases = str(CASES[tier])
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "MAKE", "MFLAGS"))}
    night = {"NIGHT": "1"} if tier == "all" else {}
    return {**own, "PROPERTY_CASES": cases, "PROPTEST_CASES": cases, **night}
