# SPDX-License-Identifier: Apache-2.0
"""Verification of vRPC, on packets made by hand: the layout is that of guest-apps/sss-core/rpc/ring.h, written here a
second time."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sundial.workloads.sunrpc.verify_ring_calls import RingCalls
from sundial.workloads.sunrpc.verify_rings import Ring, Write, check_line, read_ring, room_ns
from tests.verify.vmmc_bed import FLIGHT_NS, GAP, STEP_NS, VmmcBed, fields, settled

RING, CONTROL, TAIL, HEAD = 131072, 4096, 256, 264
NAME, PAGES, TASK = "vrpc.20001998.1", 33, 273
PROGRAM, VERSION = 0x20001998, 1
WRONG_WAY = ["ring.request.way", "ring.reply.way"]


def word(position: int, mark: bytes) -> bytes:
    return struct.pack("<I4s", position % (1 << 32), mark)


def call(xid: int, size: int) -> bytes:
    head = struct.pack(">10I", xid, 0, 2, PROGRAM, VERSION, 1, 0, 0, 0, 0)
    return head + struct.pack(">I", size) + payload(size)


def reply(xid: int, size: int) -> bytes:
    return struct.pack(">6I", xid, 1, 0, 0, 0, 0) + struct.pack(">I", size) + payload(size)


def payload(size: int) -> bytes:
    """Of call 0 of a batch, padded."""
    return bytes((at * 7 + (at >> 8)) & 0xFF for at in range(size)) + bytes(-size % 4)


# ---- rings alone ----


@dataclass
class Writer:
    """One side, as ring.h has it; `writes` with their data."""

    tail: int = 0
    head: int = 0
    """Of the other side, as it is known here."""
    sequence: int = 0
    writes: list[tuple[Write, bytes]] = field(default_factory=list)
    now: int = 0

    def put(self, offset: int, data: bytes, deliberate: bool = False) -> None:
        self.now += 10
        row = len(self.writes)
        self.writes.append((Write(row, offset, len(data), self.now, self.now + 5, deliberate, 32), data))

    def message(self, data: bytes, pieces: int = 1) -> None:
        size = 8 + -(-len(data) // 8) * 8
        place = self.tail % RING
        if place + size > RING:
            self.put(CONTROL + place, struct.pack("<II", 0xFFFFFFFF, self.sequence + 1))
            self.tail += RING - place
            place = 0
        self.sequence += 1
        whole = struct.pack("<II", len(data), self.sequence) + data
        step = -(-len(whole) // pieces)
        for at in range(0, len(whole), step):
            self.put(CONTROL + place + at, whole[at : at + step])
        self.tail += size
        self.put(TAIL, word(self.tail, b"TAIL"))

    def read(self, *, replies: bool = False) -> Ring:
        data = {write.row: data for write, data in self.writes}
        return read_ring((write for write, _ in self.writes), lambda write: data[write.row], replies=replies)


def test_every_message_is_found_wherever_the_ring_ends() -> None:
    chosen = random.Random(14)
    writer = Writer()
    lengths = [chosen.choice((0, 1, 3, 900, 5000, 60001)) for _ in range(200)]
    for xid, length in enumerate(lengths):
        writer.message(call(xid, length), pieces=chosen.randint(1, 4))
    ring = writer.read()
    assert ring.findings == []
    assert [record.xid for record in ring.records] == list(range(200))
    assert [record.length for record in ring.records] == [44 + -(-length // 4) * 4 for length in lengths]
    assert sum(skip for _, skip in ring.steps) > 5
    for record in ring.records:
        covered = sorted((piece.begin, piece.begin + piece.length) for piece in record.pieces)
        assert covered[0][0] == 0
        assert covered[-1][1] == record.length
    claimed = {row for record in ring.records for row in record.rows} | set(ring.beside)
    assert claimed == set(range(len(writer.writes)))


def again(writer: Writer) -> None:
    writer.put(TAIL, word(writer.tail, b"TAIL"))


def back(writer: Writer) -> None:
    writer.put(TAIL, word(writer.tail - 8, b"TAIL"))


def marked(writer: Writer) -> None:
    writer.put(TAIL, word(writer.tail + 8, b"HEAD"))


def beyond(writer: Writer) -> None:
    writer.put(CONTROL + RING - 4, bytes(8))


def elsewhere(writer: Writer) -> None:
    writer.put(300, bytes(8))


def twice(writer: Writer) -> None:
    writer.put(CONTROL + writer.tail % RING, bytes(8))
    writer.message(call(9, 4))


def nothing(writer: Writer) -> None:
    writer.put(TAIL, word(writer.tail + 64, b"TAIL"))


def unshown(writer: Writer) -> None:
    writer.put(CONTROL + 2000, bytes(8))
    writer.message(call(9, 4))


def short(writer: Writer) -> None:
    writer.message(bytes(8))


def of_the_other_side(writer: Writer) -> None:
    writer.message(reply(9, 4))


def head_back(writer: Writer) -> None:
    writer.put(HEAD, word(RING // 2, b"HEAD"))
    writer.put(HEAD, word(RING // 4, b"HEAD"))


@pytest.mark.parametrize(
    ("damage", "name"),
    [
        (again, "tail"), (back, "tail"), (marked, "mark"), (beyond, "offset"), (elsewhere, "control"),
        (twice, "written"), (nothing, "sequence"), (unshown, "written"), (short, "message"),
        (of_the_other_side, "message_type"), (head_back, "head"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_found(damage: Callable[[Writer], None], name: str) -> None:
    writer = Writer()
    writer.message(call(1, 100))
    assert writer.read().findings == []
    damage(writer)
    assert [finding[1] for finding in writer.read().findings] == [f"ring.{name}"]


def test_heads_follow_tails_and_quarters() -> None:
    there, back = Writer(), Writer()
    for xid in range(5):
        there.message(call(xid, 8000))
    back.now = there.now + 100
    back.put(HEAD, word(there.tail, b"HEAD"))
    assert list(check_line(there.read(), back.read(replies=True))) == []
    early = Writer()
    early.put(HEAD, word(there.tail, b"HEAD"))
    found = list(check_line(there.read(), early.read(replies=True)))
    assert "ring.head" in [finding[1] for finding in found]
    eager = Writer(now=there.now + 100)
    eager.put(HEAD, word(8056, b"HEAD"))
    assert [finding[1] for finding in check_line(there.read(), eager.read(replies=True))] == ["ring.head"]


def answered(heads: int, calls: int = 6) -> list[str]:
    """Six calls, of which the fifth fills a quarter of the ring; the server answers some, and tells its head or not."""
    there, back = Writer(), Writer()
    for xid in range(6):
        there.message(call(xid, 8000))
    back.now = there.now + 100
    for xid in range(calls):
        back.message(reply(xid, 0))
    for number in range(heads):
        back.put(HEAD, word(5 * 8056 * (number + 1), b"HEAD"))
    return [finding[1] for finding in check_line(there.read(), back.read(replies=True))]


def test_a_head_that_is_due_is_told() -> None:
    assert answered(1) == []
    assert answered(0) == ["ring.head"]
    # That the fifth has been released is not known.
    assert answered(0, calls=5) == []
    assert "ring.head" in answered(2)


def test_what_a_client_has_taken_its_calls_say() -> None:
    there, back = Writer(), Writer()
    for xid in range(3):
        there.message(call(xid, 0))
        back.message(reply(xid, 40000))
    found = list(check_line(there.read(), back.read(replies=True)))
    assert [finding[1:4] for finding in found] == [("ring.head", "40040", "none")]


def test_a_writer_waits_for_room() -> None:
    there, back = Writer(), Writer()
    came = []
    for xid in range(3):
        there.message(call(xid, 65000))
        back.now = there.now + 100
        back.put(HEAD, word(there.tail, b"HEAD"))
        came.append(back.now + 5)
    # The ring holds two of them.
    assert list(room_ns(there.read(), back.read(replies=True))) == [None, None, came[0]]
    small = Writer()
    for xid in range(3):
        small.message(call(xid, 8000))
    assert list(room_ns(small.read(), back.read(replies=True))) == [None] * 3


def test_nothing_is_written_over_what_was_not_taken() -> None:
    there = Writer()
    for xid in range(3):
        there.message(call(xid, 60000))
    found = list(check_line(there.read(), Writer().read(replies=True)))
    assert [finding[1] for finding in found] == ["ring.room"]


@pytest.mark.parametrize(("xids", "found"), [((7, 8, 9), []), (((1 << 32) - 1, 0), []), ((7, 9), ["ring.xid"])])
def test_a_client_counts_its_calls(xids: tuple[int, ...], found: list[str]) -> None:
    there = Writer()
    for xid in xids:
        there.message(call(xid, 4))
    calls = RingCalls(contents=None)  # type: ignore[arg-type]
    calls.add_line(1, there.read(), Writer().read(replies=True), (TASK, 2, 0))
    calls.calls.clear()
    calls.check_left()
    assert [finding[1] for finding in calls.findings] == found
    calls.findings.clear()
    # One that failed may have taken a number and sent nothing.
    calls.failed.add(1)
    calls.check_left()
    assert calls.findings == []


# ---- calls ----


@dataclass(frozen=True)
class Case:
    """What is written of one call of 16 bytes."""

    request: bytes = call(7, 16)
    answer: bytes = reply(7, 16)
    deliberate: bool = False
    size: int = 16
    xid: int = 7
    ok: bool = True
    wait: str = "poll"
    hash: int = RING << 8
    notify: int = 0
    procedure: str = "echo"
    line: dict[str, object] = field(default_factory=dict)
    """What the line above the sample says otherwise."""
    flags: tuple[int, int] = (0, 0)
    """Of the message's packets, and of the tails."""


