# SPDX-License-Identifier: Apache-2.0
"""Frames that a device hands in at a hub: each begins as soon as it is the first in the ring and the wire was heard
idle for a gap (IEEE 802.3, 4.2.3.2.1); what follows a collision is `verify_law.py`'s matter."""

from __future__ import annotations

import numpy as np
import polars as pl

from sundial.segments.hub.model import Hub
from sundial.segments.hub.verify_csma import ATTEMPTS, Medium, Station, Transmissions, listen
from sundial.segments.hub.verify_law import doubt_of
from sundial.verify.offered import check_places
from sundial.verify.wire import Passages, Wire, problem


def check_handed_in(
    segment: Hub, wire: Wire, port: str, handed_in: Passages, everything: Transmissions, medium: Medium
) -> list[pl.DataFrame]:
    """`everything` that was on the wire."""
    station = listen(everything, medium, segment.ports.index(port))
    own, first = station.own, np.flatnonzero(station.first)
    left_ns = own.end[~own.broken | (own.attempt >= ATTEMPTS)]
    ring, inside = check_places(segment, wire, port, handed_in, left_ns)
    both = min(len(first), len(inside))
    begun, given = first[:both], inside.take(np.arange(both))
    ready = given.time_ns.copy()
    ready[1:] = np.maximum(ready[1:], left_ns[: both - 1]) if both else ready[1:]
    found = [ring, _others(port, station, first, inside)]
    due = np.maximum(ready, station.free[begun])
    # Had it been ready before it knew of what came before, it would have begun then.
    chance = ready - station.before[begun] < medium.sense_ns
    due = np.where(chance, ready, due)
    sure = (doubt_of(station, everything, medium)[begun] == 0) & (own.start[begun] == own.latest[begun])
    wrong = np.where(sure, own.start[begun] != due, own.latest[begun] < ready)
    found.append(
        problem(f"sent by {port}", wrong, [given.row, own.row[begun]],
                (f"at {at} ns" for at in due[wrong]), (f"at {at} ns" for at in own.start[begun][wrong]))
    )  # fmt: skip
    if len(inside) > both and wire.end_ns is not None:
        found.append(_not_begun(port, wire.end_ns, inside.take(np.arange(both, both + 1)), everything, medium))
    return found


def _others(port: str, station: Station, first: np.ndarray, inside: Passages) -> pl.DataFrame:
    """What is sent is what was handed in, in order."""
    content = np.zeros(len(first), np.int64)
    row = np.full(len(first), -1)
    both = min(len(first), len(inside))
    content[:both], row[:both] = inside.content[:both], inside.row[:both]
    wrong = station.own.content[first] != content
    wrong[both:] = True
    return problem(
        f"frames of {port}", wrong, [row, station.own.row[first]],
        iter(["the frame that was handed in next"] * int(wrong.sum())), iter(["another one"] * int(wrong.sum())),
    )  # fmt: skip


def _not_begun(port: str, end_ns: int, given: Passages, everything: Transmissions, medium: Medium) -> pl.DataFrame:
    """The first frame that was never sent waits for the wire when the run ends."""
    quiet = int(everything.end.max(initial=0)) + medium.longest_ns + medium.gap_ns
    wrong = np.maximum(given.time_ns, quiet) < end_ns
    return problem(f"sent by {port}", wrong, [given.row], iter(["sent"]), iter(["not sent"]))
