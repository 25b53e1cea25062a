# SPDX-License-Identifier: Apache-2.0
"""The same run again and again, once with other gates of the clock: how many of its files differ in any byte."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.context import REPEATS, Context
from benchmarks.figure import Figure, Outcome, Target
from sundial.model.load import load_experiments
from sundial.plan.build import run_plugin
from sundial.plan.domain import Plugin
from sundial.plan.request import EMBEDDED, RunRequest, Silence
from sundial.run import rig, runner

SUBJECT = "the same run again"
TOPOLOGIES = ("two-hosts-lane", "pc-hub-lane")
JITTER_NS = 20_000
"""Gates at pseudo-random times, so far apart on average, beside those that are needed."""
SCENARIO = """\
description: a few calls over UDP and TCP
topology: {topology}
seed: 1
workloads:
  - {{app: sunrpc, transports: [udp, tcp], procedures: [echo], sizes: [16, 1473, 8192], calls: 5}}
"""


def measure(context: Context) -> Iterator[Outcome]:
    """Over LAN emulation, and with a hub and a bridge in front of it."""
    for topology in TOPOLOGIES:
        scenario = context.folder / f"{topology}.yaml"
        scenario.write_text(SCENARIO.format(topology=topology))
        first: dict[str, bytes] = {}
        differing: set[str] = set()
        for number in range(REPEATS):
            context.say(f"{topology} ({number + 1} of {REPEATS})")
            # The last one has the other gates.
            files = _run(scenario, context.folder / f"{topology}-{number}", jitter=number == REPEATS - 1)
            first = first or files
            differing |= {name for name in {*first, *files} if first.get(name) != files.get(name)}
        note = f"of {len(first)}, {sum(map(len, first.values())) / 1e6:.1f} MB; one run with jitter={JITTER_NS}"
        name = f"{topology}, files that differ in {REPEATS} runs"
        yield Figure(SUBJECT, name, "files", (float(len(differing)),), Target("exactly", 0), note)


def _run(scenario: Path, out: Path, *, jitter: bool) -> dict[str, bytes]:
    """Captures, counters, samples and consoles of one run."""
    (experiment,) = load_experiments(str(scenario))
    request = RunRequest(experiment, out.parent, out, EMBEDDED, cold=False, command=tuple(sys.argv))
    with mock.patch.object(rig, "run_plugin", _jittered if jitter else run_plugin):
        runner.run(request, Silence())
    files = [*(out / "wire").rglob("*"), *(out / "nodes").glob("*/samples.jsonl"), *(out / "nodes").glob("*/*.log")]
    return {str(file.relative_to(out)): file.read_bytes() for file in files if file.is_file()}


def _jittered(*arguments: Any, **options: Any) -> Plugin:
    plugin = run_plugin(*arguments, **options)
    return replace(plugin, arguments=(*plugin.arguments, ("jitter", JITTER_NS)))
