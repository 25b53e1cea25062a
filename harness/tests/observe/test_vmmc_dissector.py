# SPDX-License-Identifier: Apache-2.0
"""vmmc.lua against captures written by hand, in tshark as a user calls it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from sundial.model.catalog import DISSECTORS
from tests.verify.bed import Record, rpc_call, rpc_reply
from tests.verify.vmmc_bed import (
    ANSWER,
    AU,
    CLIENT,
    CONTROL,
    FULL,
    GAP,
    GONE,
    IMPORT,
    NACK,
    PAGE_END,
    SERVER,
    TIMER,
    VmmcBed,
    capture,
    control,
)
from tests.warm_tshark.reader import reader

(DISSECTOR,) = [path for path in DISSECTORS if path.name == "vmmc.lua"]
Stream = tuple[int, int, int, int]
PAGE = 4096
VRPC, SHRIMPRPC = 1, 2
TAIL, HEAD, SKIP = 256, 264, 0xFFFFFFFF


@pytest.fixture
def bed(tmp_path: Path) -> VmmcBed:
    return VmmcBed(tmp_path)


READ = reader(DISSECTOR)


def tshark(bed: VmmcBed, *options: str, shown: str = "frame", read: Callable[..., str] = READ) -> str:
    file = bed.directory / "backplane.pcapng"
    file.write_bytes(capture(bed.records))
    return read(file, "-2", "-Y", shown, *options)


def fields(bed: VmmcBed, *names: str, shown: str = "frame") -> list[list[str]]:
    """One list a packet, '' for what it does not have, with links forward: to packets at the same port."""
    output = tshark(bed, "-T", "fields", *(word for name in names for word in ("-e", name)), shown=shown)
    return [line.split("\t") for line in output.split("\n")[:-1]]


def at_sender(bed: VmmcBed, *names: str) -> list[list[str]]:
    """The same of packets where they left; the beds' arrive each before the next leaves."""
    return fields(bed, *names)[::2]


def experts(bed: VmmcBed) -> list[str]:
    return [line[0] for line in at_sender(bed, "_ws.expert.message")]


def test_every_field_of_the_header(bed: VmmcBed) -> None:
    stream = bed.imported(CLIENT, "memory", export=3, generation=9, pages=4)
    bed.store(stream, 64, b"12345678", flags=1)
    bed.store(stream, 128, b"abc", reason=TIMER, stores=2)
    bed.send(stream, 4096, b"d" * 16, 7, last=True)
    names = ("kind", "flags", "reason", "src", "dst", "seq", "export", "generation", "offset", "length", "stores",
             "transfer", "data")  # fmt: skip
    found = at_sender(bed, *(f"vmmc.{name}" for name in names))[2:]
    assert found == [
        ["1", "0x01", "5", "1", "2", "1", "3", "9", "64", "8", "1", "", "3132333435363738"],
        ["1", "0x00", "4", "1", "2", "2", "3", "9", "128", "3", "2", "", "616263"],
        ["2", "0x02", "0", "1", "2", "3", "3", "9", "4096", "16", "", "7", "64" * 16],
    ]
    shown = tshark(bed).splitlines()
    assert shown == tshark(bed, read=READ.by_itself).splitlines()
    assert "1 → 2 AU [NOTIFY] Seq=1 Export=3.9 Offset=64 Len=8 (uncombined)" in shown[4]
    assert "DU [LAST] Seq=3" in shown[8]
    assert fields(bed, "vmmc.import.name", "vmmc.import.use", "vmmc.import.granted_in", shown="vmmc.kind == 2") == [
        ["memory", "0", "4"], ["memory", "0", "3"]
    ]  # fmt: skip


