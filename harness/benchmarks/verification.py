# SPDX-License-Identifier: Apache-2.0
"""Time and memory of verification: of 100,000 calls of a real run, made once and kept, and of a capture from elsewhere.

The capture has as many frames as `SUNDIAL_BENCH_FRAMES` says: 13,000,000 are 1.2 GB, and take an hour or two.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from benchmarks.captures import write_small_frames
from benchmarks.command import sundial
from benchmarks.context import STORE, Cannot, Context
from benchmarks.experiments import echo
from benchmarks.figure import Figure, Outcome, below
from benchmarks.memory import Watch

CALLS = 100_000
SIZES = (16, 1024, 2048, 4096)
SUBJECT, TARGET_S = "verification, the whole command", 60.0
TARGET_MB = 1000.0
MAKE_S, VERIFY_S = 3600.0, 600.0
FRAMES = 1_000_000
CAPTURE_SUBJECT, CAPTURE_MB = "verification of a capture of 60-byte frames", 4000.0
CAPTURE_S = 6 * 3600.0


def measure(context: Context) -> Iterator[Outcome]:
    """The whole command, Python's start included."""
    calls = context.pick(CALLS // 5, CALLS)
    run = _run_of(context, calls)
    log = context.folder / "log"

    peaks: list[float] = []

    def once() -> float:
        watch = Watch()
        seconds = sundial(["verify", str(run)], deadline_s=VERIFY_S, log=log, poll_s=0.05, look=watch.look)
        peaks.append(watch.peak_bytes / 1e6)
        verified = json.loads((run / "verify.json").read_text())["calls"]
        if verified < calls:
            raise Cannot(f"{verified} of {calls} calls were verified")
        return seconds

    turns = context.in_turns({f"{calls:,} calls": once})
    for name, seconds in turns.found.items():
        target = below(TARGET_S * calls / CALLS)
        yield Figure(SUBJECT, name, "s", tuple(seconds), target, "UDP and TCP, 1 to 3 packets a way")
        yield Figure(SUBJECT, "calls a second", "calls/s", tuple(calls / each for each in seconds))
        yield Figure(SUBJECT, "peak memory, all processes", "MB", tuple(peaks), below(TARGET_MB), anywhere=True)
    yield from turns.unmeasured(SUBJECT)


def measure_capture(context: Context) -> Iterator[Outcome]:
    """`sundial verify --pcap` of small echoes over UDP; once, since it takes long."""
    frames = int(os.environ.get("SUNDIAL_BENCH_FRAMES") or context.pick(FRAMES // 10, FRAMES))
    file, watch = context.folder / "small.pcapng", Watch()
    write_small_frames(file, frames)
    arguments = ["verify", "--pcap", str(file), "--protocol", "raw-udp"]
    seconds = sundial(arguments, deadline_s=CAPTURE_S, log=context.folder / "log", poll_s=0.05, look=watch.look)
    name, peak_mb = f"{frames:,} frames", watch.peak_bytes / 1e6
    yield Figure(CAPTURE_SUBJECT, name, "s", (seconds,))
    yield Figure(CAPTURE_SUBJECT, "peak memory, all processes", "MB", (peak_mb,), below(CAPTURE_MB), anywhere=True)


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
