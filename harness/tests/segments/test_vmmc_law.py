# SPDX-License-Identifier: Apache-2.0
"""The law of a backplane against a simulation packet by packet, to the ns by hand, and damages that it must notice."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sundial.model.topology import SEGMENT_KINDS
from sundial.observe.octets import Octets
from sundial.verify.segment import verifiers
from sundial.verify.wire import Wire
from tests.segments.wires import IN, OUT

PORTS = ["a:vmmc0", "b:vmmc0", "c:vmmc0"]
HEADER = struct.Struct("<BBBBHHIIIIII")
AU, DU, CONTROL, NACK = 1, 2, 3, 4
GAP, PAGE_END, FULL, TIMER, UNCOMBINED = 1, 2, 3, 4, 5


def backplane(**fields: Any) -> Any:
    model = SEGMENT_KINDS["vmmc"].model
    assert model is not None
    return model.model_validate({"kind": "vmmc", "ports": PORTS, **fields})


@dataclass(frozen=True)
class Packet:
    """Handed in at `at` by the node at port `source`."""

    at: int
    source: int
    target: int
    offset: int
    data: bytes
    kind: int = AU
    reason: int = 0
    flags: int = 0
    count: int | None = None
    export: int = 3
    generation: int = 9


@dataclass
class Row:
    at: int
    port: int
    direction: int
    octets: bytes


def numbered(packets: list[Packet]) -> list[tuple[Packet, bytes]]:
    """With the bytes on the wire: packets between two nodes are numbered from 0."""
    sequences: dict[tuple[int, int], int] = {}
    found = []
    for one in sorted(packets, key=lambda one: one.at):
        number = sequences.setdefault((one.source, one.target), 0)
        sequences[one.source, one.target] += 1
        count = len(one.data) if one.count is None else one.count
        head = HEADER.pack(1, one.kind, one.flags, one.reason, one.source + 1, one.target + 1, number, one.export,
                           one.generation, one.offset, len(one.data), count)  # fmt: skip
        found.append((one, head + one.data))
    return found


def simulated(written: Any, packets: list[Packet]) -> list[Row]:
    """A line for each sender, a way, an engine for each receiver; exact, in fractions of a ns."""
    word = ceil(Fraction(64 * 10**12, written.dma_rate))
    way = written.word_latency - Fraction(word, 1000)
    lines = dict.fromkeys(range(len(PORTS)), Fraction(0))
    left = []
    for one, octets in numbered(packets):
        start = max(Fraction(one.at), lines[one.source])
        lines[one.source] = start + Fraction(8 * len(octets) * 10**9, written.link_rate)
        left.append((start, one.source, one, octets))
    rows = [Row(ceil(start), source, OUT, octets) for start, source, _, octets in left]
    engines = dict.fromkeys(lines, Fraction(0))
    for start, _, one, octets in sorted(left, key=lambda each: each[:2]):
        begin = max(start + way, engines[one.target])
        engines[one.target] = begin + Fraction(8 * len(one.data) * 10**9, written.dma_rate)
        rows.append(Row(ceil(engines[one.target]), one.target, IN, octets))
    return rows


def wire(rows: list[Row], end_ns: int | None = None) -> Wire:
    ordered = sorted(rows, key=lambda row: row.at)
    data = np.frombuffer(b"".join(row.octets for row in ordered), np.uint8)
    lengths = np.array([len(row.octets) for row in ordered], np.int64)
    begins = np.cumsum(lengths) - lengths
    table = pl.DataFrame(
        {
            "time_ns": [row.at for row in ordered],
            "interface": [PORTS[row.port] for row in ordered],
            "direction": pl.Series([row.direction for row in ordered], dtype=pl.UInt8),
            "frame_length": pl.Series([len(row.octets) for row in ordered], dtype=pl.UInt32),
            "octets_hash": [hash(row.octets) for row in ordered],
            "eth_source": pl.Series([None] * len(ordered), dtype=pl.Int64),
            "eth_target": pl.Series([None] * len(ordered), dtype=pl.Int64),
            "comment": pl.Series([None] * len(ordered), dtype=pl.String),
            "fate": pl.Series([None] * len(ordered), dtype=pl.String),
        }
    ).with_row_index("row")

    def octets(some: pl.DataFrame) -> Octets:
        places = some["row"].to_numpy().astype(np.int64)
        return Octets(data, begins[places], lengths[places])

    macs = {port: place + 1 for place, port in enumerate(PORTS)}
    return Wire("backplane", PORTS, table, end_ns, octets, macs=macs)


def check(written: Any, rows: list[Row], end_ns: int | None = None) -> list[str]:
    law = verifiers()["vmmc"].check_times(written, wire(rows, end_ns))
    assert law is not None
    return [str(field) for field in law.findings["field"]]


def page_end(at: int, source: int, target: int, data: bytes) -> Packet:
    """The packet of a call: its last byte ends its page."""
    return Packet(at, source, target, 4096 - len(data), data, reason=PAGE_END)


PACKETS = [
    page_end(0, 0, 1, bytes(8)),
    page_end(0, 2, 1, bytes(1024)),
    page_end(10, 0, 1, b"x" * 64),
    Packet(20_000, 1, 0, 64, b"12345678", reason=UNCOMBINED, count=1),
    Packet(40_000, 1, 0, 128, b"1234", reason=TIMER, flags=1, count=1),
    Packet(50_000, 0, 2, 4088, bytes(8), kind=DU, count=0),
    Packet(54_250, 2, 0, 4088, b"", kind=NACK),
    Packet(60_000, 0, 2, 4096, bytes(8), kind=DU, flags=3, count=0),
    Packet(80_000, 1, 2, 0, b"m" * 64, kind=CONTROL, count=0, export=0, generation=0),
    Packet(90_000, 0, 1, 0, bytes(16), reason=GAP, count=2),
    Packet(90_000, 0, 1, 8192, bytes(8), reason=UNCOMBINED, count=1),
    Packet(100_000, 0, 1, 0, bytes(8), reason=GAP, count=1),
    Packet(101_000, 0, 1, 128, bytes(8), reason=TIMER, count=1),
]


def test_times_by_hand() -> None:
    """4,250 ns for a word; three packets for one node wait for its engine: 1,024 bytes take it 44,521.74 ns."""
    rows = simulated(backplane(), PACKETS[:3])
    assert [(row.at, row.port) for row in rows] == [(0, 0), (0, 2), (200, 0), (4_250, 1), (48_772, 1), (51_555, 1)]
    assert check(backplane(), rows) == []


def test_what_the_law_allows() -> None:
    assert check(backplane(), simulated(backplane(), PACKETS)) == []


@settings(max_examples=settings.default.max_examples // 2)
@given(
    st.lists(
        st.tuples(st.integers(0, 9_000), st.integers(0, 2), st.integers(1, 2), st.integers(1, 1024)),
        min_size=1,
        max_size=40,
    ),
    st.sampled_from(["1600 Mbit/s", "200 Mbit/s", "4 Gbit/s"]),
    st.integers(1_000_000, 199_000_000),
)
def test_random_packets_as_simulated(draws: list[tuple[int, int, int, int]], link: str, dma: int) -> None:
    written = backplane(link_rate=link, dma_rate=f"{dma} bit/s", word_latency="100 us")
    at, packets = 0, []
    for pause, source, further, length in draws:
        at += pause
        packets.append(page_end(at, source, (source + further) % 3, length * b"y"))
    rows = simulated(written, packets)
    assert check(written, rows) == []
    middle = sorted(row.at for row in rows)[len(rows) // 2]
    assert check(written, [row for row in rows if row.at <= middle], middle) == []


def changed(rows: list[Row], place: int, offset: int, value: int) -> list[Row]:
    """One byte of a packet, at both of its places, as if it had been sent so."""
    old = rows[place].octets
    new = old[:offset] + bytes([value]) + old[offset + 1 :]
    return [replace(row, octets=new) if row.octets == old else row for row in rows]


@pytest.mark.parametrize(
    ("place", "offset", "value", "field"),
    [
        (0, 1, 7, "kind of a:vmmc0"),
        (0, 3, 9, "reason of a:vmmc0"),
        (3, 3, PAGE_END, "reason of b:vmmc0"),
        (3, 3, FULL, "reason of b:vmmc0"),
        (3, 28, 2, "count of b:vmmc0"),
        (0, 28, 0, "count of a:vmmc0"),
        (5, 28, 1, "transfers of a:vmmc0"),
        (5, 2, 2, "transfers of a:vmmc0"),
        (7, 20, 8, "transfers of a:vmmc0"),
        (5, 2, 1, "flags of a:vmmc0"),
        (5, 3, 1, "reason of a:vmmc0"),
        (7, 2, 4, "flags of a:vmmc0"),
        (7, 2, 1, "transfers of a:vmmc0"),
        (3, 2, 2, "flags of b:vmmc0"),
        (6, 2, 1, "flags of c:vmmc0"),
        (6, 3, 1, "reason of c:vmmc0"),
        (6, 12, 4, "refusals of c:vmmc0"),
        (6, 16, 4, "refusals of c:vmmc0"),
        (6, 20, 4, "refusals of c:vmmc0"),
        (6, 28, 4, "refusals of c:vmmc0"),
        (6, 24, 1, "length of c:vmmc0"),
        (3, 3, GAP, "gap of b:vmmc0"),
        (0, 6, 3, "arrival at c:vmmc0"),
    ],
)
def test_a_field_that_is_wrong_is_found(place: int, offset: int, value: int, field: str) -> None:
    rows = simulated(backplane(), PACKETS)
    assert f"time on the wire: {field}" in check(backplane(), changed(rows, place, offset, value))


@pytest.mark.parametrize("by", [-1, 1])
def test_an_arrival_that_is_a_ns_off_is_found(by: int) -> None:
    rows = simulated(backplane(), PACKETS)
    for place in range(len(PACKETS), len(rows)):
        moved = [replace(row, at=row.at + by) if at == place else row for at, row in enumerate(rows)]
        assert check(backplane(), moved), place


def test_a_packet_that_is_missing_or_overtakes_is_found() -> None:
    rows = simulated(backplane(), PACKETS)
    for place in range(len(rows)):
        assert check(backplane(), rows[:place] + rows[place + 1 :]), place
    first, third = rows[0], rows[2]
    swapped = [replace(first, octets=third.octets), *rows[1:2], replace(third, octets=first.octets), *rows[3:]]
    assert "time on the wire: sequence of a:vmmc0" in check(backplane(), swapped)


def test_a_line_carries_one_packet_at_a_time() -> None:
    packets = [page_end(0, 0, 1, bytes(1000)), page_end(5_159, 0, 1, bytes(8))]
    rows = simulated(backplane(), packets)
    assert rows[1].at == 5_160
    rows[1] = replace(rows[1], at=5_159)
    assert "time on the wire: line of a:vmmc0" in check(backplane(), rows)


def test_a_timer_has_nothing_before_it_for_its_time() -> None:
    def two(apart: int) -> list[Row]:
        timed = Packet(1_000 + apart, 0, 1, 8, bytes(8), reason=TIMER, count=1)
        return simulated(backplane(), [page_end(1_000, 0, 1, bytes(8)), timed])

    assert check(backplane(), two(1_000)) == []
    assert "time on the wire: timer of a:vmmc0" in check(backplane(), two(999))


def test_a_full_packet_is_full_or_what_follows_did_not_fit() -> None:
    def two(length: int, following: int) -> list[str]:
        full = Packet(0, 0, 1, 0, bytes(length), reason=FULL)
        return check(
            backplane(), simulated(backplane(), [full, Packet(9_000, 0, 1, following, bytes(8), reason=TIMER)])
        )

    assert two(1024, 2048) == []
    assert two(1020, 1020) == []
    assert two(1020, 2048)
    assert two(1016, 1016)


def test_what_a_gap_is_for_comes_in_its_time() -> None:
    def two(apart: int, count: int) -> list[str]:
        gap = Packet(5_000, 0, 1, 0, bytes(8), reason=GAP, count=1)
        pushing = Packet(5_000 + apart, 0, 1, 128, bytes(64), reason=TIMER, count=count)
        return check(backplane(), simulated(backplane(), [gap, pushing]))

    assert two(8_000, 8) == []
    assert two(20_000, 10) == []
    assert two(20_001 + 10 * 1_024, 10) == ["time on the wire: gap of a:vmmc0"]


def test_a_refusal_is_made_at_once_and_of_data() -> None:
    def refused(after: int, kind: int = AU) -> list[str]:
        first = Packet(0, 0, 1, 0, bytes(8), kind, reason=UNCOMBINED if kind == AU else 0, count=kind == AU)
        nack = Packet(4_250 + after, 1, 0, 0, b"", kind=NACK, count=kind == AU)
        found = check(backplane(), simulated(backplane(), [first, nack]))
        return [field for field in found if "refusals" in field]

    assert refused(0) == []
    assert refused(1_023) == []  # within an instruction
    for after in (-1, 1_024, 50_000):
        assert refused(after) == ["time on the wire: refusals of b:vmmc0"]
    assert refused(0, CONTROL)
    assert refused(0, NACK)


def test_a_refusal_waits_as_long_as_its_line_is_busy() -> None:
    """For its turn, or until a FIFO that was high is low; that a packet has left is noticed within an instruction."""

    def refused(long_at: int, handed_in: int) -> list[str]:
        stored = Packet(0, 0, 1, 0, bytes(8), reason=UNCOMBINED, count=1)
        long = Packet(long_at, 1, 2, 0, bytes(4096), kind=DU, flags=2, count=0)
        nack = Packet(handed_in, 1, 0, 0, b"", kind=NACK, count=1)
        found = check(backplane(), simulated(backplane(), [stored, long, nack]))
        return [field for field in found if "refusals" in field]

    free = 3_000 + 5 * (32 + 4096)
    for handed_in in (4_250, free - 1, free, free + 1_023):
        assert refused(3_000, handed_in) == []
    assert refused(5_273, 5_273) == []
    for late in ((3_000, free + 1_024), (5_274, 5_274), (30_000, 35_000)):
        assert refused(*late) == ["time on the wire: refusals of b:vmmc0"]


def test_a_message_is_as_long_as_an_adapter_takes() -> None:
    def message(length: int) -> list[str]:
        packet = Packet(0, 0, 1, 0, bytes(length), CONTROL, count=0, export=0, generation=0)
        return check(backplane(), simulated(backplane(), [packet]))

    assert message(0) == message(256) == []
    assert message(257) == ["time on the wire: length of a:vmmc0"]


def test_reading_takes_its_time() -> None:
    def two(apart: int) -> list[str]:
        pieces = [
            Packet(0, 0, 1, 0, bytes(4096), kind=DU, count=0),
            Packet(apart, 0, 1, 4096, bytes(4096), kind=DU, flags=2, count=0),
        ]
        return check(backplane(), simulated(backplane(), pieces))

    assert two(178_087) == []
    assert two(170_000) == ["time on the wire: transfers of a:vmmc0"]