def test_messages_of_kernels(bed: VmmcBed) -> None:
    bed.imported(CLIENT, "memory", export=3, generation=9, pages=4, use=2, key=0x1122334455667788)
    bed.refused(CLIENT, "nothing", 1)
    bed.packet(CONTROL, SERVER, CLIENT, control(GONE, export=3, generation=9))
    names = ("type", "request", "key", "name", "status", "export", "generation", "pages", "use", "answer_in",
             "request_in", "time")  # fmt: skip
    zero = "0x0000000000000000"
    found = at_sender(bed, *(f"vmmc.control.{name}" for name in names))
    assert [line[:-1] for line in found] == [
        ["1", "1", "0x1122334455667788", "memory", "0", "0", "0", "0", "0", "4", ""],
        ["2", "1", zero, "", "0", "3", "9", "4", "2", "", "2"],
        ["1", "2", zero, "nothing", "0", "0", "0", "0", "0", "8", ""],
        ["2", "2", zero, "", "1", "0", "0", "0", "0", "", "6"],
        ["3", "0", zero, "", "0", "3", "9", "0", "0", "", ""],
    ]
    assert found[1][-1] == "0.000005750"
    assert experts(bed) == ["", "", "", "Refused: no such name", ""]
    lines = tshark(bed).splitlines()
    assert lines[0].endswith('IMPORT "memory" #1')
    assert lines[2].endswith("ANSWER 3.9 4 pages for ShrimpRPC #1")
    assert lines[8].endswith("GONE 3.9")


def test_an_answer_that_nobody_asked_for(bed: VmmcBed) -> None:
    bed.packet(CONTROL, SERVER, CLIENT, control(ANSWER, 5, export=3, generation=9, pages=1))
    bed.store((CLIENT, SERVER, 3, 8), 0, bytes(8))
    assert experts(bed) == ["Answer to no request that was seen", "Its import was not seen"]


def test_a_refusal_names_its_packet(bed: VmmcBed) -> None:
    stream = bed.imported(CLIENT, "memory", export=3, generation=9, pages=4)
    for offset in (0, 8, 0):
        bed.store(stream, offset, bytes(8))
    for offset in (8, 0):
        bed.packet(NACK, SERVER, CLIENT, export=3, generation=9, offset=offset, count=1)
    found = at_sender(bed, "vmmc.refused_in", "vmmc.refuses", "_ws.expert.message")[2:]
    assert found == [["14", "", ""], ["12", "", ""], ["", "", ""], ["", "8", "Refused"], ["", "6", "Refused"]]


def hello(bed: VmmcBed, there: Stream, name: str) -> Stream:
    """As vmmc_pair_connect() and vmmc_pair_hear() do it: eight words there, the import back."""
    said = struct.pack("<QQ32sHHIQ", 0xABCDEF, 5, name.encode(), CLIENT, 272, 0, 0x6F6C6C6568)
    for at in range(0, 64, 8):
        bed.store(there, at, said[at : at + 8])
    return bed.imported(SERVER, name, export=7, generation=2, pages=3, use=bed_use(there))


def bed_use(stream: Stream) -> int:
    return VRPC if stream[2] == 1 else SHRIMPRPC


def vrpc(bed: VmmcBed) -> tuple[Stream, Stream]:
    """Rings of two pages."""
    there = bed.imported(CLIENT, "vrpc.20000001.1", export=1, generation=4, pages=3, use=VRPC)
    return there, hello(bed, there, "client.1.272.0")


def put(bed: VmmcBed, stream: Stream, at: int, message: bytes, sequence: int, cut: int = 1 << 20) -> int:
    """A record in packets of at most `cut` bytes, then the tail -> the tail."""
    record = struct.pack("<II", len(message), sequence) + message + bytes(-len(message) % 8)
    for begin in range(0, len(record), cut):
        part = record[begin : begin + cut]
        bed.store(stream, PAGE + at % (2 * PAGE) + begin, part, reason=GAP)
    tail = at + len(record)
    bed.store(stream, TAIL, struct.pack("<II", tail, 0x4C494154))
    return tail


def test_a_hello_joins_two_imports(bed: VmmcBed) -> None:
    vrpc(bed)
    names = ("vmmc.hello.name", "vmmc.hello.hash", "vmmc.hello.node", "vmmc.hello.task", "vmmc.pair")
    assert at_sender(bed, *names)[9] == ["client.1.272.0", "0x0000000000abcdef", "1", "272", "0"]