def run(folder: Path, case: Case, options: dict[str, object] | None = None, more_ns: int = 0) -> list[str]:
    bed = VmmcBed(folder / "run", options=options or {})
    make(bed, case, more_ns)
    return fields(settled(bed.write("echo-client")))


def make(bed: VmmcBed, case: Case, more_ns: int = 0) -> None:
    """A client that makes one call; all are the first of a task of the same number."""
    there, back = bed.pair(NAME, pages=PAGES, task=TASK, use=1, hash_=case.hash, notify=case.notify, made=0)
    start = bed.now
    bed.now += STEP_NS
    for stream, message in ((there, case.request), (back, case.answer)):
        record = struct.pack("<II", len(message), 1) + message
        if case.deliberate:
            bed.send(stream, CONTROL, record, 1, last=True)
        else:
            bed.store(stream, CONTROL, record, reason=GAP, stores=len(record) // 4, flags=case.flags[0])
        bed.store(stream, TAIL, word(-(-len(record) // 8) * 8, b"TAIL"), flags=case.flags[1])
    bed.now += STEP_NS + more_ns
    line = {"wait": case.wait, "client_task": TASK, "server_node": 2, "server_task": 0, "depth": 1, "polls": 0}
    bed.batch("echo-client", "vrpc", case.procedure, case.size, **line | case.line)
    bed.sample(start - more_ns, case.xid, case.ok)


def test_a_call_is_right(tmp_path: Path) -> None:
    assert run(tmp_path, Case()) == []


@pytest.mark.parametrize(
    ("case", "field"),
    [
        (Case(request=call(7, 20)), "ring.request"),
        (Case(answer=reply(7, 12)), "ring.reply"),
        (Case(deliberate=True), "ring.request.way"),
        (Case(wait="notify"), "vrpc.pair.notify"),
        (Case(wait="notify", hash=RING << 8 | 1, notify=1), "ring.flags"),
        (Case(wait="notify", hash=RING << 8 | 1, notify=1, flags=(1, 1)), "ring.flags"),
        (Case(flags=(0, 1)), "ring.flags"),
        (Case(procedure="another"), "ring.request"),
        (Case(line={"polls": 1}, wait="notify", hash=RING << 8 | 1, notify=1, flags=(0, 1)), "samples.polls"),
    ],
)
def test_a_call_that_is_not(tmp_path: Path, case: Case, field: str) -> None:
    assert field in run(tmp_path, case)


def test_long_messages_go_by_deliberate_update(tmp_path: Path) -> None:
    assert run(tmp_path / "1", Case(deliberate=True), {"deliberate_above": 20}) == []
    assert run(tmp_path / "2", Case(), {"deliberate_above": 20}) == WRONG_WAY
    assert run(tmp_path / "3", Case(deliberate=True), {"deliberate_above": 44 + 16}) == WRONG_WAY


def test_a_client_that_sleeps_is_notified_of_tails(tmp_path: Path) -> None:
    assert run(tmp_path, Case(wait="notify", hash=RING << 8 | 1, notify=1, flags=(0, 1))) == []


@pytest.mark.parametrize("second", ["poll", "notify"])
def test_the_number_of_a_task_comes_again(tmp_path: Path, second: str) -> None:
    """Each pair waits as its own client's samples say."""
    bed = VmmcBed(tmp_path / "run")
    make(bed, Case())
    other = Case(request=call(8, 16), answer=reply(8, 16), xid=8)
    notified = Case(other.request, other.answer, xid=8, wait="notify", hash=RING << 8 | 1, notify=1, flags=(0, 1))
    make(bed, notified if second == "notify" else other)
    assert fields(settled(bed.write("echo-client"))) == []


def test_a_client_does_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """2,000 instructions and 10 for each of 2 words; STEP_NS are there already."""
    monkeypatch.setattr("sundial.workloads.vmmc.verify._mips", lambda run: {1: 62.5, 2: 62.5})
    assert run(tmp_path / "1", Case(), more_ns=32_320 - STEP_NS - (STEP_NS - FLIGHT_NS)) == []
    assert run(tmp_path / "2", Case(), more_ns=32_320 - STEP_NS + 1) == ["sample.start", "sample.end"]
    # A string is searched for its end: 9 more for each word, in front of the first packet only.
    for more_ns, late in ((2 * 9 * 16, False), (2 * 9 * 16 + 1, True)):
        found = run(tmp_path / f"5 {late}", Case(procedure="echo_string"), more_ns=32_320 - STEP_NS + more_ns)
        assert ("sample.start" in found, "sample.end" in found) == (late, True)
    # The first message of a line by deliberate update may take 40,000 more, and the adapter for 68 bytes.
    options = {"deliberate_above": 20}
    most_ns = 32_320 + 40_000 * 16 + 2_800 + 2_956 - STEP_NS
    assert run(tmp_path / "3", Case(deliberate=True), options, more_ns=most_ns) == ["sample.end"]
    assert run(tmp_path / "4", Case(deliberate=True), options, more_ns=most_ns + 1) == ["sample.start", "sample.end"]
