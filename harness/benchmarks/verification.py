# SPDX-License-Identifier: Apache-2.0
"""How long it takes to verify 100,000 calls: of a real run, made once and kept."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from benchmarks.command import sundial
from benchmarks.context import STORE, Cannot, Context
from benchmarks.experiments import echo
from benchmarks.figure import Figure, Outcome, below

CALLS = 100_000
SIZES = (16, 1024, 2048, 4096)
SUBJECT, TARGET_S = "verification, the whole command", 60.0
MAKE_S, VERIFY_S = 3600.0, 600.0


def measure(context: Context) -> Iterator[Outcome]:
    """The whole command, Python's start included."""
    calls = context.pick(CALLS // 5, CALLS)
    run = _run_of(context, calls)
    log = context.folder / "log"

    def once() -> float:
        seconds = sundial(["verify", str(run)], deadline_s=VERIFY_S, log=log, poll_s=0.05)
        verified = json.loads((run / "verify.json").read_text())["calls"]
        if verified < calls:
            raise Cannot(f"{verified} of {calls} calls were verified")
        return seconds

    turns = context.in_turns({f"{calls:,} calls": once})
    for name, seconds in turns.found.items():
        target = below(TARGET_S * calls / CALLS)
        yield Figure(SUBJECT, name, "s", tuple(seconds), target, "UDP and TCP, 1 to 3 packets a way")
        yield Figure(SUBJECT, "calls a second", "calls/s", tuple(calls / each for each in seconds))
    yield from turns.unmeasured(SUBJECT)


def _run_of(context: Context, calls: int) -> Path:
    """A run directory with so many Sun RPC calls through a switch."""
    each = calls // (2 * len(SIZES))
    files = context.folder / "files"
    files.mkdir()
    experiment = echo(
        files,
        kind="switch",
        rate="100 Mbit/s",
        calls=each,
        transports=["udp", "tcp"],
        sizes=list(SIZES),
        warmup=0,
    )
    inputs = json.dumps([experiment.scenario_json(), experiment.topology_json()], sort_keys=True, default=str)
    run = STORE / f"calls-{hashlib.sha256(inputs.encode()).hexdigest()[:12]}"
    if (run / "run.json").is_file() and json.loads((run / "run.json").read_text())["status"] == "complete":
        return run
    shutil.rmtree(run, ignore_errors=True)
    STORE.mkdir(parents=True, exist_ok=True)
    context.say(f"making a run of {calls} calls, once")
    scenario, topology = files / "bench-echo.yaml", files / "bench-hosts.yaml"
    arguments = ["run", str(scenario), "--topology", str(topology), "--out", str(run)]
    sundial(arguments, deadline_s=MAKE_S, log=context.folder / "log", poll_s=0.2)
    return run
