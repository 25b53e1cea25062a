# SPDX-License-Identifier: Apache-2.0
"""The law of a hub against a simulation of stations, one decision after another (IEEE 802.3, 4.2.3)."""

from __future__ import annotations

import random
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sundial.model.topology import SEGMENT_KINDS
from sundial.verify.segment import verifiers
from tests.fates import collision, given_up, lost
from tests.segments.wires import IN, OUT, Frame, Tape, moved

PORTS = ["a:eth0", "b:eth0", "c:eth0"]


SENSE_NS = {10_000_000: 1000, 100_000_000: 175}
"""By rate: how long after its first bit a station knows of a carrier (harness/fabric/README.md)."""


def hub(ports: list[str], rate: str = "10 Mbit/s", cables: tuple[int, ...] = (25, 25, 25)) -> Any:
    model = SEGMENT_KINDS["hub"].model
    assert model is not None
    cable = {port: f"{delay} ns" for port, delay in zip(ports, cables, strict=False)}
    return model.model_validate({"kind": "hub", "ports": ports, "rate": rate, "cable_delay": cable})


def check(segment: Any, wire: Any) -> pl.DataFrame:
    return verifiers()["hub"].check_times(segment, wire).findings


def simulate(segment: Any, frames: list[Frame], seed: int) -> Tape:
    """Each station sends its frames in turn: the first that reaches the hub, and those that do not know of it yet."""
    bit, sense = 10**9 // segment.rate, SENSE_NS[segment.rate]
    gap, slot = 96 * bit, 512 * bit
    cables = [segment.cable_delay[port] for port in segment.ports]
    rng, tape = random.Random(seed), Tape(segment.ports)
    queues = {port: [frame for frame in frames if frame.port == port] for port in range(len(segment.ports))}
    wanted = {port: queue[0].at for port, queue in queues.items() if queue}
    tries = dict.fromkeys(queues, 0)
    history: list[tuple[int, int, int]] = []

    def way(sender: int, receiver: int) -> int:
        return cables[sender] + segment.through + cables[receiver] if sender != receiver else 0

    def begins(port: int) -> int:
        at = wanted[port]
        for known, end in sorted(
            (a + way(who, port) + sense * (who != port), z + way(who, port)) for who, a, z in history[-40:]
        ):
            if known <= at < end + gap:
                at = end + gap
        return at

    while wanted:
        starts = {port: begins(port) for port in wanted}
        first = min(starts, key=lambda port: (starts[port] + cables[port], port))
        together = [port for port in starts if port == first or starts[port] < starts[first] + way(first, port) + sense]
        for port in together:
            frame, at = queues[port][0], starts[port]
            bits = 8 * (max(frame.length, 60) + 12)
            if len(together) > 1:
                tries[port] += 1
                noticed = min(starts[other] + way(other, port) + sense for other in together if other != port)
                bits = max(64, -(-(noticed - at) // bit)) + 32
                words = collision(segment.ports[port], tries[port], bits)
                tape.fate(noticed, words, frame)
            end = at + bits * bit
            history.append((port, at, end))
            done = len(together) == 1
            if done:
                tape.add(at, port, OUT, frame)
                for other in queues:
                    if other != port:
                        tape.add(end + way(port, other), other, IN, frame)
            elif tries[port] == 16:
                tape.fate(end, given_up(segment.ports[port]), frame)
                done = True
            else:
                wanted[port] = end + slot * rng.randrange(1 << min(tries[port], 10))
            if done:
                tries[port] = 0
                queues[port].pop(0)
                del wanted[port]
                if queues[port]:
                    wanted[port] = max(end, queues[port][0].at)
    return tape


def traffic(stations: int) -> st.SearchStrategy[list[Frame]]:
    one = st.tuples(st.integers(0, 2_000_000), st.integers(0, stations - 1), st.sampled_from([42, 60, 66, 590, 1514]))
    return st.lists(one, min_size=1, max_size=30).map(
        lambda rows: [Frame(at, port, length, name) for name, (at, port, length) in enumerate(sorted(rows), start=1)]
    )


HUBS = st.sampled_from(
    [
        ("10 Mbit/s", (25, 25, 25)),
        ("10 Mbit/s", (25, 900, 5000)),
        ("100 Mbit/s", (25, 25, 25)),
        ("100 Mbit/s", (5, 300, 500)),
    ]
)
"""Rates, and cables; at 100 Mbit/s up to the 100 m of 100BASE-TX, at 10 Mbit/s to a kilometre."""


@settings(max_examples=settings.default.max_examples // 3)
@given(traffic(2), st.integers(0, 99), HUBS)
def test_two_stations_that_keep_the_rules_pass(frames: list[Frame], seed: int, built: tuple[Any, ...]) -> None:
    segment = hub(PORTS[:2], *built)
    assert check(segment, simulate(segment, frames, seed).wire()).to_dicts() == []


@settings(max_examples=settings.default.max_examples // 3)
@given(traffic(3), st.integers(0, 99), HUBS)
def test_three_stations_that_keep_the_rules_pass(frames: list[Frame], seed: int, built: tuple[Any, ...]) -> None:
    segment = hub(PORTS, *built)
    assert check(segment, simulate(segment, frames, seed).wire()).to_dicts() == []


@settings(max_examples=settings.default.max_examples // 5)
@given(traffic(2), st.integers(0, 99), st.sampled_from([1, -1, 1000, -1000]), st.data())
def test_an_arrival_at_another_instant_is_found(
    frames: list[Frame], seed: int, by_ns: int, data: st.DataObject
) -> None:
    segment = hub(PORTS[:2])
    wire = simulate(segment, frames, seed).wire()
    rows = wire.frames.filter(pl.col("direction") == IN)["row"].to_list()
    assert not check(segment, moved(wire, data.draw(st.sampled_from(rows)), by_ns)).is_empty()


BUSY = [Frame(100_000 * (name // 4), name % 2, 60 + 40 * (name % 7), name) for name in range(1, 120)]


def fields(segment: Any, tape: Tape) -> list[str]:
    found = check(segment, tape.wire())["field"].unique().sort().to_list()
    return [each.removeprefix("time on the wire: ").partition(":")[0] for each in found]


def sent(tape: Tape, at: int, port: int, name: int) -> None:
    """A frame of 60 bytes, 57.6 us, that arrives as it must 850 ns later."""
    tape.add(at, port, OUT, Frame(at, port, 60, name))
    tape.add(at + 57_600 + 850, 1 - port, IN, Frame(at, port, 60, name))


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        (57_600 + 850 + 9_600, []),
        (57_600 + 850 + 9_599, ["carrier at b"]),
        (20_000, ["carrier at b", "collision at a", "collision at b", "overlap at the hub"]),
        (1_850, ["carrier at b", "collision at a", "collision at b", "overlap at the hub"]),
        (1_849, ["collision at a", "collision at b", "overlap at the hub"]),
    ],
)
def test_gap_and_overlap_to_the_ns(second: int, problem: list[str]) -> None:
    tape = Tape(PORTS[:2])
    sent(tape, 0, 0, 1)
    sent(tape, second, 1, 2)
    assert fields(hub(PORTS[:2]), tape) == problem


@pytest.mark.parametrize(
    ("retry", "attempt", "problem"),
    [
        (9_600 + 51_200, 1, []),
        (9_600 + 51_201, 1, ["backoff of a"]),
        (9_600 + 2 * 51_200, 1, ["backoff of a"]),
        (9_600 + 51_200, 2, ["attempts of a"]),
    ],
)
def test_slots_and_attempts(retry: int, attempt: int, problem: list[str]) -> None:
    """a begins at 0 and b at 500 ns: a hears b at 1350, b hears a at 850, and both know of it 1 us later; both send 96
    bits. a comes again first."""
    tape = Tape(PORTS[:2])
    tape.fate(1_850, collision("b:eth0", 1, 96), Frame(0, 1, 60, 2))
    tape.fate(2_350, collision("a:eth0", attempt, 96), Frame(0, 0, 60, 1))
    sent(tape, retry, 0, 1)
    assert fields(hub(PORTS[:2]), tape) == problem


@pytest.mark.parametrize(("slots", "problem"), [(1023, []), (1024, ["backoff of a"])])
def test_the_range_of_slots_grows_ten_times(slots: int, problem: list[str]) -> None:
    """a and b collide eleven times, one slot apart, and a comes again behind so many slots."""
    tape = Tape(PORTS[:2])
    for attempt in range(1, 12):
        begin = (attempt - 1) * (9_600 + 51_200)
        tape.fate(begin + 1_850, collision("b:eth0", attempt, 96), Frame(0, 1, 60, 2))
        tape.fate(begin + 2_350, collision("a:eth0", attempt, 96), Frame(0, 0, 60, 1))
    sent(tape, 10 * (9_600 + 51_200) + 9_600 + slots * 51_200, 0, 1)
    assert fields(hub(PORTS[:2]), tape) == problem


@pytest.mark.parametrize(
    ("rate", "begins", "found"),
    [
        ("10 Mbit/s", 1_849, []),
        ("10 Mbit/s", 1_850, ["carrier at b"]),
        ("100 Mbit/s", 684, []),
        ("100 Mbit/s", 685, ["carrier at b"]),
    ],
)
def test_a_station_may_begin_until_it_knows_of_a_carrier(rate: str, begins: int, found: list[str]) -> None:
    """a begins at 0 and is heard by b a way later; b begins, and a hears that as much later."""
    way, sense, bit = {"10 Mbit/s": (850, 1_000, 100), "100 Mbit/s": (510, 175, 10)}[rate]
    tape = Tape(PORTS[:2])
    bits = max(64, -(-(begins + way + sense) // bit)) + 32
    tape.fate(way + sense, collision("b:eth0", 1, 96), Frame(0, 1, 60, 2))
    tape.fate(begins + way + sense, collision("a:eth0", 1, bits), Frame(0, 0, 60, 1))
    assert fields(hub(PORTS[:2], rate), tape) == found


def colliding() -> Tape:
    """a begins at 0 and b at 500 ns, and again after one slot each; then both defer, and a is the first."""
    tape = Tape(PORTS[:2])
    for attempt, at in ((1, 0), (2, 9_600 + 51_200)):
        tape.fate(at + 1_850, collision("b:eth0", attempt, 96), Frame(0, 1, 60, 2))
        tape.fate(at + 2_350, collision("a:eth0", attempt, 96), Frame(0, 0, 60, 1))
    again = 60_800 + 500 + 9_600 + 850 + 9_600
    sent(tape, again, 0, 1)
    sent(tape, again + 57_600 + 850 + 9_600, 1, 2)
    return tape


def test_equal_slots_collide_again() -> None:
    segment = hub(PORTS[:2])
    assert fields(segment, colliding()) == []


@pytest.mark.parametrize("row", range(8))
@pytest.mark.parametrize("by_ns", [-1, 1, -1_000, 1_000])
def test_a_record_at_another_instant_is_found(row: int, by_ns: int) -> None:
    """A collision's stamp too: as if its station had known of the carrier sooner, or later."""
    segment = hub(PORTS[:2])
    assert not check(segment, moved(colliding().wire(), row, by_ns)).is_empty()


def test_a_fate_that_says_otherwise_is_found() -> None:
    segment = hub(PORTS[:2])
    tape = simulate(segment, BUSY, 1)
    assert check(segment, tape.wire()).is_empty()
    place = next(place for place, row in enumerate(tape.rows) if "attempt 1," in str(row["comment"]))
    row = dict(tape.rows[place])
    said = str(row["comment"])
    port, other = ("a:eth0", "b:eth0") if "a:eth0" in said else ("b:eth0", "a:eth0")
    assert said == collision(port, 1, 96)
    for comment in (
        collision(port, 3, 96),
        collision(port, 1, 97),
        collision(other, 1, 96),
        lost("a:eth0", "b:eth0"),
        said.partition(" | ")[0],
        said.replace("attempt 1,", "attempt 3,"),
        said.replace('"attempt":1', '"attempt":3'),
    ):
        tape.rows[place] = {**row, "comment": comment}
        assert not check(segment, tape.wire()).is_empty(), comment
