# SPDX-License-Identifier: Apache-2.0
"""What belongs to the wire, and what to whom of the two ends."""

from decimal import Decimal

import pytest

from sundial.reproduce.fit import distance, nearest
from sundial.reproduce.shares import Flight, Flights, occupied_ns, share

RATE = 100_000_000
GAP = 960


def test_request_and_reply() -> None:
    flights = [Flight(100, 1100, "client", 60), Flight(5100, 6100, "server", 60)]
    parts = share(0, 6400, "client", flights, GAP)
    assert (parts.wire_ns, parts.client_ns, parts.server_ns) == (2000, 100 + 300, 4000)
    assert (parts.frames, parts.wire_bytes) == (2, 144)


def test_a_gap_that_the_next_frame_waited_for_is_the_wires() -> None:
    flights = [
        Flight(0, 1000, "client", 60),
        Flight(1000 + GAP, 2960, "server", 60),
        Flight(2960 + GAP, 4920, "server", 60),
    ]
    parts = share(0, 5000, "client", flights, GAP)
    assert (parts.wire_ns, parts.server_ns, parts.client_ns) == (4920, 0, 80)


def test_frames_on_two_wires_at_once_count_once_and_others_not_at_all() -> None:
    flights = [
        Flight(-500, 100, "server", 60),
        Flight(200, 1200, "client", 60),
        Flight(700, 1700, "server", 60),
        Flight(9000, 9900, "server", 60),
    ]
    parts = share(0, 2000, "client", flights, GAP)
    assert (parts.wire_ns, parts.client_ns, parts.server_ns) == (100 + 1500, 100 + 300, 0)
    assert parts.wire_ns + parts.client_ns + parts.server_ns == 2000
    assert parts.frames == 2


def test_a_frame_that_outlasts_the_call_counts_up_to_its_end() -> None:
    parts = share(0, 1000, "client", [Flight(600, 5000, "server", 60)], GAP)
    assert (parts.wire_ns, parts.server_ns, parts.client_ns) == (400, 600, 0)


def test_the_frames_of_a_call_are_found_among_all() -> None:
    spans = ((0, 9000), (50, 60), (90, 99), (200, 210))
    long, *others = listed = [Flight(begin, end, "client", 60) for begin, end in spans]
    flights = Flights(listed)
    assert list(flights.between(60, 200)) == [long, others[0], others[1]]
    parts = [share(60, 200, "client", of, GAP) for of in (listed, flights.between(60, 200))]
    assert parts[0] == parts[1]
    assert list(Flights([]).between(0, 10)) == []


def test_instructions_are_counted_at_each_ends_own_speed() -> None:
    parts = share(0, 6400, "client", [Flight(100, 1100, "client", 60), Flight(5100, 6100, "server", 60)], GAP)
    assert parts.instructions(8, 16) == 400 // 8 + 4000 // 16


def test_what_a_frame_takes_of_the_wire() -> None:
    # 1408 bytes of data in a frame of 1470: 8 of preamble, 4 of FCS, 12 of gap.
    assert occupied_ns([Flight(0, 1, "client", 1470)], RATE) == pytest.approx(1494 * 80)
    assert occupied_ns([Flight(0, 1, "client", 20)], RATE) == pytest.approx(84 * 80)


def test_the_nearest_speed_is_found_from_either_side() -> None:
    speeds = [Decimal(1000) / 2**shift for shift in range(11)]
    printed = {(3, 0): 800.0, (4, 0): 700.0}
    asked: list[Decimal] = []

    def measure(mips: Decimal) -> dict[tuple[int, int], float]:
        asked.append(mips)
        return {(3, 0): 24_000 / float(mips) + 120, (4, 0): 24_000 / float(mips) + 20}

    for first in (speeds[0], speeds[4], speeds[10]):
        asked.clear()
        best, tried = nearest(speeds, first, printed, measure)
        assert best.mips == Decimal("31.25")
        assert len(asked) == len(set(asked)) == len(tried)
        assert {Decimal("62.5"), Decimal("15.625")} <= set(asked)


def test_distance_is_of_logarithms() -> None:
    assert distance({(1, 0): 10.0, (1, 1): 10.0}, {(1, 0): 20.0, (1, 1): 5.0}) == pytest.approx(0.6931, abs=1e-3)
    assert distance({(1, 0): 10.0}, {(1, 0): 10.0}) == 0
