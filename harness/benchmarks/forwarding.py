# SPDX-License-Identifier: Apache-2.0
"""Forwarding in real time: sundial-fabric beside vde_switch and beside wirefilter, unshaped and delayed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import carriers
from benchmarks.context import Context
from benchmarks.figure import Figure, Outcome, Peer, at_least, below, percentile
from benchmarks.generator import Flight, fly

DELAY_MS = 10
LONGEST, SHORTEST = 1514, 60
WINDOW, FAR_WINDOW = 64, 2048
"""Frames on their way at once: enough to keep a wire busy, and to keep one of 10 ms busy."""
PING_NS = 1_000_000

Carrier = Callable[[Path], AbstractContextManager[carriers.Stations]]

PLAIN: dict[str, Carrier] = {
    "sundial switch": carriers.fabric_switch,
    "vde_switch": carriers.vde_switch,
    "sundial link": carriers.fabric_link,
    "wirefilter": carriers.wirefilter,
}
DELAYED: dict[str, Carrier] = {
    "sundial link": partial(carriers.fabric_link, delay_ns=DELAY_MS * 1_000_000),
    "wirefilter": partial(carriers.wirefilter, delay_ms=DELAY_MS),
}
PEERS = {"sundial switch": "vde_switch", "sundial link": "wirefilter"}


def measure(context: Context) -> Iterator[Outcome]:
    """Throughput in full windows, one-way times at 1000 frames a second."""
    yield from _compare(context, "unshaped", PLAIN, WINDOW)
    yield from _compare(context, f"{DELAY_MS} ms delay", DELAYED, FAR_WINDOW, nominal_ns=DELAY_MS * 1_000_000)


def _compare(
    context: Context, shape: str, carrying: dict[str, Carrier], window: int, nominal_ns: int = 0
) -> Iterator[Outcome]:
    subject = f"real-time forwarding, {shape}"
    count, pings = context.pick(20_000, 100_000), context.pick(500, 3000)
    wanted: dict[str, Callable[[], Flight]] = {}
    for name, carrier in carrying.items():
        wanted[f"{name}, {LONGEST} B"] = _flight(context, carrier, size=LONGEST, count=count, window=window)
        wanted[f"{name}, {SHORTEST} B"] = _flight(context, carrier, size=SHORTEST, count=count, window=window)
        wanted[f"{name}, pings"] = _flight(context, carrier, size=SHORTEST, count=pings, interval_ns=PING_NS)
    turns = context.in_turns(wanted)
    for name, flights in turns.found.items():
        yield from _figures(subject, name, flights, turns.found, nominal_ns)
    yield from turns.unmeasured(subject)


def _figures(
    subject: str, name: str, flights: list[Flight], all_flights: dict[str, list[Flight]], nominal_ns: int
) -> Iterator[Outcome]:
    carrier, _, what = name.rpartition(", ")
    peer = PEERS.get(carrier)
    others = all_flights.get(f"{peer}, {what}") if peer else None

    def figure(title: str, unit: str, value: Callable[[Flight], float]) -> Figure:
        against = None
        if peer is not None and others is not None:
            against = Peer(peer, Figure("", "", "", tuple(map(value, others))).median)
        return Figure(subject, f"{carrier}: {title}", unit, tuple(map(value, flights)), against, _note(flights))

    if what != "pings":
        size = int(what.split()[0])
        yield figure(f"frames of {what}", "frames/s", lambda flight: flight.frames_per_second)
        if size == LONGEST:
            yield figure("throughput", "Mbit/s", lambda flight: flight.frames_per_second * size * 8 / 1e6)
        return
    late = "lateness" if nominal_ns else "one-way time"
    for percent in (50, 99):
        yield figure(f"{late}, p{percent}", "us", partial(_late_us, percent=percent, nominal_ns=nominal_ns))
    if carrier.startswith("sundial"):
        half = tuple(_late_us(flight, percent=50, nominal_ns=nominal_ns) / 1000 for flight in flights)
        yield Figure(subject, f"{carrier}: median lateness", "ms", half, below(0.2))
    early = figure("earliest frame, after its time", "us", lambda flight: (min(flight.latency_ns) - nominal_ns) / 1000)
    if nominal_ns:
        # Never means never: the worst repeat counts.
        worst = min(early.values)
        values = (worst,) if carrier.startswith("sundial") else early.values
        against = at_least(0) if carrier.startswith("sundial") else None
        yield Figure(subject, early.name, "us", values, against, early.note)


def _late_us(flight: Flight, *, percent: float, nominal_ns: int) -> float:
    return (percentile(flight.latency_ns, percent) - nominal_ns) / 1000


def _note(flights: list[Flight]) -> str:
    lost = max(flight.loss for flight in flights)
    return f"up to {lost:.1%} lost" if lost else ""


def _flight(context: Context, carrier: Carrier, **how: Any) -> Callable[[], Flight]:
    """One flight over a fresh carrier."""

    def measure_once() -> Flight:
        with tempfile.TemporaryDirectory(dir=context.folder) as folder, carrier(Path(folder)) as stations:
            return fly(stations, **how)

    return measure_once
