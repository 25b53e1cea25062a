# SPDX-License-Identifier: Apache-2.0
"""Updates of vmmc-client and vmmc-server made by hand, as they must be and with something wrong."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

from sundial.segments.vmmc.model import Backplane
from sundial.workloads.vmmc.verify_evidence import Evidence
from tests.verify import vmmc_bed
from tests.verify.bed import Record
from tests.verify.vmmc_bed import PAGE_END, STEP_NS, VmmcBed

PAGES = 65
HASH = 0x766D6D632E746731
BATCH, TAKEN = 256, 264


def transfer(number: int, size: int, sequence: int) -> bytes:
    data = bytes((131 * number + i // 256 + 7 * (i % 256)) % 256 for i in range(size - 8))
    return data + struct.pack("<I4s", sequence, b"VMMC")


Way = tuple[int, int, int, int]


def begin(bed: VmmcBed, transport: str, mode: str, size: int, number: int, transfers: int = 1) -> tuple[Way, Way]:
    there, back = bed.pair(f"vmmc.{transport}", pages=PAGES, hash_=HASH)
    word = struct.pack("<Q", 1 | (mode == "stream") << 16 | number * transfers << 20 | size << 44)
    bed.store(there, BATCH, word)
    bed.store(back, TAKEN, bytes(8))
    bed.store(back, BATCH, word)
    bed.batch("vmmc-client", transport, mode, size, transfers=transfers)
    return there, back


def count(bed: VmmcBed, transfers: int, size: int, wrong: int = 0) -> None:
    line = {"type": "counters", "app": "vmmc-server", "calls": transfers, "bytes": transfers * size, "wrong": wrong}
    bed.server_lines.append(json.dumps(line))


def stores(bed: VmmcBed) -> VmmcBed:
    """Two round trips of 16 bytes, a packet for each store."""
    ways = begin(bed, "au", "round_trip", 16, 2)
    for call in range(2):
        start, data = bed.now, transfer(call, 16, call + 1)
        for way in ways:
            for at in (0, 8):
                bed.store(way, 4096 * (call + 2) - 16 + at, data[at : at + 8])
        bed.sample(start)
    count(bed, 2, 16)
    return bed


def combined(bed: VmmcBed) -> VmmcBed:
    """One round trip of 1,040 bytes in two packets each way."""
    ways = begin(bed, "au-combined", "round_trip", 1040, 1)
    start, data = bed.now, transfer(0, 1040, 1)
    for way in ways:
        bed.store(way, 8192 - 1040, data[:1024], reason=vmmc_bed.FULL)
        bed.store(way, 8192 - 16, data[1024:], reason=PAGE_END)
    bed.sample(start)
    count(bed, 1, 1040)
    return bed


def interrupted(bed: VmmcBed) -> VmmcBed:
    """The same; the client is interrupted after 5 of its stores, the server after 128 and 129."""
    there, back = begin(bed, "au-combined", "round_trip", 1040, 1)
    start, data = bed.now, transfer(0, 1040, 1)
    for way, cuts in ((there, (0, 40, 1040)), (back, (0, 1024, 1032, 1040))):
        for at, end in pairwise(cuts):
            reason = PAGE_END if end == 1040 else vmmc_bed.FULL if end - at == 1024 else vmmc_bed.TIMER
            bed.store(way, 8192 - 1040 + at, data[at:end], reason=reason)
    bed.sample(start)
    count(bed, 1, 1040)
    return bed


def pushed_out(bed: VmmcBed) -> VmmcBed:
    """The same; the client's kernel asks for an import meanwhile."""
    there, back = begin(bed, "au-combined", "round_trip", 1040, 1)
    start, data = bed.now, transfer(0, 1040, 1)
    bed.store(there, 8192 - 1040, data[:40], reason=vmmc_bed.GAP)
    bed.refused(vmmc_bed.CLIENT, "absent", status=1)
    bed.store(there, 8192 - 1000, data[40:], reason=PAGE_END)
    bed.store(back, 8192 - 1040, data[:1024], reason=vmmc_bed.FULL)
    bed.store(back, 8192 - 16, data[1024:], reason=PAGE_END)
    bed.sample(start)
    count(bed, 1, 1040)
    return bed


