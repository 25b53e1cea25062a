# SPDX-License-Identifier: Apache-2.0
"""What a backplane costs the host: a store that its adapter sees, and two guests that poll all the time.

Each figure is the difference of a long and a short run, so that starting, restoring and ending cancel out.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.context import Cannot, Context
from benchmarks.experiments import BACKPLANE_MIPS, over_backplane
from benchmarks.figure import Figure, Outcome, at_most, below
from benchmarks.guests import Times, timed

SUBJECT = "backplane"
STORE_US, POLLING = below(0.5), at_most(4.0)
BYTES, WORD = 65536, 8
STORES = BYTES // WORD
"""Of a transfer by automatic update; a deliberate one is started by one."""
AUTOMATIC, DELIBERATE = "automatic update", "deliberate update"
OPERATIONS = {AUTOMATIC: "au-combined", DELIBERATE: "du"}
UNHURRIED: Mapping[str, Any] = {
    "word_latency": "1 ms", "link_rate": "4 Gbit/s", "dma_rate": "4 Gbit/s", "combine_bytes": 4096,
}  # fmt: skip
"""Few gates, few packets, and no waiting: what is left of an automatic update are its stores."""
UNIT = "wall s / virtual s"


@dataclass(frozen=True)
class Slope:
    """What a long run took more than a short one."""

    wall_s: float
    cpu_s: float
    virtual_s: float
    calls: int


def measure(context: Context) -> Iterator[Outcome]:
    """Both."""
    yield from _stores(context)
    yield from _polling(context)


def _stores(context: Context) -> Iterator[Outcome]:
    """The same bytes twice: copied into bound memory word by word, and read from memory by the adapter. Beside the
    stores the difference has the loop around them, and the peer that polls meanwhile."""
    short, long = context.pick(20, 50), context.pick(120, 450)
    common = {"app": "vmmc", "modes": ["stream"], "sizes": [BYTES], "warmup": 0}
    turns = context.in_turns(
        {
            name: partial(_slope, context, short, long, UNHURRIED, {**common, "operations": [operation]})
            for name, operation in OPERATIONS.items()
        }
    )
    yield from turns.unmeasured(SUBJECT)
    if turns.failed:
        return
    each = {name: [slope.cpu_s / slope.calls for slope in slopes] for name, slopes in turns.found.items()}
    note = f"{BYTES} B in {STORES} stores, combined"
    for name, values in each.items():
        yield Figure(SUBJECT, f"processor time of {BYTES} B by {name}", "ms", tuple(1e3 * value for value in values))
    pairs = list(zip(each[AUTOMATIC], each[DELIBERATE], strict=True))
    above = tuple(1e6 * (one - other) / STORES for one, other in pairs)
    yield Figure(SUBJECT, "a store into bound memory, above the same bytes without", "us", above, STORE_US, note)
    walls = zip(*([slope.wall_s for slope in turns.found[name]] for name in (AUTOMATIC, DELIBERATE)), strict=True)
    stores = STORES * (long - short)
    waited = tuple(1e6 * (one - other) / stores for one, other in walls)
    yield Figure(SUBJECT, "the same, from start to end", "wall us", waited, note=note)
    yield Figure(SUBJECT, f"{AUTOMATIC} by {DELIBERATE} of the same turn", "times", tuple(a / b for a, b in pairs))


def _polling(context: Context) -> Iterator[Outcome]:
    """Null calls of ShrimpRPC without pause: both ends look at memory all the time, and no machine ever sleeps."""
    short, long = context.pick(1000, 3000), context.pick(9000, 33000)
    calls = {"app": "shrimprpc", "procedures": ["null"], "sizes": [0], "warmup": 0}
    name = f"two guests of {BACKPLANE_MIPS} mips that poll"
    turns = context.in_turns({name: partial(_slope, context, short, long, {}, calls)})
    yield from turns.unmeasured(SUBJECT)
    slopes = turns.found.get(name, [])
    if not slopes:
        return
    walls = [slope.wall_s / slope.virtual_s for slope in slopes]
    note = "null calls of ShrimpRPC, 4.25 us"
    yield Figure(SUBJECT, name, UNIT, tuple(walls), POLLING, note)
    yield Figure(SUBJECT, "a null call", "wall us", tuple(1e6 * slope.wall_s / slope.calls for slope in slopes))
    alone = [each for each in turns.free if each is not None]
    if len(alone) == len(walls):
        yield Figure(SUBJECT, "two busy guests that run free", UNIT, tuple(alone))
        ratios = tuple(wall / free for wall, free in zip(walls, alone, strict=True))
        yield Figure(SUBJECT, f"{name}, by free", "times", ratios)


def _slope(context: Context, short: int, long: int, backplane: Mapping[str, Any], workload: Mapping[str, Any]) -> Slope:
    less, more = (_run(context, calls, backplane, workload) for calls in (short, long))
    if more.virtual_s <= less.virtual_s:
        raise Cannot("the long run is not longer than the short one")
    return Slope(more.run_s - less.run_s, more.cpu_s - less.cpu_s, more.virtual_s - less.virtual_s, long - short)


def _run(context: Context, calls: int, backplane: Mapping[str, Any], workload: Mapping[str, Any]) -> Times:
    with tempfile.TemporaryDirectory(dir=context.folder) as folder:
        return timed(over_backplane(Path(folder), backplane, **workload, calls=calls), Path(folder))
