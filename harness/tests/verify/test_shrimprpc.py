# SPDX-License-Identifier: Apache-2.0
"""Verification of ShrimpRPC, on packets made by hand: the layout is that of guest-apps/shrimp/README.md, written here a
second time."""

from __future__ import annotations

import json
import struct
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.verify import vmmc_bed
from tests.verify.vmmc_bed import (
    CLIENT,
    FULL,
    GAP,
    GONE,
    PAGE_END,
    SERVER,
    STEP_NS,
    TIMER,
    UNCOMBINED,
    VmmcBed,
    control,
)

NAME = "shrimp.20001997.1"
TASK, HASH, KEY = 300, 0xBE49850972249E28, 77
PAGES, END = 6, 6 * 4096
PROCEDURES = ["null", "in", "out", "inout", "in_64", "out_64", "inout_64"]


def pattern(number: int, size: int) -> bytes:
    return bytes((number * 131 + at * 7 + (at >> 8)) & 0xFF for at in range(size))


def counted(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8) + struct.pack("<Q", len(data))


def flag(sequence: int, low: int) -> bytes:
    return struct.pack("<Q", sequence << 16 | low)


def arguments(procedure: str, number: int, size: int) -> bytes:
    data = pattern(number, size)
    return {
        "in": counted(data), "inout": counted(data), "in_64": data, "inout_64": data,
        "out": struct.pack("<QQ", number, size),
    }.get(procedure, b"")  # fmt: skip


def results(procedure: str, number: int, size: int) -> bytes:
    data = pattern(0 if procedure == "out_64" else number, size)
    return {"out": counted(data), "inout": counted(data), "out_64": data, "inout_64": data}.get(procedure, b"")


@dataclass(frozen=True)
class Call:
    """What is stored of one call, and what its sample says."""

    procedure: str = "inout"
    number: int = 0
    sequence: int = 1
    size: int = 16
    xid: int | None = None
    ok: bool = True
    there: bytes | None = None
    back: bytes | None = None
    replied: bool = True
    split: int | None = None
    """Bytes of a first packet of its own,"""
    why: int | None = None
    """and why it left."""
    between: bool = False
    """Whether its node then asks the other for an import."""


@dataclass
class Shrimp:
    bed: VmmcBed
    wait: str = "poll"
    ways: list[tuple[int, int, int, int]] = field(default_factory=list)
    connected: int = 0
    """Clients so far; all are the first of a task of the same number."""

    @property
    def notify(self) -> int:
        return 1 if self.wait == "notify" else 0

    def connect(
        self, *, pages: int = PAGES, name: str = NAME, notify: int | None = None, hash_: int = HASH, key: int = 0
    ) -> None:
        bed = self.bed
        number = self.connected
        self.connected += 1
        there = bed.imported(CLIENT, name, export=3 + 2 * number, generation=7, pages=pages, use=2, key=key)
        own = f"client.{CLIENT}.{TASK}.0"
        mask = 2 * self.notify if notify is None else notify
        hello = struct.pack(
            "<QQ32sHHIQ", hash_, KEY + number, own.encode(), CLIENT, TASK, mask, int.from_bytes(b"hello", "little")
        )
        for at in range(0, len(hello), 8):
            bed.store(there, at, hello[at : at + 8])
        back = bed.imported(SERVER, own, export=4 + 2 * number, generation=9, pages=PAGES, use=2, key=KEY + number)
        bed.store(back, 0, struct.pack("<Q", int.from_bytes(b"come", "little")))
        self.ways = [there, back]

    def leg(
        self, way: int, data: bytes, split: int | None = None, why: int | None = None, between: bool = False
    ) -> None:
        at, rest = END - len(data), data
        while rest:
            length = min(1024, len(rest), 4096 - at % 4096)
            if split is not None:
                length, split = split, None
            flags = self.notify if at >= END - 4096 else 0
            reason = why or (FULL if (at + length) % 4096 else PAGE_END)
            why = None
            self.bed.store(self.ways[way], at, rest[:length], reason=reason, flags=flags)
            if between:
                self.bed.refused(self.ways[way][0], "absent", status=1)
                between = False
            at, rest = at + length, rest[length:]

    def call(self, call: Call) -> None:
        start = self.bed.now - 5
        sent = arguments(call.procedure, call.number, call.size) + flag(call.sequence, PROCEDURES.index(call.procedure))
        self.leg(0, call.there if call.there is not None else sent, call.split, call.why, call.between)
        returned = results(call.procedure, call.number, call.size) + flag(call.sequence, 0)
        if call.replied:
            self.leg(1, call.back if call.back is not None else returned)
        xid = call.sequence if call.xid is None else call.xid
        self.bed.sample(start, xid, ok=call.ok, error=None if call.ok else "the server is no longer there")

    def batch(self, procedure: str, size: int) -> None:
        self.bed.batch(
            "shrimp-client", "shrimprpc", procedure, size, client_task=TASK, server_task=0, wait=self.wait, polls=5
        )

    def counters(self, bad: int = 0, more: dict[str, int] | None = None, **counts: int) -> None:
        line = {
            "type": "counters", "app": "shrimp-server", "bad_payload": bad,
            "by_procedure": dict.fromkeys(PROCEDURES, 0) | counts, **(more or {}),
        }  # fmt: skip
        self.bed.server_lines.append(json.dumps(line))

    def fields(self) -> list[str]:
        return vmmc_bed.fields(vmmc_bed.settled(self.bed.write("shrimp-client")))