def test_messages_of_vrpc_are_sun_rpc(bed: VmmcBed) -> None:
    there, back = vrpc(bed)
    begun = len(bed.records) // 2
    put(bed, there, 0, rpc_call(0x1234, 100, procedure=1), 1, cut=64)
    put(bed, back, 0, rpc_reply(0x1234, 100), 1)
    found = at_sender(
        bed, "vmmc.vrpc.sequence", "vmmc.vrpc.length", "vmmc.vrpc.part", "vmmc.vrpc.complete_in", "vmmc.vrpc.tail",
        "rpc.xid", "rpc.msgtyp", "vmmc.pair",
    )[begun:]  # fmt: skip
    first = 2 * begun + 1
    xid = "0x00001234"
    call = ["1", "144", f"{first},{first + 2},{first + 4}", "", "152", xid, "0", "0"]
    reply = ["1", "128", str(first + 8), "", "136", xid, "1", "0"]
    part = ["", "", "", str(first + 6), "", "", "", "0"]
    assert found == [part, part, part, call, [*part[:3], str(first + 10), *part[4:]], reply]
    ((taken,),) = fields(bed, "rpc.time", shown=f"frame.number == {first + 10}")
    assert taken == "0.000015750"
    assert fields(bed, "frame.number", shown="vmmc.vrpc.xid == 0x1234 && rpc.msgtyp == 1") == [
        [str(first + 10)], [str(first + 11)]
    ]  # fmt: skip


def test_a_record_after_the_end_of_the_ring(bed: VmmcBed) -> None:
    there, back = vrpc(bed)
    tail = put(bed, there, 0, rpc_call(1, 4096), 1, cut=1024)
    tail = put(bed, there, tail, rpc_call(2, 3900), 2, cut=1024)
    skipped = -tail % (2 * PAGE)
    bed.store(there, PAGE + tail % (2 * PAGE), struct.pack("<II", SKIP, 3))
    put(bed, there, tail + skipped, rpc_call(3, 8), 3)
    bed.store(back, HEAD, struct.pack("<II", tail, 0x44414548))
    found = fields(bed, "vmmc.vrpc.skip", "vmmc.vrpc.sequence", "rpc.xid", shown="vmmc.vrpc.tail")
    assert found[::2] == [["", "1", "0x00000001"], ["", "2", "0x00000002"], [str(skipped), "3", "0x00000003"]]
    assert fields(bed, "vmmc.vrpc.head", shown="vmmc.vrpc.head") == [[str(tail)]] * 2


def test_a_ring_that_is_not_whole(bed: VmmcBed) -> None:
    there, _ = vrpc(bed)
    begun = len(bed.records) // 2
    tail = put(bed, there, 0, rpc_call(1, 100), 1, cut=64)
    del bed.records[2 * begun + 2 : 2 * begun + 4]
    put(bed, there, tail, rpc_call(2, 8), 2)
    said = [text for text in experts(bed)[begun:] if text]
    assert said == ["Not the next in sequence: 11 is", "The ring has no record there"]
    assert fields(bed, "rpc.xid", shown="rpc")[::2] == [["0x00000002"]]


def shrimp(bed: VmmcBed) -> tuple[Stream, Stream]:
    """Buffers of two pages behind the control page."""
    there = bed.imported(CLIENT, "shrimp.20000002.1", export=3, generation=9, pages=3, use=SHRIMPRPC)
    return there, hello(bed, there, "client.1.272.1")


def flag(sequence: int, word: int) -> bytes:
    return struct.pack("<Q", sequence << 16 | word)


