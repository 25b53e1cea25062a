# SPDX-License-Identifier: Apache-2.0
"""From the command, and from the start of the first machine, to the end of the first call: two guests on a hub."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.command import sundial
from benchmarks.context import Cannot, Context
from benchmarks.experiments import Clock, echo
from benchmarks.figure import Figure, Outcome, below

SUBJECT = "boot, two guests, to the end of the first call"
COLD, RESTORED = below(8.0), below(1.0)
DEADLINE_S = 180.0


@dataclass(frozen=True)
class Moments:
    """Wall seconds to the end of the first call."""

    from_command: float
    from_machine: float


def measure(context: Context) -> Iterator[Outcome]:
    """Cold under both clocks, and restored from a snapshot, which exists already."""
    numbers = itertools.count()

    def once(clock: Clock, cold: bool) -> Moments:
        return _once(context.folder / f"b{next(numbers)}", clock, cold)

    once("virtual", cold=False)  # makes the snapshot and fills the caches, as every run before this one has
    turns = context.in_turns(
        {
            "cold, virtual clock": lambda: once("virtual", cold=True),
            "cold, real clock": lambda: once("real", cold=True),
            "from a snapshot": lambda: once("virtual", cold=False),
        }
    )
    for name, moments in turns.found.items():
        target = RESTORED if "snapshot" in name else COLD
        yield Figure(SUBJECT, f"{name}, since its machines were started", "s", _column(moments, "from_machine"), target)
        yield Figure(SUBJECT, f"{name}, since the command", "s", _column(moments, "from_command"), target)
    yield from turns.unmeasured(SUBJECT)


def _once(folder: Path, clock: Clock, cold: bool) -> Moments:
    folder.mkdir()
    echo(folder, clock=clock, warmup=0)
    out = folder / "run"
    partial = folder / ".run.partial" / "nodes" / "client0"
    called: list[float] = []

    def look() -> None:
        if not called and has_called(partial / "samples.jsonl"):
            called.append(time.time())
            started.append((partial / "domain.xml").stat().st_mtime)

    started: list[float] = []
    began = time.time()
    # Under the real clock guests always boot.
    options = ["--cold"] if cold and clock == "virtual" else []
    scenario, topology = folder / "bench-echo.yaml", folder / "bench-hosts.yaml"
    arguments = ["run", str(scenario), "--topology", str(topology), "--out", str(out), *options]
    # In real time a client may ask before its server is up; verification of that says nothing of boot times.
    accept = (0, 1) if clock == "real" else (0,)
    sundial(arguments, deadline_s=DEADLINE_S, log=folder / "log", look=look, accept=accept)
    if not called:
        raise Cannot("the first call was not seen")
    return Moments(called[0] - began, called[0] - started[0])


def has_called(samples: Path) -> bool:
    """A sample is there: rows are arrays, everything else is objects."""
    try:
        return "\n[" in samples.read_text(errors="replace")
    except OSError:
        return False


def _column(moments: list[Moments], name: str) -> tuple[float, ...]:
    return tuple(getattr(each, name) for each in moments)
