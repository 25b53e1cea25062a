# SPDX-License-Identifier: Apache-2.0
"""From the command to the verdict: eight calls from a snapshot, verified, with each kind of report."""

from __future__ import annotations

import itertools
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.boot import has_called
from benchmarks.command import sundial
from benchmarks.context import Context
from benchmarks.figure import Figure, Outcome, below
from sundial.cli.evaluation import REPORTS

SUBJECT = "from the command to the verdict, 8 calls from a snapshot"
CALLS = ["--set", "calls=2", "--set", "sizes=64"]
"""Of each of the four workloads of quickstart."""
WALL, PROCESSOR, FIRST_CALL = below(2.0), below(2.5), below(0.5)
DEADLINE_S = 120.0


@dataclass(frozen=True)
class Run:
    """One run; processor time is that of the command, the guests and the fabric."""

    wall_s: float
    processor_s: float
    first_call_s: float


def measure(context: Context) -> Iterator[Outcome]:
    """The whole command by the kind of report, in turns."""
    numbers = itertools.count()

    def once(report: str) -> Run:
        return _once(context.folder / f"v{next(numbers)}", report, context.folder / "log")

    once("no")  # makes the snapshot and fills the caches
    variants: dict[str, Callable[[], Run]] = {report: partial(once, report) for report in REPORTS}
    turns = context.in_turns(variants)
    for report, found in turns.found.items():
        name = f"--report {report}"
        yield Figure(SUBJECT, f"{name}, wall", "s", tuple(each.wall_s for each in found), WALL)
        yield Figure(SUBJECT, f"{name}, processor", "s", tuple(each.processor_s for each in found), PROCESSOR)
    firsts = tuple(each.first_call_s for found in turns.found.values() for each in found)
    if firsts:
        yield Figure(SUBJECT, "first call since the command", "s", firsts, FIRST_CALL)
    yield from turns.unmeasured(SUBJECT)


def _once(out: Path, report: str, log: Path) -> Run:
    samples = out.with_name(f".{out.name}.partial") / "nodes" / "client" / "samples.jsonl"
    called: list[float] = []

    def look() -> None:
        if not called and has_called(samples):
            called.append(time.monotonic())

    began, before = time.monotonic(), _processor_s()
    arguments = ["run", "quickstart", *CALLS, "--report", report, "--out", str(out)]
    wall_s = sundial(arguments, deadline_s=DEADLINE_S, log=log, look=look)
    return Run(wall_s, _processor_s() - before, called[0] - began)


def _processor_s() -> float:
    """Of all children that have ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
