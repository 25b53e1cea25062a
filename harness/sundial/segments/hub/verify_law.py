# SPDX-License-Identifier: Apache-2.0
"""The rules of IEEE 802.3, clause 4, checked against what was on the wire of a hub.

When a machine wanted to send is not recorded. All else follows: a station begins on a wire that it has heard idle for a
gap (4.2.3.2.1), two that begin before they know of each other collide and only they (4.2.3.2.3), both finish their
preamble and jam (4.2.3.2.4), and begin again after a whole number of slots, or when the wire is free then (4.2.3.2.5).
From when a station knows of a carrier is a parameter of the hub.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from sundial.segments.hub.model import JAM_BITS
from sundial.segments.hub.verify_csma import (
    BACKOFF_LIMIT,
    NEVER,
    PREAMBLE_BITS,
    Medium,
    Station,
    Transmissions,
    listen,
)
from sundial.verify.wire import Mask, Numbers, problem

UNPROVEN = (
    "hub: when a machine handed a frame to its adapter; so a frame may begin late on an idle wire",
    "hub: that all numbers of slots are drawn equally often",
    "hub: a collision that neither a record nor a counter shows; its frames seem to have been handed in later, by the"
    " jam and at most 2^n - 1 slots after the n-th, 1,023 in the end",
    "hub: the start, to within the time a carrier takes, of a third station that takes part in a collision",
)


def check_medium(everything: Transmissions, medium: Medium, ports: list[str]) -> Iterator[pl.DataFrame]:
    """Findings, check by check."""
    yield _overlapping(everything, medium)
    for place, port in enumerate(ports):
        station = listen(everything, medium, place)
        yield _deference(station, medium, port)
        yield _collisions(station, medium, port)
        yield _attempts(station, port)
        yield _backoff(station, doubt_of(station, everything, medium), medium, port)


def _overlapping(everything: Transmissions, medium: Medium) -> pl.DataFrame:
    """Nothing that arrives whole met anything at the hub."""
    at_hub = everything.start + medium.cables_ns[everything.station]
    order = np.argsort(at_hub, kind="stable")
    begin, end = at_hub[order], (everything.end - everything.start + at_hub)[order]
    whole = ~everything.broken[order]
    if len(order) < 2:
        return problem("overlap at the hub", np.zeros(0, np.bool_), (), (), ())
    before = np.append(NEVER, np.maximum.accumulate(end)[:-1])
    after = np.append(begin[1:], -NEVER)
    wrong = whole & ((begin < before) | (end > after))
    return problem(
        "overlap at the hub",
        wrong,
        [everything.row[order]],
        ("nothing else on the wire" for _ in range(int(wrong.sum()))),
        (
            f"{_between(start, stop)} with another transmission"
            for start, stop in zip(begin[wrong], end[wrong], strict=True)
        ),
    )


def _deference(station: Station, medium: Medium, port: str) -> pl.DataFrame:
    """No station begins once it knows of another, or within the gap."""
    own = station.own
    busy = (own.start - station.since >= medium.sense_ns) & (own.start == own.latest)
    wrong = busy | (own.latest < station.free)
    taken = (
        f"silence since {since} ns" if here else f"no start before {free} ns"
        for here, since, free in zip(busy[wrong], station.since[wrong], station.free[wrong], strict=True)
    )
    return problem(f"carrier at {port}", wrong, [own.row], taken, _starts(own.start[wrong]))


def _collisions(station: Station, medium: Medium, port: str) -> pl.DataFrame:
    """What collided met another transmission, what arrived did not; and how long a fragment is."""
    own, bit = station.own, medium.bit_ns
    met = station.overlapped
    least = np.maximum(PREAMBLE_BITS, -(-(own.seen - own.latest) // bit)) + JAM_BITS
    most = np.maximum(PREAMBLE_BITS, -(-(own.seen - own.start) // bit)) + JAM_BITS
    length = own.broken & ((own.bits < least) | (own.bits > most))
    alone = own.alone | (own.broken & ~met)
    through = ~own.broken & met
    noticed = own.broken & met & ~_noticed(station, medium)
    wrong = length | alone | through | noticed
    expected, seen = [], []
    for place in np.flatnonzero(wrong):
        if through[place] or alone[place]:
            expected.append("no other transmission" if through[place] else "another transmission that it meets")
            seen.append(_between(own.start[place], own.end[place]))
        elif length[place]:
            expected.append(f"{most[place]} bits, preamble and jam")
            seen.append(f"{own.bits[place]} bits")
        else:
            expected.append(f"noticed {medium.sense_ns} ns after the other's first bit arrives")
            seen.append(f"at {own.seen[place]} ns")
    return problem(f"collision at {port}", wrong, [own.row], expected, seen)


def _noticed(station: Station, medium: Medium) -> Mask:
    """Whether each collision was noticed as soon as its station knew of another's carrier."""
    own = station.own
    if not len(station.heard_begin):
        return np.zeros(len(own), np.bool_)
    first = np.minimum(np.searchsorted(station.heard_end, own.start, "right"), len(station.heard_begin) - 1)
    due = np.maximum(own.start, station.heard_begin[first] + medium.sense_ns)
    return np.asarray((own.latest > own.start) | (own.seen == due))


