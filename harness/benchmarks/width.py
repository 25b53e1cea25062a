# SPDX-License-Identifier: Apache-2.0
"""From two machines to sixty-four: SSS-CORE nodes on a switch, all but one of which call one server.

What the whole command takes, its parts, and what the machines weigh, by their number; drawn to `.sundial/bench`.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.command import sundial
from benchmarks.context import STORE, Cannot, Context
from benchmarks.figure import Figure, Outcome, Peer, Target
from benchmarks.guests import weigh
from benchmarks.host import host_name
from benchmarks.quickstart import guests_of
from benchmarks.width_drawing import Point, draw_width

COUNTS = (2, 4, 8, 16, 33, 64)
"""Machines, one of them the server."""
QUICK_COUNTS = (2, 8)
TRANSPORTS = ("mbcf3", "udp")
CALLS = 20
SUBJECT = f"SSS-CORE nodes on a 100 Mbit/s switch, {CALLS} calls of one server by each over {' and '.join(TRANSPORTS)}"
DEADLINE_S = 1200.0
WEIGH_S = 0.5
DRAWING = "width"
STEPS = ("running ", "collecting samples", "verifying ")
"""What the command says when its parts begin."""


@dataclass
class Wide:
    """One run."""

    machines: int
    wall_s: float = 0.0
    began_s: list[float] = field(default_factory=list)
    """When each of STEPS began, in seconds after the command."""
    virtual_s: float = 0.0
    calls: int = 0
    mismatches: int = 0
    pss: int = 0
    """The most that all QEMUs together weighed, in bytes, shared pages by share."""

    @property
    def start_s(self) -> float:
        """Until all machines were there and began to run."""
        return self.began_s[0]

    @property
    def run_s(self) -> float:
        """While they ran, to the end of the last."""
        return self.began_s[1] - self.began_s[0]

    @property
    def after_s(self) -> float:
        """Verification and report."""
        return self.wall_s - self.began_s[2]


def measure(context: Context) -> Iterator[Outcome]:
    """Every number of machines in turns."""
    counts = QUICK_COUNTS if context.quick else COUNTS
    numbers = itertools.count()
    turns = context.in_turns({_name(count): partial(_once, context, count, numbers) for count in counts})
    for runs in turns.found.values():
        yield from _figures(runs, turns.found.get(_name(counts[0]), []))
    yield from turns.unmeasured(SUBJECT)
    if turns.found:
        STORE.mkdir(parents=True, exist_ok=True)
        draw_width(STORE, DRAWING, [_point(runs) for runs in turns.found.values()], _where(context))
        context.say(f"drawn: {STORE / DRAWING}.svg")


def _where(context: Context) -> str:
    """The host, the day, and how quiet it was then."""
    quiet = None if context.meter is None else context.meter.said
    return f"{host_name()}\n{', '.join(filter(None, (time.strftime('%Y-%m-%d'), quiet)))}"


def _name(machines: int) -> str:
    return f"{machines} machines"


def _figures(runs: Sequence[Wide], fewest: Sequence[Wide]) -> Iterator[Figure]:
    name, calls = _name(runs[0].machines), runs[0].calls
    mismatches = tuple(float(run.mismatches) for run in runs)
    yield Figure(SUBJECT, f"{name}: mismatches", "", mismatches, Target("exactly", 0), f"{calls} calls", anywhere=True)
    point = _point(fewest) if fewest and fewest is not runs else None
    for what, unit, values, peer in (
        ("the whole command", "s", [run.wall_s for run in runs], None if point is None else point.wall_s),
        ("until they run", "s", [run.start_s for run in runs], None if point is None else point.start_s),
        ("the run", "s", [run.run_s for run in runs], None if point is None else point.run_s),
        ("the run", "wall s / virtual s", [run.run_s / run.virtual_s for run in runs], None),
        ("the run", "wall ms a call", [run.run_s / run.calls * 1e3 for run in runs], None),
        ("verification and report", "s", [run.after_s for run in runs], None if point is None else point.after_s),
    ):
        against = None if peer is None else Peer(_name(fewest[0].machines), peer)
        yield Figure(SUBJECT, f"{name}: {what}", unit, tuple(values), against)
    weights = tuple(run.pss / 1e6 for run in runs)
    yield Figure(SUBJECT, f"{name}: all QEMUs, Pss", "MB", weights, anywhere=True)
    each = tuple(weight / run.machines for weight, run in zip(weights, runs, strict=True))
    yield Figure(SUBJECT, f"{name}: a machine, Pss", "MB", each, anywhere=True)


def _point(runs: Sequence[Wide]) -> Point:
    def median(values: list[float]) -> float:
        return Figure("", "", "", tuple(values)).median

    return Point(
        runs[0].machines,
        wall_s=median([run.wall_s for run in runs]),
        start_s=median([run.start_s for run in runs]),
        run_s=median([run.run_s for run in runs]),
        after_s=median([run.after_s for run in runs]),
        pss_mb=median([run.pss / 1e6 for run in runs]),
    )


def _once(context: Context, machines: int, numbers: Iterator[int]) -> Wide:
    folder = context.folder / f"w{next(numbers)}"
    folder.mkdir()
    scenario, log, out = _written(folder, machines), folder / "log", folder / "run"
    found = Wide(machines)
    began, weighed = time.monotonic(), 0.0

    def look() -> None:
        nonlocal weighed
        _note(found, log, time.monotonic() - began)
        if time.monotonic() - weighed > WEIGH_S and len(found.began_s) == 1:
            found.pss = max(found.pss, sum(map(_weight, guests_of(out))))
            weighed = time.monotonic()

    found.wall_s = sundial(
        ["run", str(scenario), "--out", str(out)], deadline_s=DEADLINE_S, log=log, look=look, poll_s=0.02, accept=(0, 1)
    )
    if len(found.began_s) < len(STEPS) or not found.pss:
        raise Cannot(f"the parts of a run of {machines} machines were not seen")
    found.virtual_s = json.loads((out / "run.json").read_text())["time"]["virtual_ns"] / 1e9
    verified = json.loads((out / "verify.json").read_text())
    found.calls, found.mismatches = int(verified["calls"]), int(verified["mismatches"])
    wanted = (machines - 1) * len(TRANSPORTS) * CALLS
    if found.calls < wanted:
        raise Cannot(f"{found.calls} of {wanted} calls were verified")
    return found


def _note(found: Wide, log: Path, now_s: float) -> None:
    """Which of STEPS the command has begun by now."""
    with contextlib.suppress(OSError):
        lines = log.read_text(errors="replace").splitlines()
        for step in STEPS[len(found.began_s) :]:
            if not any(line.startswith(step) for line in lines):
                return
            found.began_s.append(now_s)


def _weight(pid: int) -> int:
    try:
        return weigh(pid)[0]
    except OSError:
        return 0


def _written(folder: Path, machines: int) -> Path:
    names = [f"n{number}" for number in range(1, machines + 1)]
    topology = {
        "description": f"{machines} nodes on a switch",
        "defaults": {"image": "ssscore"},
        "machines": {
            name: {"interfaces": {"eth0": {"address": f"10.0.0.{place}/24"}}} for place, name in enumerate(names, 1)
        },
        "segments": {"lan": {"kind": "switch", "rate": "100 Mbit/s", "ports": [f"{name}:eth0" for name in names]}},
    }
    calls = {"app": "sunrpc", "transports": list(TRANSPORTS), "procedures": ["echo"], "sizes": [64], "calls": CALLS}
    workload = {**calls, "warmup": 0, "clients": names[1:], "server": names[0]}
    scenario = {"description": "All call one", "topology": "many.yaml", "workloads": [workload]}
    # JSON is YAML too.
    (folder / "many.yaml").write_text(json.dumps(topology))
    path = folder / "all-call-one.yaml"
    path.write_text(json.dumps(scenario))
    return path
