# SPDX-License-Identifier: Apache-2.0
"""The mutation gate as a whole: every damage to every stored run, and how many verification does not notice."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.context import Context
from benchmarks.figure import Figure, Outcome, Target, Unmeasured
from mutation import allowed, runs
from mutation.gate import CRASHED, PASSED, all_damages, judge_all, sample

SUBJECT = "damages that verification does not notice"
QUICK = 40
SEED = 1


def measure(context: Context) -> Iterator[Outcome]:
    """One figure a run; then the patterns of the allow-list under which nothing passed."""
    entries = allowed.load()
    passed: list[tuple[str, str]] = []
    for name in runs.stored():
        run = runs.recorded(name, context.folder)
        every = all_damages(run)
        outcomes = list(judge_all(run, sample(every, context.pick(QUICK, len(every)), SEED), SEED))
        here = [(name, outcome.damage) for outcome in outcomes if outcome.result in (PASSED, CRASHED)]
        passed += here
        missed = [each for each in here if not allowed.is_allowed(entries, *each)]
        for _, damage in missed:
            context.say(f"{name}: survives: {damage}")
        note = f"of {len(outcomes)}; {len(here) - len(missed)} allowed"
        yield Figure(SUBJECT, name, "damages", (float(len(missed)),), Target("exactly", 0), note)
    for pattern in [] if context.pick(True, False) else allowed.unused(entries, passed):
        yield Unmeasured(SUBJECT, "allow-list", f"nothing passes under {pattern!r}")
