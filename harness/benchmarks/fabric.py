# SPDX-License-Identifier: Apache-2.0
"""The fabric alone: models and captures on one core, as `sundial-fabric bench` measures them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any

from benchmarks.context import Cannot, Context
from benchmarks.figure import Figure, Outcome, Peer, at_least
from sundial.run.places import Places

SUBJECT = "fabric alone, frames handed in a second with capture, one core"
TARGET = at_least(500_000)
DEADLINE_S = 600


def measure(context: Context) -> Iterator[Outcome]:
    """The switch against its target; how it grows with ports and with the length of a full queue; link and hub."""
    frames = context.pick(100_000, 1_000_000)
    turns = context.in_turns({"fabric alone": lambda: _round(context, frames)})
    yield from turns.unmeasured(SUBJECT)
    for rounds in turns.found.values():
        yield from _figures(rounds)


def _figures(rounds: list[dict[Any, float]]) -> Iterator[Outcome]:
    values = {key: tuple(found[key] for found in rounds) for key in rounds[0]}
    base = ("switch", 2, 64, 60, "each to the next")
    for key, rates in values.items():
        kind, ports, queue, size, load = key
        name = f"{kind}, {ports} ports, {size} B"
        if load != base[4]:
            name += f", queue of {queue} always full"
        yield Figure(SUBJECT, name, "frames/s", rates, TARGET if kind == "switch" else None)
    yield from _growth(values)


def _growth(values: dict[Any, tuple[float, ...]]) -> Iterator[Outcome]:
    """What one frame costs with many ports and with a long queue, beside few and a short one."""
    ports = [key for key in values if key[0] == "switch" and key[4] == "each to the next" and key[3] == 60]
    queues = [key for key in values if key[4] != "each to the next"]
    for what, keys, place in (("ports", ports, 1), ("places in a full queue", queues, 2)):
        least, most = min(keys, key=lambda key: key[place]), max(keys, key=lambda key: key[place])
        few = Figure(SUBJECT, "", "", tuple(1e9 / rate for rate in values[least]))
        many = tuple(1e9 / rate for rate in values[most])
        name = f"a frame with {most[place]} {what}"
        yield Figure(SUBJECT, name, "ns", many, Peer(f"with {least[place]}", few.median))


def _round(context: Context, frames: int) -> dict[Any, float]:
    """One run of the fabric's own benchmark, on one core: rate by (kind, ports, queue, bytes, load)."""
    program = Places().fabric
    if not program.is_file():
        raise Cannot("sundial-fabric is not built: make setup")
    core = max(os.sched_getaffinity(0))
    done = subprocess.run(
        [str(program), "bench", "--frames", str(frames), "--directory", str(context.folder)],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )
    if done.returncode != 0:
        raise Cannot(f"sundial-fabric bench: {done.stderr.strip()}")
    return {
        (each["kind"], each["ports"], each["queue_frames"], each["frame_bytes"], each["load"]): each[
            "frames_per_second"
        ]
        for each in json.loads(done.stdout)["results"]
    }