def test_calls_of_shrimprpc(bed: VmmcBed) -> None:
    there, back = shrimp(bed)
    begun = len(bed.records) // 2
    bed.store(there, 3 * PAGE - 72, bytes(64) + flag(5, 3), reason=PAGE_END)
    bed.store(back, 3 * PAGE - 2056, bytes(1024), reason=FULL)
    bed.store(back, 3 * PAGE - 1032, bytes(1024), reason=FULL)
    bed.store(back, 3 * PAGE - 8, flag(5, 0), reason=PAGE_END)
    bed.store(there, 3 * PAGE - 8, flag(6, 99), reason=PAGE_END)
    bed.store(back, 3 * PAGE - 8, flag(6, 0xFF00), reason=PAGE_END)
    names = (
        "seq",
        "procedure",
        "arguments",
        "status",
        "results",
        "flag_in",
        "stored_in",
        "call_in",
        "reply_in",
        "time",
    )
    found = at_sender(bed, *(f"vmmc.shrimp.{name}" for name in names))[begun:]
    call, reply, failing, failed = (2 * (begun + place) + 1 for place in (0, 3, 4, 5))
    part = ["", "", "", "", "", str(reply), "", "", "", ""]
    assert found == [
        ["5", "3", "64", "", "", "", "", "", str(reply + 1), ""],
        part,
        part,
        ["5", "", "", "0", "2048", "", f"{reply - 4},{reply - 2}", str(call + 1), "", "0.000025750"],
        ["6", "99", "0", "", "", "", "", "", str(failed + 1), ""],
        ["6", "", "", "65280", "0", "", "", str(failing + 1), "", "0.000005750"],
    ]
    assert experts(bed)[-1] == "The call failed: BAD_PROCEDURE"
    shown = [line.partition(" | ")[2] for line in tshark(bed).splitlines()]
    assert shown[call - 1] == "ShrimpRPC call 5 procedure 3, 64 bytes"
    assert shown[failed - 1] == "ShrimpRPC reply 6 BAD_PROCEDURE, 0 bytes"
    # At the other port, of the packets there.
    ((there_in,),) = fields(bed, "vmmc.shrimp.call_in", shown=f"frame.number == {reply + 1}")
    assert there_in == str(call)


@pytest.mark.parametrize(
    ("kind", "more", "length", "said"),
    [
        (AU, {"flags": 2, "reason": 5, "count": 1}, None, "Flag that a packet of its kind does not have"),
        (AU, {"flags": 8, "reason": 5, "count": 1}, None, "Flag that a packet of its kind does not have"),
        (2, {"flags": 1}, None, "Flag that a packet of its kind does not have"),
        (NACK, {"flags": 1}, 0, "Flag that a packet of its kind does not have"),
        (AU, {"reason": 0}, None, "Reason that a packet of its kind does not have"),
        (AU, {"reason": 7}, None, "Reason that a packet of its kind does not have"),
        (2, {"reason": 1, "flags": 2}, None, "Reason that a packet of its kind does not have"),
        (7, {}, None, "Unknown kind"),
        (AU, {"reason": 5, "offset": 4092}, None, "Data go over a page"),
        (NACK, {}, 8, "A refusal has no data"),
        (CONTROL, {}, 60, "A message has 64 bytes"),
    ],
)
def test_what_is_wrong_is_said(bed: VmmcBed, kind: int, more: dict[str, int], length: int | None, said: str) -> None:
    bed.imported(CLIENT, "memory", export=0, generation=0, pages=2)
    bed.packet(kind, CLIENT, SERVER, bytes(8 if length is None else length), **more)
    assert said in experts(bed)[-1].split(",")


def test_packets_that_cannot_be_read(bed: VmmcBed) -> None:
    bed.packet(CONTROL, CLIENT, SERVER, control(9))
    bed.store((CLIENT, SERVER, 1, 1), 0, bytes(8))
    for record in bed.records[2:]:
        record.frame = b"\x02" + record.frame[1:]
    for octets in (b"\x01\x01", b"\x01" + bed.records[2].frame[1:-1]):
        bed.records += [Record(bed.now, 0, 2, octets), Record(bed.now, 1, 1, octets)]
        bed.now += 10_000
    short = "Shorter than the header of 32 bytes"
    assert experts(bed) == ["Unknown message", "Unknown version", short, "The packet has 7 bytes of data"]  # fmt: skip


def test_a_message_of_its_own_request_number_at_each_port(bed: VmmcBed) -> None:
    """The two nodes count requests by themselves: they must not be taken for one another's."""
    for importer in (CLIENT, SERVER):
        bed.packet(CONTROL, importer, 3 - importer, control(IMPORT, 1, f"of {importer}"))
    for importer in (CLIENT, SERVER):
        bed.packet(CONTROL, 3 - importer, importer, control(ANSWER, 1, export=importer, generation=1, pages=1))
        bed.store((importer, 3 - importer, importer, 1), 0, bytes(8))
    found = fields(bed, "vmmc.import.name", shown="vmmc.kind == 1")
    assert found == [["of 1"], ["of 1"], ["of 2"], ["of 2"]]