@pytest.fixture
def shrimp(tmp_path: Path) -> Shrimp:
    return Shrimp(VmmcBed(tmp_path / "run"))


def one(shrimp: Shrimp, call: Call, **counts: int) -> list[str]:
    shrimp.connect()
    shrimp.batch(call.procedure, call.size)
    shrimp.call(call)
    shrimp.counters(**(counts or {call.procedure: 1}))
    return shrimp.fields()


@pytest.mark.parametrize("wait", ["poll", "notify"])
def test_calls_are_explained(shrimp: Shrimp, wait: str) -> None:
    shrimp.wait = wait
    shrimp.connect()
    sequence = 0
    sizes = {"null": [0], "in_64": [64], "out_64": [64], "inout_64": [64]}
    for procedure in PROCEDURES:
        for size in sizes.get(procedure, [0, 4, 1008, 1009, 4096, 16384]):
            shrimp.batch(procedure, size)
            for number in range(2):
                sequence += 1
                shrimp.call(Call(procedure, number, sequence, size))
    shrimp.counters(null=2, **dict.fromkeys(("in", "out", "inout"), 12), in_64=2, out_64=2, inout_64=2)
    found = vmmc_bed.settled(shrimp.bed.write("shrimp-client"))
    assert vmmc_bed.fields(found) == []
    assert found.observed.height == sequence
    # 8 + n bytes: one packet up to 1,024; 16,384 bytes and their number and the flag lie in five pages.
    lengths = {key[1:]: (way["request"]["lengths"], way["reply"]["lengths"]) for key, way in found.expected.items()}
    assert lengths["null", 0] == ([8], [8])
    assert lengths["in", 1008] == ([1024], [8])
    assert lengths["inout", 1009] == ([1024, 8], [1024, 8])
    assert lengths["out", 16384] == ([24], [16] + [1024] * 16)
    assert lengths["inout_64", 64] == ([72], [72])


def test_the_number_of_a_task_comes_again(shrimp: Shrimp) -> None:
    for wait in ("poll", "notify"):
        shrimp.wait = wait
        shrimp.connect()
        shrimp.batch("inout", 16)
        for number in range(2):
            shrimp.call(Call(number=number, sequence=number + 1))
    shrimp.counters(inout=4, more={"clients": 2})
    assert shrimp.fields() == []


def test_a_call_that_failed_may_lack_its_reply(shrimp: Shrimp) -> None:
    shrimp.connect()
    shrimp.batch("inout", 16)
    shrimp.call(Call())
    shrimp.call(Call(number=1, sequence=2, ok=False, replied=False))
    shrimp.bed.packet(3, SERVER, CLIENT, control(GONE, export=3, generation=7))
    shrimp.bed.sample(shrimp.bed.now, 3, ok=False, error="the server is no longer there")
    shrimp.counters(inout=2)
    assert shrimp.fields() == []


def test_an_interrupt_may_divide_a_packet(shrimp: Shrimp) -> None:
    assert one(shrimp, Call(size=2000, split=504, why=TIMER)) == []


def test_what_others_at_its_node_send_may_divide_a_packet(shrimp: Shrimp) -> None:
    assert one(shrimp, Call(size=2000, split=504, why=GAP, between=True)) == []


def test_a_packet_that_nothing_divides_is_whole(shrimp: Shrimp) -> None:
    assert one(shrimp, Call(size=2000, split=504, why=GAP)) == ["shrimp.request"]


BODY = arguments("inout", 0, 16)


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (Call(split=8), "shrimp.request"),
        (Call(split=8, why=UNCOMBINED), "shrimp.request"),
        (Call(there=bytes(8) + BODY + flag(1, 3)), "shrimp.request"),
    ],
)
def test_what_is_wrong_with_a_call_is_found(shrimp: Shrimp, call: Call, field: str) -> None:
    assert field in one(shrimp, call)


def test_packets_of_no_call_are_unexplained(shrimp: Shrimp) -> None:
    shrimp.connect()
    shrimp.batch("inout", 16)
    shrimp.call(Call())
    shrimp.leg(0, flag(2, 0))
    shrimp.counters(inout=1)
    assert shrimp.fields() == ["unexplained"]


def test_a_reply_before_its_call(shrimp: Shrimp) -> None:
    shrimp.connect()
    shrimp.batch("null", 0)
    start = shrimp.bed.now - 5
    shrimp.leg(1, flag(1, 0))
    shrimp.leg(0, flag(1, 0))
    shrimp.bed.sample(start, 1)
    shrimp.counters(null=1)
    assert shrimp.fields() == ["shrimp.reply"]