def _attempts(station: Station, port: str) -> pl.DataFrame:
    """Attempts count up from one, with the same frame (4.2.3.2.5)."""
    own = station.own
    again = ~station.first
    number, content = np.zeros_like(own.attempt), np.full_like(own.content, 0)
    number[1:], content[1:] = own.attempt[:-1], own.content[:-1]
    due = np.where(again, number + 1, 1)
    wrong = (own.broken & (own.attempt != due)) | (again & (own.content != content))
    return problem(
        f"attempts of {port}",
        wrong,
        [own.row],
        (
            f"attempt {each}{' with the same bytes' if more else ''}"
            for each, more in zip(due[wrong], again[wrong], strict=True)
        ),
        (f"attempt {each}" if each else "a frame sent" for each in own.attempt[wrong]),
    )


def doubt_of(station: Station, everything: Transmissions, medium: Medium) -> Numbers:
    """By how much the wire may have been taken longer before each of a station's transmissions than is known."""
    doubt = everything.latest - everything.start
    unsure = everything.start[doubt > 0]
    since = np.searchsorted(unsure, station.before - medium.longest_ns, "left")
    until = np.searchsorted(unsure, station.own.start, "left")
    return np.where(until > since, doubt.max(initial=0), 0)


def _backoff(station: Station, doubt_ns: Numbers, medium: Medium, port: str) -> pl.DataFrame:
    """After n collisions a station waits for 0 to 2^min(n, 10) - 1 slots, and then for the wire."""
    own, slot = station.own, medium.slot_ns
    again = np.flatnonzero(~station.first)
    before = again - 1
    jammed = own.end[before]
    jammed_late = jammed + own.latest[before] - own.start[before]
    low, high = own.start[again], own.latest[again]
    most = (1 << np.minimum(own.attempt[before], BACKOFF_LIMIT)) - 1
    fewest = np.maximum(-(-(low - jammed_late) // slot), 0)
    on_grid = (fewest <= np.minimum((high - jammed) // slot, most)) & (high > station.free[again])
    # Its slots ended while it heard others, and it began at the end of the gap.
    fewest = np.maximum(-(-(station.before[again] - jammed_late) // slot), 0)
    deferred = (high >= station.free[again]) & (low <= station.free[again] + doubt_ns[again])
    deferred &= fewest <= np.minimum((high - jammed) // slot, most)
    bad = ~on_grid & ~deferred
    wrong = np.zeros(len(own), np.bool_)
    wrong[again[bad]] = True
    expected = (
        f"0 to {slots} slots of {slot} ns after {end} ns, or the gap's end at {free} ns"
        for slots, end, free in zip(most[bad], jammed[bad], station.free[again[bad]], strict=True)
    )
    return problem(f"backoff of {port}", wrong, [own.row], expected, _starts(own.start[wrong]))


def _starts(times: Numbers) -> Iterator[str]:
    return (f"begins at {at} ns" for at in times)


def _between(begin: int, end: int) -> str:
    return f"{begin} to {end} ns"
