# SPDX-License-Identifier: Apache-2.0
"""Wall seconds for a virtual second: guests at 125 mips, idle, calling without pause, and computing without pause.

Each figure is the difference of a long and a short run, so that starting, restoring and ending cancel out; what they
cost is reported by itself. What is promised are ratios to two guests that run free in the same turn, and counts.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from benchmarks import free, guests
from benchmarks.context import Cannot, Context, Turns
from benchmarks.counts import Counts
from benchmarks.experiments import CALL_BYTES, MIPS, echo
from benchmarks.figure import Figure, Outcome, Peer, Target, Unmeasured, at_most, below
from benchmarks.hogs import COUNT as HOGS
from benchmarks.hogs import busy_loops

RATES = ("10 Mbit/s", "100 Mbit/s")
TARGETS = {
    "echo, 10 Mbit/s": 1.5,
    "echo, 100 Mbit/s": 2.5,
    "busy, 10 Mbit/s": 1.2,
    "busy, 100 Mbit/s": 1.8,
    "echo, 8 guests": 8.0,
    "echo, 16 guests": 18.0,
}
"""At most so many times what two guests take that run free."""
LOADED = 2.0
"""So much more is allowed beside busy loops."""
IDLE_TARGET = below(0.1)
SLEEPS, GATES, TRANSLATIONS = at_most(4), at_most(1.5), below(0.05)
UNIT = "wall s / virtual s"
GROWTH = (2, 4, 8, 16)
"""Guests."""
PROMISED = (8, 16)
"""Of these a ratio is."""
BESIDE = f" beside {HOGS} busy loops"
FREE_BESIDE = f"running free{BESIDE}"
INSTRUCTION_NS = 1000 / MIPS


@dataclass(frozen=True)
class Load:
    """What the guests do, and for how long in a short and in a long run (virtual seconds, or calls)."""

    name: str
    change: guests.Change
    short: float
    long: float


@dataclass(frozen=True)
class Slope:
    """What a difference of two runs says."""

    wall_per_virtual: float
    restore_s: float = 0.0
    """Wall seconds until all machines were restored, and not running yet."""
    wall_per_call: float = 0.0
    cpu_per_virtual: float = 0.0
    """Processor seconds of guests and fabric together."""
    calls: float = 0.0
    counts: Counts = field(default_factory=Counts)
    lookahead_ns: float | None = None


Variants = dict[str, Callable[[], Slope]]


def measure(context: Context) -> Iterator[Outcome]:
    """Two guests on a hub: wall seconds, what they are by guests that run free, and counts."""
    subject = f"virtual time, two guests of {MIPS} mips on a hub"
    loads = _loads(context)
    alone: Variants = {
        f"{load.name}, {rate}": partial(_slope, context, load, 1, "hub", rate) for rate in RATES for load in loads
    }
    turns = context.in_turns({**alone, **_beside({name: alone[name] for name in alone if name in TARGETS})})
    found = {name: turns.found[name] for name in alone if name in turns.found}
    for name, slopes in found.items():
        yield _figure(subject, name, slopes, IDLE_TARGET if name.startswith("idle") else None)
    for name, slopes in found.items():
        values = tuple(each.cpu_per_virtual for each in slopes)
        yield Figure(subject, f"{name}, processor time", "CPU s / virtual s", values)
    for rate in RATES:
        if calling := found.get(f"echo, {rate}"):
            calls = tuple(each.wall_per_call * 1e6 for each in calling)
            yield Figure(subject, f"a call of {CALL_BYTES} B, {rate}", "wall us", calls)
    if restores := tuple(each.restore_s for slopes in found.values() for each in slopes):
        yield Figure(subject, "before that: both restored", "wall s", restores)
    yield from turns.unmeasured(subject)
    yield from _ratios("virtual time, two guests on a hub by two busy guests that run free", turns)
    yield from _counts("virtual time, two guests on a hub, counts", found)


def measure_growth(context: Context) -> Iterator[Outcome]:
    """Two guests and more in pairs through a switch."""
    subject = f"virtual time, guests of {MIPS} mips in pairs through a 100 Mbit/s switch"
    loads = _loads(context)
    alone: Variants = {
        f"{load.name}, {count} guests": partial(_slope, context, load, count // 2, "switch", "100 Mbit/s")
        for load in loads
        for count in GROWTH
    }
    promised = [f"echo, {count} guests" for count in PROMISED]
    turns = context.in_turns({**alone, **_beside({name: alone[name] for name in promised})})
    for load in loads:
        names = [f"{load.name}, {count} guests" for count in GROWTH]
        figures = [_figure(subject, name, turns.found[name], None) for name in names if name in turns.found]
        for figure in figures:
            peer = None if figure is figures[0] else Peer(figures[0].name.split(", ")[1], figures[0].median)
            yield replace(figure, against=peer)
    yield from turns.unmeasured(subject)
    yield from _ratios("virtual time, guests through a switch by two busy guests that run free", turns)
    found = {name: turns.found[name] for name in alone if name in turns.found}
    yield from _counts("virtual time, guests through a switch, counts", found)


def _beside(variants: Variants) -> Variants:
    """The same with busy loops beside them, and guests that run free beside these, too."""

    def loaded(measure_one: Callable[[], Slope]) -> Slope:
        with busy_loops():
            return measure_one()

    beside = {f"{name}{BESIDE}": partial(loaded, variant) for name, variant in variants.items()}
    return {**beside, FREE_BESIDE: partial(loaded, lambda: Slope(free.wall_per_virtual()))}


def _ratios(subject: str, turns: Turns[Slope]) -> Iterator[Outcome]:
    """Each turn's wall time by that of the guests which ran free in the same turn."""
    alone = [each for each in turns.free if each is not None]
    if len(alone) < len(turns.free) or not alone:
        yield Unmeasured(subject, "all ratios", "guests could not run free in every turn")
        return
    yield Figure(subject, "two busy guests that run free", UNIT, tuple(alone))
    beside = [each.wall_per_virtual for each in turns.found.get(FREE_BESIDE, [])]
    if beside:
        yield Figure(subject, f"the same{BESIDE}", UNIT, tuple(beside))
    for name, most in TARGETS.items():
        if slopes := turns.found.get(name):
            yield Figure(subject, name, "times", _by(slopes, alone), at_most(most))
    for name, most in TARGETS.items():
        if slopes := turns.found.get(f"{name}{BESIDE}"):
            target = at_most(LOADED * most)
            yield Figure(subject, f"{name}{BESIDE}, by free without them", "times", _by(slopes, alone), target)
            if beside:
                yield Figure(subject, f"{name}{BESIDE}, by free beside them", "times", _by(slopes, beside), target)