def deliberate(bed: VmmcBed) -> VmmcBed:
    """A stream of three transfers of 4,104 bytes, in two packets each."""
    there, back = begin(bed, "du", "stream", 4104, 1, transfers=3)
    start = bed.now
    for number in range(3):
        at, data = 4096 + 8192 * (number + 1) - 4104, transfer(number, 4104, number + 1)
        bed.send(there, at, data[:8], number, last=False)
        bed.send(there, at + 8, data[8:], number, last=True)
    bed.store(back, TAKEN, struct.pack("<Q", 3))
    bed.sample(start)
    count(bed, 3, 4104)
    return bed


def fields(bed: VmmcBed) -> list[str]:
    return vmmc_bed.fields(vmmc_bed.settled(bed.write("vmmc-client")))


@pytest.mark.parametrize("made", [stores, combined, interrupted, pushed_out, deliberate])
def test_what_must_be_passes(tmp_path: Path, made: Callable[[VmmcBed], VmmcBed]) -> None:
    found = vmmc_bed.settled(made(VmmcBed(tmp_path / "run")).write("vmmc-client"))
    assert vmmc_bed.fields(found) == []
    assert set(found.classes["class"]) == {"call", "vmmc_setup", "vmmc_control"}


def test_what_was_observed_and_expected(tmp_path: Path) -> None:
    found = vmmc_bed.settled(combined(VmmcBed(tmp_path / "run")).write("vmmc-client"))
    row = found.observed.row(0, named=True)
    assert (row["request_packets"], row["request_packets_expected"]) == (2, 2)
    assert row["call_last_rx_ns"] - row["call_first_tx_ns"] == STEP_NS + vmmc_bed.FLIGHT_NS
    request = found.expected["au-combined", "round_trip", 1040]["request"]
    assert (request["lengths"], request["frame_bytes"], request["exact"]) == ([1024, 16], 1104, True)


@pytest.mark.parametrize(("combine_bytes", "expected"), [(1020, []), (1016, ["vmmc.packet"])])
def test_a_packet_without_room_for_a_store_may_leave_by_the_timer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, combine_bytes: int, expected: list[str]
) -> None:
    """It is not full before the next store, and that may come late; one that has all its bytes leaves at once."""
    backplane = Backplane(kind="vmmc", ports=vmmc_bed.PORTS, combine_bytes=combine_bytes)
    monkeypatch.setattr(Evidence, "backplane", lambda evidence, node: backplane)
    bed = VmmcBed(tmp_path / "run")
    ways = begin(bed, "au-combined", "round_trip", 1040, 1)
    start, data = bed.now, transfer(0, 1040, 1)
    for way, reason in zip(ways, (vmmc_bed.TIMER, vmmc_bed.FULL), strict=True):
        bed.store(way, 8192 - 1040, data[:1016], reason=reason)
        bed.store(way, 8192 - 24, data[1016:], reason=PAGE_END)
    bed.sample(start)
    count(bed, 1, 1040)
    assert fields(bed) == expected


def changed(bed: VmmcBed, place: int, offset: int, value: int) -> None:
    """One byte of the packet at `place`, counted from the end, wherever it is seen."""
    old = bed.records[place].frame
    new = old[:offset] + bytes([value]) + old[offset + 1 :]
    bed.records = [replace(each, frame=new) if each.frame == old else each for each in bed.records]


def edit(bed: VmmcBed, old: str, new: str) -> None:
    assert any(old in line for line in [*bed.lines, *bed.server_lines])
    bed.lines = [line.replace(old, new) for line in bed.lines]
    bed.server_lines = [line.replace(old, new) for line in bed.server_lines]


def row(bed: VmmcBed, at: int, by: int) -> None:
    """Moves a stamp of the last sample."""
    values = json.loads(bed.lines[-1])
    values[at] += by
    bed.lines[-1] = json.dumps(values)


def answered_early(bed: VmmcBed) -> None:
    """The first answer of the last call leaves while its request is on its way; records are pairs of both ends."""
    early: list[Record] = []
    for place, each in enumerate(bed.records):
        of_answer = len(bed.records) - 4 <= place
        early.append(replace(each, at=each.at - 16_000) if of_answer else each)
    bed.records = early