def test_calls_without_a_pair(shrimp: Shrimp) -> None:
    shrimp.batch("null", 0)
    shrimp.bed.now += STEP_NS
    shrimp.bed.sample(shrimp.bed.now - 5, 1)
    assert "shrimp.pair" in shrimp.fields()


def test_a_pair_of_another_name_is_found(shrimp: Shrimp) -> None:
    shrimp.connect(name="shrimp.20001997.2")
    shrimp.batch("inout", 16)
    shrimp.call(Call())
    shrimp.counters(inout=1)
    assert shrimp.fields() == ["shrimp.pair.name"]


@pytest.mark.parametrize(("overtaken", "found"), [(1, []), (2, ["counted.overtaken"])])
def test_one_payload_may_be_overtaken_and_two_may_not(shrimp: Shrimp, overtaken: int, found: list[str]) -> None:
    shrimp.connect()
    shrimp.batch("inout", 16)
    shrimp.call(Call())
    shrimp.counters(inout=1, more={"overtaken": overtaken})
    assert shrimp.fields() == found


def test_notifications_are_in_the_packets(shrimp: Shrimp) -> None:
    shrimp.wait = "notify"
    shrimp.connect()
    shrimp.wait = "poll"
    shrimp.batch("inout", 16)
    shrimp.bed.lines[-1] = shrimp.bed.lines[-1].replace('"wait": "poll"', '"wait": "notify"')
    shrimp.call(Call())
    shrimp.counters(inout=1)
    assert shrimp.fields() == ["shrimp.request", "shrimp.reply"]


def test_the_interface_is_that_of_the_generator(tmp_path: Path) -> None:
    folder = Path(__file__).parents[3] / "guest-apps" / "shrimp"
    subprocess.run([folder / "shrimpgen", "--out", tmp_path, folder / "echo.x"], check=True)
    assert f"UINT64_C(0x{HASH:016x})" in (tmp_path / "echo_shrimp.h").read_text()


@pytest.mark.parametrize(
    ("wait", "before_ns", "behind_ns", "field"),
    [
        ("poll", 0, 8_000, []),
        # 500 instructions, and 10 for each of 4 words.
        ("poll", 8_640 - 5, 0, []),
        ("poll", 8_640 - 4, 0, ["sample.start"]),
        ("poll", 0, 8_001, ["sample.end"]),
        ("notify", 0, 16_000, []),
        ("notify", 0, 16_001, ["sample.end"]),
    ],
)
def test_a_client_does_nothing_else(
    shrimp: Shrimp, monkeypatch: pytest.MonkeyPatch, wait: str, before_ns: int, behind_ns: int, field: list[str]
) -> None:
    monkeypatch.setattr("sundial.workloads.vmmc.verify._mips", lambda run: {CLIENT: 62.5, SERVER: 62.5})
    shrimp.wait = wait
    shrimp.connect()
    shrimp.batch("inout", 16)
    shrimp.bed.now += STEP_NS
    shrimp.call(Call())
    start, end = shrimp.bed.now - 2 * STEP_NS, shrimp.bed.now - STEP_NS + vmmc_bed.FLIGHT_NS
    shrimp.bed.lines[-1] = json.dumps([0, start - 5 - before_ns, end + behind_ns, 1, 0, 1, None])
    shrimp.counters(inout=1)
    assert shrimp.fields() == field


@pytest.mark.parametrize(("behind_ns", "found"), [(24_000, False), (24_001, True)])
def test_a_client_is_woken_by_each_packet_of_a_reply(
    shrimp: Shrimp, monkeypatch: pytest.MonkeyPatch, behind_ns: int, found: bool
) -> None:
    monkeypatch.setattr("sundial.workloads.vmmc.verify._mips", lambda run: {CLIENT: 62.5, SERVER: 62.5})
    shrimp.wait = "notify"
    shrimp.connect()
    shrimp.batch("inout", 1100)
    shrimp.call(Call(size=1100))
    end = shrimp.bed.now - STEP_NS + vmmc_bed.FLIGHT_NS
    line = json.loads(shrimp.bed.lines[-1])
    shrimp.bed.lines[-1] = json.dumps([*line[:2], end + behind_ns, *line[3:]])
    shrimp.counters(inout=1)
    assert ("sample.end" in shrimp.fields()) == found


def test_where_a_server_shares_the_node_it_takes_turns(shrimp: Shrimp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sundial.workloads.vmmc.verify._mips", lambda run: {CLIENT: 62.5, SERVER: 62.5})
    shrimp.bed.imported(SERVER, "other", export=9, generation=1, pages=1)
    shrimp.connect()
    shrimp.batch("inout", 16)
    shrimp.call(Call())
    shrimp.bed.lines[-1] = json.dumps([0, 0, shrimp.bed.now + 1_000_000, 1, 0, 1, None])
    shrimp.counters(inout=1)
    assert shrimp.fields() == []
