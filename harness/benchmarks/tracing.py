# SPDX-License-Identifier: Apache-2.0
"""What a trace costs: the same calls traced and untraced, in turns."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from benchmarks.context import Context
from benchmarks.experiments import echo
from benchmarks.figure import Figure, Outcome, Target
from benchmarks.guests import Times, timed

SUBJECT = "tracing"
CALLS, QUICK_CALLS = 4000, 1000
RATIO = Target("at most", 1.05)
UNTRACED, TRACED = "untraced", "traced"


def measure(context: Context) -> Iterator[Outcome]:
    """Two guests that call each other without pause, with each step of Sun RPC and of both kernels stamped."""
    calls = QUICK_CALLS if context.quick else CALLS
    turns = context.in_turns({UNTRACED: _once(context, calls, "none"), TRACED: _once(context, calls, "steps")})
    yield from turns.unmeasured(SUBJECT)
    if turns.failed:
        return
    note = f"{calls} calls over UDP, 64 B, hub of 100 Mb/s"
    for name, found in turns.found.items():
        yield Figure(SUBJECT, f"processor time, {name}", "s", tuple(each.cpu_s for each in found), None, note)
    for what, of in _WAYS.items():
        pairs = zip(turns.found[TRACED], turns.found[UNTRACED], strict=True)
        ratios = tuple(of(one) / of(other) for one, other in pairs)
        yield Figure(SUBJECT, f"{what}, traced by untraced of the same turn", "", ratios, RATIO, note)


_WAYS: dict[str, Callable[[Times], float]] = {
    "processor time of machines and fabric": lambda times: times.cpu_s,
    "wall time of the run": lambda times: times.run_s,
}


def _once(context: Context, calls: int, trace: str) -> Callable[[], Times]:
    numbers = itertools.count()

    def once() -> Times:
        folder = context.folder / f"{trace}-{next(numbers)}"
        folder.mkdir()
        return timed(echo(folder, calls=calls, rate="100 Mbit/s", trace=trace), folder)

    return once