def _by(slopes: Sequence[Slope], running_free: Sequence[float]) -> tuple[float, ...]:
    return tuple(slope.wall_per_virtual / each for slope, each in zip(slopes, running_free, strict=True))


def _counts(subject: str, found: dict[str, list[Slope]]) -> Iterator[Outcome]:
    """Without those that guests only sleep in: they have no gates to speak of."""
    for name, slopes in found.items():
        if name.startswith("idle"):
            continue
        calling = name.startswith("echo")
        counted: list[tuple[str, str, list[float | None], Target | None]] = [
            ("sleeping waits", "a call", [each.counts.sleeps_by(each.calls) for each in slopes], SLEEPS),
            (
                "gates",
                "a quantum",
                [each.counts.gates_by_quanta(INSTRUCTION_NS, each.lookahead_ns) for each in slopes],
                GATES,
            ),
            ("gates that left the CPU's loop", "a gate", [each.counts.exits_by_gates() for each in slopes], None),
            ("blocks translated", "a gate", [each.counts.translations_by_gates() for each in slopes], TRANSLATIONS),
        ]
        for what, unit, values, target in counted if calling else counted[1:]:
            known = tuple(value for value in values if value is not None)
            if known:
                yield Figure(subject, f"{name}: {what}", unit, known, target, anywhere=True)


def _loads(context: Context) -> list[Load]:
    quick = context.quick
    return [
        Load("idle", guests.idle, 1, 11 if quick else 31),
        Load("echo", guests.as_it_is, 100, 1100 if quick else 4100),
        Load("busy", guests.busy, 0.2, 0.6 if quick else 1.7),
    ]


def _slope(context: Context, load: Load, pairs: int, kind: str, rate: str) -> Slope:
    short, long = (_run(context, load, amount, pairs, kind, rate) for amount in (load.short, load.long))
    virtual_s, amount = long.virtual_s - short.virtual_s, load.long - load.short
    if virtual_s <= 0:
        raise Cannot("the long run is not longer than the short one")
    return Slope(
        wall_per_virtual=(long.run_s - short.run_s) / virtual_s,
        restore_s=short.started_s,
        wall_per_call=(long.run_s - short.run_s) / amount,
        cpu_per_virtual=(long.cpu_s - short.cpu_s) / virtual_s,
        calls=amount * pairs,
        counts=long.counts.less(short.counts),
        lookahead_ns=long.lookahead_ns,
    )


def _run(context: Context, load: Load, amount: float, pairs: int, kind: str, rate: str) -> guests.Times:
    calling = load.change is guests.as_it_is
    with tempfile.TemporaryDirectory(dir=context.folder) as folder:
        experiment = echo(Path(folder), pairs=pairs, kind=kind, rate=rate, calls=round(amount) if calling else 1)
        linger_s = 0.001 if calling else amount
        return guests.timed(experiment, Path(folder), load.change, linger_s=linger_s)


def _figure(subject: str, name: str, slopes: list[Slope], against: Target | Peer | None) -> Figure:
    return Figure(subject, name, UNIT, tuple(each.wall_per_virtual for each in slopes), against)
