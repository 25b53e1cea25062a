# SPDX-License-Identifier: Apache-2.0
"""Wall seconds for a virtual second: guests at 125 mips, idle, calling without pause, and computing without pause.

Each figure is the difference of a long and a short run, so that starting, restoring and ending cancel out; what they
cost is reported by itself.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from benchmarks import free, guests
from benchmarks.context import Context
from benchmarks.experiments import CALL_BYTES, MIPS, echo
from benchmarks.figure import Figure, Outcome, Peer, Target, below

ECHO_TARGETS = {"10 Mbit/s": below(1.0), "100 Mbit/s": below(2.5)}
IDLE_TARGET = below(0.1)
UNIT = "wall s / virtual s"
GROWTH = (2, 4, 8)
"""Guests."""


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
    restore_s: float
    """Wall seconds until all machines were restored, and not running yet."""
    wall_per_call: float
    cpu_per_virtual: float
    """Processor seconds of guests and fabric together."""


def measure(context: Context) -> Iterator[Outcome]:
    """Two guests on a hub, and what lock-step costs beside the same guests running free."""
    subject = f"virtual time, two guests of {MIPS} mips on a hub"
    loads = _loads(context)
    variants: dict[str, Callable[[], Slope]] = {
        f"{load.name}, {rate}": partial(_slope, context, load, 1, "hub", rate)
        for rate in ECHO_TARGETS
        for load in loads
    }
    running: dict[str, Callable[[], float]] = {"free": partial(free.wall_per_virtual, context)}
    # One list of variants, so that free-running machines take their turn among the others.
    turns = context.in_turns({**variants, **running})
    slopes = {name: [each for each in turns.found.get(name, []) if isinstance(each, Slope)] for name in variants}
    alone = tuple(each for each in turns.found.get("free", []) if isinstance(each, float))
    for name in (each for each in variants if each in turns.found):
        yield _figure(subject, name, slopes[name], _target(name))
    for name, measured in slopes.items():
        if measured:
            values = tuple(each.cpu_per_virtual for each in measured)
            yield Figure(subject, f"{name}, processor time", "CPU s / virtual s", values)
    for rate in ECHO_TARGETS:
        if calling := slopes[f"echo, {rate}"]:
            calls = tuple(each.wall_per_call * 1e6 for each in calling)
            yield Figure(subject, f"a call of {CALL_BYTES} B, {rate}", "wall us", calls)
    restores = tuple(each.restore_s for measured in slopes.values() for each in measured)
    if restores:
        yield Figure(subject, "before that: both restored", "wall s", restores)
    yield from turns.unmeasured(subject)
    if alone:
        yield from _cost(alone, slopes)


def _cost(alone: tuple[float, ...], slopes: dict[str, list[Slope]]) -> Iterator[Outcome]:
    """Two busy guests in lock-step beside the same two running free."""
    subject = "virtual time, what lock-step costs two busy guests"
    free_running = Figure(subject, "running free, no peers and no plugin", UNIT, alone)
    yield free_running
    for rate in ECHO_TARGETS:
        if busy := slopes[f"busy, {rate}"]:
            yield _figure(subject, f"in lock-step, {rate} hub", busy, Peer("running free", free_running.median))


def measure_growth(context: Context) -> Iterator[Outcome]:
    """Two, four and eight guests in pairs through a switch."""
    subject = f"virtual time, guests of {MIPS} mips in pairs through a 100 Mbit/s switch"
    loads = _loads(context)
    turns = context.in_turns(
        {
            f"{load.name}, {count} guests": partial(_slope, context, load, count // 2, "switch", "100 Mbit/s")
            for load in loads
            for count in GROWTH
        }
    )
    for load in loads:
        names = [f"{load.name}, {count} guests" for count in GROWTH]
        figures = [_figure(subject, name, turns.found[name], None) for name in names if name in turns.found]
        for figure in figures:
            peer = None if figure is figures[0] else Peer(figures[0].name.split(", ")[1], figures[0].median)
            yield replace(figure, against=peer)
    yield from turns.unmeasured(subject)


def _loads(context: Context) -> list[Load]:
    quick = context.quick
    return [
        Load("idle", guests.idle, 1, 11 if quick else 31),
        Load("echo", guests.as_it_is, 100, 1100 if quick else 4100),
        Load("busy", guests.busy, 0.2, 0.6 if quick else 1.7),
    ]


def _slope(context: Context, load: Load, pairs: int, kind: str, rate: str) -> Slope:
    short, long = (_run(context, load, amount, pairs, kind, rate) for amount in (load.short, load.long))
    per_virtual = (long.run_s - short.run_s) / (long.virtual_s - short.virtual_s)
    cpu = (long.cpu_s - short.cpu_s) / (long.virtual_s - short.virtual_s)
    return Slope(per_virtual, short.started_s, (long.run_s - short.run_s) / (load.long - load.short), cpu)


def _run(context: Context, load: Load, amount: float, pairs: int, kind: str, rate: str) -> guests.Times:
    calling = load.change is guests.as_it_is
    with tempfile.TemporaryDirectory(dir=context.folder) as folder:
        experiment = echo(Path(folder), pairs=pairs, kind=kind, rate=rate, calls=round(amount) if calling else 1)
        linger_s = 0.001 if calling else amount
        return guests.timed(experiment, Path(folder), load.change, linger_s=linger_s)


def _target(name: str) -> Target | None:
    load, rate = name.split(", ")
    if load == "idle":
        return IDLE_TARGET
    return ECHO_TARGETS[rate] if load == "echo" else None


def _figure(subject: str, name: str, slopes: list[Slope], against: Target | Peer | None) -> Figure:
    return Figure(subject, name, UNIT, tuple(each.wall_per_virtual for each in slopes), against)
