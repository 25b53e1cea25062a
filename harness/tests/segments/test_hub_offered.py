# SPDX-License-Identifier: Apache-2.0
"""What a device hands in at a hub, against the simulation of stations that the law of the hub is checked against."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sundial.verify.segment import verifiers
from sundial.verify.wire import Passages
from tests.fates import given_up, ring_full
from tests.segments.test_hub_law import HUBS, PORTS, hub, simulate, traffic
from tests.segments.wires import OUT, Frame, Tape, moved


def handed_in(frames: list[Frame], port: int) -> Passages:
    mine = sorted((frame for frame in frames if frame.port == port), key=lambda frame: (frame.at, frame.name))
    columns = zip(*((10_000 + each.name, each.at, each.length, each.name, port + 1, each.target) for each in mine),
                  strict=True)  # fmt: skip
    empty = [np.zeros(0, np.int64)] * 6
    return Passages(*([np.array(column, np.int64) for column in columns] or empty))


def check(segment: Any, tape: Tape, frames: list[Frame], port: int = 0, places: int = 1000, **more: Any) -> list[Any]:
    wire = replace(tape.wire(more.pop("end_ns", None)), rings={segment.ports[port]: places})
    wire = more["damage"](wire) if more else wire
    findings = verifiers()["hub"].check_offered(segment, wire, segment.ports[port], handed_in(frames, port))
    return pl.concat(findings).to_dicts()


def with_ring(segment: Any, frames: list[Frame], seed: int, places: int) -> Tape:
    """Station 0 refuses what comes while so many of its frames have not left."""
    kept, dropped = sorted(frames, key=lambda frame: (frame.at, frame.name)), []
    while True:
        tape = simulate(segment, kept, seed)
        left = [row["time_ns"] + 8 * (max(row["frame_length"], 60) + 12) * 10**9 // segment.rate
                for row in tape.rows if row["direction"] == OUT and row["interface"] == PORTS[0]]  # fmt: skip
        left += [row["time_ns"] for row in tape.rows if row["comment"] == given_up(PORTS[0])]
        mine = [frame for frame in kept if frame.port == 0]
        inside = [place - sum(end <= frame.at for end in left) for place, frame in enumerate(mine)]
        full = [frame for frame, number in zip(mine, inside, strict=True) if number >= places]
        if not full:
            break
        kept.remove(full[0])
        dropped.append(full[0])
    for frame in dropped:
        tape.fate(frame.at, ring_full(PORTS[0]), frame)
    return tape


@settings(max_examples=settings.default.max_examples // 3)
@given(traffic(3), st.integers(0, 99), HUBS, st.sampled_from([1, 2, 1000]))
def test_a_device_that_keeps_the_rules_passes(
    frames: list[Frame], seed: int, built: tuple[Any, ...], places: int
) -> None:
    segment = hub(PORTS, *built)
    assert check(segment, with_ring(segment, frames, seed, places), frames, places=places) == []


ALONE = [Frame(200_000 * name, name % 2, 60 + name, name) for name in range(1, 30)]
"""Each begins at once."""


@pytest.mark.parametrize("by_ns", [-1, 1, 5000])
def test_a_frame_at_another_instant_is_found(by_ns: int) -> None:
    segment = hub(PORTS[:2])
    tape = simulate(segment, ALONE, 1)
    assert check(segment, tape, ALONE) == []
    row = tape.wire().frames.filter(pl.col("direction") == OUT, pl.col("interface") == PORTS[0])["row"][3]
    assert check(segment, tape, ALONE, damage=lambda wire: moved(wire, row, by_ns))


def test_a_frame_that_waits_without_need_is_found() -> None:
    """Handed in before another station's frame, it is sent behind it."""
    segment = hub(PORTS[:2])
    frames = [Frame(100_000, 1, 60, 1), Frame(100_500, 0, 60, 2)]
    apart = simulate(segment, [frames[0], Frame(120_000, 0, 60, 2)], 1)
    assert check(segment, apart, [frames[0], Frame(120_000, 0, 60, 2)]) == []
    # It knows of the other one 1,850 ns after that began, so at 100,500 it would have begun, and collided.
    assert check(segment, apart, frames)
    assert check(segment, apart, [frames[0], Frame(101_850, 0, 60, 2)]) == []
    assert check(segment, apart, [frames[0], Frame(101_849, 0, 60, 2)])


def test_a_frame_in_the_place_of_another_one_that_is_missing_and_one_too_many_are_found() -> None:
    segment = hub(PORTS[:2])
    tape = simulate(segment, ALONE, 1)
    own = [frame for frame in ALONE if frame.port == 0]
    assert check(segment, tape, [each for each in ALONE if each is not own[4]])
    assert check(segment, tape, [*ALONE, Frame(own[-1].at + 10**6, 0, 60, 99)], end_ns=10**8)
    assert check(segment, tape, [*ALONE, Frame(10**8, 0, 60, 99)], end_ns=10**8) == []
    swapped = [replace(each, name={4: 6, 6: 4}.get(each.name, each.name)) for each in ALONE]
    assert check(segment, tape, swapped)


def test_a_refusal_without_need_is_found() -> None:
    segment = hub(PORTS[:2])
    gone = ALONE[5]
    tape = simulate(segment, [each for each in ALONE if each is not gone], 1)
    tape.fate(gone.at, ring_full(PORTS[0]), gone)
    assert gone.port == 0
    assert check(segment, tape, ALONE, places=1)