@pytest.mark.parametrize(
    ("made", "damage", "expected"),
    [
        (stores, lambda bed: bed.store((1, 2, 1, 2), 8192, bytes(8)), ["unexplained"]),
        (stores, lambda bed: row(bed, 1, 1), ["vmmc.began"]),
        (stores, lambda bed: row(bed, 2, -STEP_NS + vmmc_bed.FLIGHT_NS - 1), ["vmmc.answered"]),
        (stores, answered_early, ["vmmc.answer"]),
        (stores, lambda bed: edit(bed, '"calls": 2', '"calls": 3'), ["nodes/server counters"]),
        (stores, lambda bed: bed.server_lines.clear(), ["nodes/server counters"]),
        (interrupted, lambda bed: changed(bed, -5, 3, vmmc_bed.TIMER), ["vmmc.packet"]),  # it was full
        (interrupted, lambda bed: changed(bed, -3, 3, vmmc_bed.GAP), ["vmmc.packet", "unexplained"]),
        (interrupted, lambda bed: changed(bed, -3, 32, 0), ["vmmc.data"]),
    ],
)
def test_what_is_wrong_is_found(
    tmp_path: Path, made: Callable[[VmmcBed], VmmcBed], damage: Callable[[VmmcBed], object], expected: list[str]
) -> None:
    bed = made(VmmcBed(tmp_path / "run"))
    damage(bed)
    assert fields(bed) == expected


def again(bed: VmmcBed, forgotten: bool = False) -> VmmcBed:
    """Two clients whose tasks have one number, of a round trip each; between them, one that is never welcomed."""
    for number in range(2):
        there, back = bed.pair("vmmc.au", pages=PAGES, hash_=HASH, made=0)
        word = struct.pack("<Q", 1 | 1 << 20 | 8 << 44)
        bed.store(there, BATCH, word)
        bed.store(back, TAKEN, bytes(8))
        bed.store(back, BATCH, word)
        bed.batch("vmmc-client", "au", "round_trip", 8, transfers=1)
        start = bed.now
        for way in (there, back):
            bed.store(way, 4096 * 2 - 8, transfer(0, 8, 1))
        bed.sample(start)
        if forgotten and number == 0:
            bed.pair("vmmc.au", pages=PAGES, hash_=HASH, made=0, welcomed=False)
    count(bed, 2, 8)
    return bed


@pytest.mark.parametrize("forgotten", [False, True])
def test_the_number_of_a_task_comes_again(tmp_path: Path, forgotten: bool) -> None:
    found = vmmc_bed.settled(again(VmmcBed(tmp_path / "run"), forgotten).write("vmmc-client"))
    assert vmmc_bed.fields(found) == []
    assert found.classes.filter(pl.col("class") == "call")["call"].unique().sort().to_list() == [0, 1]


def test_what_is_wrong_with_the_first_task_of_a_number_is_found(tmp_path: Path) -> None:
    bed = again(VmmcBed(tmp_path / "run"))
    # Of the second, what is written to connect and for the batch are 4 + 8 + 4 + 1 + 3 packets, then the two of a call.
    changed(bed, -1 - 2 * (20 + 2), 32, 99)
    assert fields(bed) == ["vmmc.data"]


def test_a_pair_of_another_operation_is_found(tmp_path: Path) -> None:
    bed = stores(VmmcBed(tmp_path / "run"))
    edit(bed, '"transport": "au"', '"transport": "du"')
    assert "vmmc.pair" in fields(bed)


def test_a_refused_pair_is_none(tmp_path: Path) -> None:
    bed = VmmcBed(tmp_path / "run")
    bed.pair("vmmc.au", pages=PAGES, status=16)
    assert fields(bed) == []


def test_an_export_that_one_client_has_left_is_another_ones(tmp_path: Path) -> None:
    """The second imports it before the server has seen that the first has left: it learns that, and connects again."""
    bed = VmmcBed(tmp_path / "run")
    there, _ = bed.pair("vmmc.au", pages=PAGES)
    given_up = vmmc_bed.control(vmmc_bed.UNIMPORT, export=there[2], generation=there[3])
    bed.packet(vmmc_bed.CONTROL, vmmc_bed.CLIENT, vmmc_bed.SERVER, given_up)
    bed.imported(vmmc_bed.CLIENT, "vmmc.au", export=there[2], generation=there[3], pages=PAGES)
    bed.store(there, 0, struct.pack("<Q", 5))
    gone = vmmc_bed.control(vmmc_bed.GONE, export=there[2], generation=there[3])
    bed.packet(vmmc_bed.CONTROL, vmmc_bed.SERVER, vmmc_bed.CLIENT, gone)
    stores(bed)
    assert fields(bed) == []
