# SPDX-License-Identifier: Apache-2.0
"""mbcf.lua against expectations written by hand, in tshark as a user calls it."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sundial.workloads.mbcf.observe import DISSECTOR
from tests.growth import NEAR_LINEAR, growth
from tests.observe.mbcf_wire import (
    ACK,
    ACK_NOW,
    CAS,
    CLOSE,
    EPOCH,
    FETCH_ADD,
    FIFO,
    MORE,
    OPENED,
    PART,
    PROBE,
    READ,
    RESULT,
    RETX,
    SIGNAL,
    SWAP,
    SYN,
    SYNACK,
    TASKQUE,
    UNSURE,
    WIDE,
    WRITE,
    frame,
    nonces,
)  # fmt: skip
from tests.verify.bed import IN, OUT, Record, capture, rpc_call, rpc_reply
from tests.warm_tshark.reader import Reader, reader

A, B = (1, 272), (2, 288)
GOLDEN = Path(__file__).resolve().parents[3] / "guest-apps" / "sss-core" / "tests" / "golden"


tshark = reader(DISSECTOR)


def at_one_port(directory: Path, frames: list[bytes]) -> Path:
    """A capture at node 1's port, a frame each 10 us."""
    file = directory / "port.pcapng"
    records = [Record(1000 + 10_000 * n, 0, OUT if data[11] == 1 else IN, data) for n, data in enumerate(frames)]
    file.write_bytes(capture(["n1:eth0"], records))
    return file


def fields(file: Path, *names: str, options: tuple[str, ...] = ()) -> list[list[str]]:
    """One list a frame, '' for what it does not have, with links forward."""
    rows = tshark(file, "-2", "-Y", "frame", "-T", "fields", *(w for name in names for w in ("-e", name)), *options)
    return [line.split("\t") for line in rows.split("\n")[:-1]]


def tree(file: Path, number: int = 1) -> dict[str, Any]:
    layers = json.loads(tshark(file, "-T", "json", "--no-duplicate-keys"))[number - 1]["_source"]["layers"]
    return dict(layers["mbcf"])


def experts(file: Path) -> list[str]:
    return [line[0] for line in fields(file, "_ws.expert.message")]


HEAD = ("op", "flags", "version", "status", "tag", "src.node", "src.task", "dst.node", "dst.task", "epoch",
        "target_epoch", "seq", "ack", "key", "offset", "tag.address_high", "address", "op_id", "length")  # fmt: skip


def test_its_parts_are_found_in_a_folder_with_a_space(tmp_path: Path) -> None:
    copy = shutil.copytree(DISSECTOR.parent, tmp_path / "a folder") / DISSECTOR.name
    file = at_one_port(tmp_path, [frame(WRITE, A, B, seq=1)])
    shown = Reader(tmp_path, copy).by_itself(file)
    assert shown == tshark(file)
    assert "MBCF" in shown


def test_every_field_of_the_header(tmp_path: Path) -> None:
    def write(seq: int, **more: Any) -> bytes:
        return frame(WRITE, A, B, seq=seq, ack=5, payload=b"abc" * 8, flags=MORE | ACK_NOW, tag=3, op_id=1025, **more)

    defining = write(7, key=0x1122334455667788, address=0x7FFF12345678)
    file = at_one_port(tmp_path, [defining, write(8, address=0x12345680, short=True)])
    head = ["0x46", "2", "0", "3", "1", "272", "2", "288", "68097", "133890"]
    assert fields(file, "mbcf.op", *(f"mbcf.{name}" for name in HEAD[1:]), "mbcf.data") == [
        ["0x11", *head, "7", "5", "0x1122334455667788", "0x12345678", "0x00007fff", "0x00007fff12345678", "1025", "24",
         "616263" * 8],
        # What its tag stands for was said by the frame before.
        ["0x11", "0x06", *head[1:], "8", "5", "0x1122334455667788", "0x12345680", "", "0x00007fff12345680", "1025",
         "24", "616263" * 8],
    ]  # fmt: skip


def test_a_tag_that_was_not_defined(tmp_path: Path) -> None:
    file = at_one_port(tmp_path, [frame(WRITE, A, B, seq=7, ack=5, short=True)])
    assert experts(file) == ["Its definition was not seen"]
    assert fields(file, "mbcf.src.task", "mbcf.key") == [["", ""]]


def test_what_is_sent_again_means_what_it_meant(tmp_path: Path) -> None:
    other = (1, 0x333)
    frames = [
        frame(WRITE, A, B, seq=1, ack=5, key=1), frame(WRITE, A, B, seq=2, ack=5, short=True),
        frame(WRITE, other, B, seq=3, ack=5, key=2), frame(WRITE, A, B, seq=2, ack=5, short=True, flags=RETX),
    ]  # fmt: skip
    keys = fields(at_one_port(tmp_path, frames), "mbcf.src.task", "mbcf.key")
    assert keys == [[task, f"0x{key:016x}"] for task, key in (("272", 1), ("272", 1), ("819", 2), ("272", 1))]


def test_a_handshake(tmp_path: Path) -> None:
    frames = [
        frame(SYN, A, B, payload=nonces(7)), frame(SYNACK, B, A, target_epoch=EPOCH[1], payload=nonces(9, 7)),
        frame(OPENED, A, B, target_epoch=EPOCH[2], payload=nonces(0, 9)),
    ]  # fmt: skip
    file = at_one_port(tmp_path, frames)
    assert fields(file, "mbcf.nonce", "mbcf.echo") == [["7", "0"], ["9", "7"], ["0", "9"]]
    assert experts(file) == [""] * 3


@pytest.mark.parametrize(
    ("flag", "name"),
    [(1, "unsure"), (2, "ack_now"), (4, "more"), (8, "retx"), (16, "wide"), (32, "part"), (64, "defines")],
)
def test_flags_are_bits(tmp_path: Path, flag: int, name: str) -> None:
    names = ("unsure", "ack_now", "more", "retx", "wide", "part", "defines")
    data = frame(FIFO, A, B, seq=1, flags=flag, payload=bytes(24), short=True)
    (line,) = fields(at_one_port(tmp_path, [data]), *(f"mbcf.flags.{one}" for one in names))
    assert [one in ("1", "True") for one in line] == [one == name for one in names]


PAYLOADS = [
    (TASKQUE, struct.pack(">QII", 0xAB, 3, 0x80000401) + b"hi", {"taskque.key": "0x00000000000000ab",
     "taskque.permission": "3", "taskque.connection": "0x80000401", "data": "6869"}),
    (READ, struct.pack(">II", 1408, 0), {"read.length": "1408", "data": ""}),
    (SIGNAL, b"!", {"signal.argument": "", "data": "21"}),
    (SWAP, struct.pack(">Q", 9), {"operand": "0x0000000000000009", "data": ""}),
    (FETCH_ADD, struct.pack(">Q", 10), {"operand": "0x000000000000000a"}),
    (CAS, struct.pack(">QQ", 1, 2), {"cas.expected": "0x0000000000000001", "cas.new": "0x0000000000000002"}),
    (CLOSE, struct.pack(">II", 0x80000401, 5), {"close.connection": "0x80000401", "close.peer": "0x00000005",
     "data": ""}),
]  # fmt: skip


@pytest.mark.parametrize(("op", "payload", "wanted"), PAYLOADS, ids=lambda value: str(value)[:12])
def test_payload_of_each_operation(tmp_path: Path, op: int, payload: bytes, wanted: dict[str, str]) -> None:
    file = at_one_port(tmp_path, [frame(op, A, B, seq=1, payload=payload, op_id=5)])
    (line,) = fields(file, *(f"mbcf.{name}" for name in wanted))
    assert dict(zip(wanted, line, strict=True)) == wanted
    assert experts(file) == [""]


@pytest.mark.parametrize("count", range(5))
def test_a_signal_has_as_many_arguments_as_it_says(tmp_path: Path, count: int) -> None:
    payload = struct.pack(f">{count}Q", *range(1, count + 1)) + b"!"
    file = at_one_port(tmp_path, [frame(SIGNAL, A, B, seq=1, payload=payload, status=count)])
    (line,) = fields(file, "mbcf.signal.arguments", "mbcf.signal.argument", "mbcf.data", "mbcf.status")
    assert line == [str(count), ",".join(f"0x{one:016x}" for one in range(1, count + 1)), "21", ""]
    assert experts(file) == [""]


def test_parts_of_a_fifo_segment(tmp_path: Path) -> None:
    call = rpc_call(0x77, 2000)  # 2044 bytes
    parts = [
        frame(FIFO, A, B, seq=1, flags=PART | MORE, op_id=9, payload=struct.pack(">II", 2044, 0) + call[:1400]),
        frame(FIFO, A, B, seq=2, flags=PART | ACK_NOW, op_id=9, payload=struct.pack(">II", 2044, 1400) + call[1400:]),
        frame(ACK, B, A, ack=2),
    ]
    names = ("part.total", "part.offset", "segment.reassembled_in", "segment.part", "segment.length", "rpc.xid")
    rows = fields(at_one_port(tmp_path, parts), *(f"mbcf.{name}" for name in names), "rpc.xid")
    assert rows[0] == ["2044", "0", "2", "", "", "0x00000077", ""]
    assert rows[1] == ["2044", "1400", "", "1,2", "2044", "", "0x00000077"]


def test_a_part_out_of_place_is_told(tmp_path: Path) -> None:
    parts = [
        frame(FIFO, A, B, seq=1, flags=PART | MORE, op_id=9, payload=struct.pack(">II", 20, 0) + bytes(10)),
        frame(FIFO, A, B, seq=2, flags=PART, op_id=9, payload=struct.pack(">II", 20, 12) + bytes(8)),
    ]
    assert experts(at_one_port(tmp_path, parts)) == ["", "The segment goes on at 10"]


def test_requests_and_results_find_each_other(tmp_path: Path) -> None:
    frames = [
        frame(SWAP, A, B, seq=1, ack=0, flags=WIDE, op_id=1025, payload=struct.pack(">Q", 5)),
        frame(WRITE, A, B, seq=2, ack=0, op_id=1026, payload=b"data"),
        frame(RESULT, B, A, seq=1, ack=1, op_id=1025, payload=struct.pack(">Q", 4), answers=1),
        frame(RESULT, B, A, seq=2, ack=2, op_id=1026, answers=2),
        frame(RESULT, B, A, seq=3, ack=2, op_id=1099, answers=7),
    ]
    names = ("response_in", "request_in", "time", "result.op", "result.old", "analysis.acks_frame")
    file = at_one_port(tmp_path, frames)
    rows = fields(file, *(f"mbcf.{name}" for name in names))
    assert rows[:2] == [["3", "", "", "", "", ""], ["4", "", "", "", "", ""]]
    assert rows[2] == ["", "1", "0.000020000", "0x15", "0x0000000000000004", "1"]
    assert rows[3] == ["", "2", "0.000020000", "0x11", "", "2"]
    assert experts(file)[4] == "RESULT of no request that was seen"


def test_what_is_read_is_one_segment(tmp_path: Path) -> None:
    call = rpc_call(0x99, 2000)
    frames = [
        frame(READ, B, A, seq=1, ack=0, flags=MORE, op_id=7, payload=struct.pack(">II", 1408, 0)),
        frame(READ, B, A, seq=2, ack=0, op_id=7, payload=struct.pack(">II", 636, 0)),
        frame(RESULT, A, B, seq=1, ack=1, op_id=7, payload=call[:1408]),
        frame(RESULT, A, B, seq=2, ack=2, op_id=7, payload=call[1408:]),
    ]
    rows = fields(at_one_port(tmp_path, frames), "mbcf.rpc.xid", "mbcf.segment.length", "rpc.xid", "rpc.msgtyp")
    assert rows[2:] == [["0x00000099", "", "", ""], ["", "2044", "0x00000099", "0"]]


def rpc_head(kind: int) -> bytes:
    return struct.pack(">QII", 1, 2, 0x80000401) + struct.pack("<QII", 0x400000, 1000, kind)


def test_sun_rpc_calls_and_replies(tmp_path: Path) -> None:
    frames = [
        frame(FIFO, A, B, seq=1, ack=0, payload=rpc_call(0x10, 16)),
        frame(SIGNAL, A, B, seq=2, ack=0, payload=bytes(16) + rpc_call(0x11, 16), status=2),
        frame(TASKQUE, A, B, seq=3, ack=0, payload=rpc_head(1) + rpc_call(0x12, 16)),
        *(frame(FIFO, B, A, seq=1 + n, ack=3, payload=rpc_reply(0x10 + n, 16)) for n in range(3)),
    ]
    names = ("mbcf.rpc.type", "mbcf.rpc.reply_in", "mbcf.rpc.call_in", "mbcf.rpc.time", "rpc.xid", "rpc.msgtyp")
    rows = fields(at_one_port(tmp_path, frames), *names, "rpc.time")
    for n in range(3):
        assert rows[n] == ["0", str(n + 4), "", "", f"0x0000001{n}", "0", ""]
        assert rows[n + 3] == ["1", "", str(n + 1), "0.000030000", f"0x0000001{n}", "1", "0.000030000"]


def test_heads_of_rpc_over_mbcf(tmp_path: Path) -> None:
    source = rpc_head(2) + struct.pack("<QII", 0x600000, 5000, 0)
    bind = rpc_head(3) + struct.pack("<6I", 0x20001998, 1, 3, 66000, 4, 0)
    bound = struct.pack("<IIQQQQIIIHH", 0x444E424D, 0, 7, 8, 9, 10, 4096, 2, 512, 288, 0)
    asked = [frame(TASKQUE, A, B, seq=place, payload=payload) for place, payload in ((1, source), (2, bind))]
    file = at_one_port(tmp_path, [*asked, frame(FIFO, B, A, seq=1, payload=bound)])
    names = ("rpc.kind", "rpc.replies", "rpc.source.length", "rpc.server_type", "rpc.depth", "rpc.key", "rpc.task")
    assert fields(file, *(f"mbcf.{name}" for name in names)) == [
        ["2", "0x0000000000400000", "5000", "", "", "", ""],
        ["3", "0x0000000000400000", "", "3", "4", "", ""],
        ["", "", "", "", "", "0x0000000000000007", "288"],
    ]


WRONG = [
    (frame(0x77, A, B, seq=1), "Unknown operation"),
    (frame(WRITE, A, B, seq=1, version=1), "Unknown version"),
    (frame(ACK, A, B, tag=4), "Reserved field is not zero"),
    (frame(WRITE, A, B, seq=1, flags=0x80), "Reserved flag"),
    (frame(WRITE, A, B, seq=1, status=4), "Status outside a RESULT"),
    (frame(RESULT, A, B, seq=1, status=4), "The operation failed: not an accesskey of the task"),
    (frame(WRITE, A, B, seq=0), "In the sequence, but without a number"),
    (frame(ACK, A, B, seq=4), "Outside the sequence, but with a number"),
    (frame(WRITE, A, B, seq=1, epoch=0), "Epoch is 0"),
    (frame(WRITE, A, B, seq=1, length=9), "The frame has room for 2 bytes of payload"),
    (frame(WRITE, A, B, seq=1, payload=bytes(1409)), "More than 1408 bytes of payload"),
    (frame(READ, A, B, seq=1, payload=bytes(7)), "READ has 8 bytes of payload"),
    (frame(CAS, A, B, seq=1, payload=bytes(8)), "CAS has 16 bytes of payload"),
    (frame(TASKQUE, A, B, seq=1, payload=bytes(15)), "The payload has at least 16 bytes"),
    (frame(SIGNAL, A, B, seq=1, payload=bytes(31), status=4), "The payload has at least 32 bytes"),
    (frame(SIGNAL, A, B, seq=1, payload=bytes(40), status=5), "More arguments than a SIGNAL has"),
    (frame(FIFO, A, B, seq=1, flags=PART, payload=bytes(7)), "The payload has at least 8 bytes"),
    (frame(PROBE, A, B, payload=b"x"), "PROBE has 0 bytes of payload"),
    (frame(WRITE, A, B, seq=1, payload=b"a")[:-1] + b"\1", "Padding is not zero"),
    (frame(READ, A, B, seq=1, payload=struct.pack(">II", 8, 1)), "Reserved field is not zero"),
    (frame(WRITE, A, B, seq=1)[:36], "Shorter than the header"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "text"), WRONG, ids=lambda value: value if isinstance(value, str) else "")
def test_expert_warnings(tmp_path: Path, data: bytes, text: str) -> None:
    (said,) = experts(at_one_port(tmp_path, [data]))
    assert text in said


def test_the_sequence_of_a_channel(tmp_path: Path) -> None:
    def write(seq: int, **more: Any) -> bytes:
        return frame(WRITE, B, A, seq=seq, payload=bytes([seq]), **more)

    frames = [
        write(1), write(1), write(1, flags=RETX), write(4), write(2), write(3), write(4, flags=RETX),
        write(6, flags=RETX), frame(ACK, A, B, ack=4), frame(ACK, A, B, ack=4), frame(ACK, A, B, ack=9),
    ]  # fmt: skip
    names = ("retransmission", "duplicate", "first", "gap", "duplicate_ack", "ack_unseen")
    rows = fields(at_one_port(tmp_path, frames), *(f"mbcf.analysis.{name}" for name in names))
    seen = [[name for name, value in zip(names, line, strict=True) if value] for line in rows]
    assert seen == [
        [], ["duplicate", "first"], ["retransmission", "first"], ["gap"], [], [], ["retransmission", "first"],
        ["retransmission", "gap"], [], ["duplicate_ack"], ["ack_unseen"],
    ]  # fmt: skip
    assert (rows[3][3], rows[6][2]) == ("2", "4")


def test_frames_and_their_acknowledgement_find_each_other(tmp_path: Path) -> None:
    def write(seq: int, **more: Any) -> bytes:
        return frame(WRITE, A, B, seq=seq, payload=b"data", **more)

    frames = [
        write(1, flags=MORE), write(2, flags=ACK_NOW), frame(ACK, B, A, ack=2), write(3), write(4),
        frame(WRITE, B, A, seq=9, ack=3), frame(WRITE, B, A, seq=11, ack=4), frame(ACK, B, A, ack=4, flags=UNSURE),
        frame(ACK, B, A, ack=4),
    ]  # fmt: skip
    rows = fields(at_one_port(tmp_path, frames), "mbcf.acked_in", "mbcf.ack_time", "mbcf.analysis.acks_frame")
    assert rows == [
        ["3", "0.000020000", ""], ["3", "0.000010000", ""], ["", "", "2"],
        # Any frame brings an acknowledgement, but none that comes behind a gap, or while an error may be on its way.
        ["6", "0.000020000", ""], ["9", "0.000040000", ""], ["", "", "4"], ["", "", "5"], ["", "", "5"], ["", "", "5"],
    ]  # fmt: skip


def test_sequence_numbers_go_round_without_zero(tmp_path: Path) -> None:
    most = 2**32 - 1
    frames = [
        *(frame(WRITE, A, B, seq=seq, payload=b"data") for seq in (most - 1, most, 1, 3)), frame(ACK, B, A, ack=1),
        frame(WRITE, A, B, seq=most, flags=RETX, payload=b"data"),
    ]  # fmt: skip
    names = ("acked_in", "analysis.gap", "analysis.duplicate", "analysis.retransmission", "analysis.ack_unseen")
    assert fields(at_one_port(tmp_path, frames), *(f"mbcf.{name}" for name in names)) == [
        ["5", "", "", "", ""], ["5", "", "", "", ""], ["5", "", "", "", ""], ["", "1", "", "", ""], [""] * 5,
        ["", "", "", "1", ""],
    ]  # fmt: skip


def test_the_retx_flag_is_checked_where_frames_leave(tmp_path: Path) -> None:
    frames = [frame(WRITE, A, B, seq=1, flags=RETX), frame(WRITE, A, B, seq=2), frame(WRITE, A, B, seq=2)]
    rows = experts(at_one_port(tmp_path, frames))
    assert "RETX on a frame not sent before" in rows[0]
    assert rows[1] == ""
    assert "Sent again without RETX" in rows[2]


def test_a_second_sighting_is_no_retransmission(tmp_path: Path) -> None:
    file = tmp_path / "both.pcapng"
    data = [frame(FIFO, A, B, seq=n, payload=rpc_call(n, 16)) for n in (1, 2, 3)]
    records = []
    for n, whole in enumerate(data):
        at = 10_000 * n
        records += [
            Record(at, 0, OUT, whole),
            Record(at + 900, 2, 0, whole, "lost: no"),
            Record(at + 2000, 1, IN, whole),
        ]
    file.write_bytes(capture(["n1:eth0", "n2:eth0", "lan:fate"], records))
    rows = fields(file, "mbcf.analysis.retransmission", "mbcf.analysis.duplicate", "mbcf.analysis.gap", "rpc.dup")
    assert rows == [["", "", "", ""]] * 9
    # Also where the first pass builds no tree, and so gives no interface.
    assert "Duplicate" not in tshark(file, "-2")


def test_epochs(tmp_path: Path) -> None:
    frames = [
        frame(WRITE, A, B, seq=1), frame(SYN, A, B, epoch=99, payload=nonces(1)), frame(WRITE, A, B, seq=1, epoch=99),
        frame(WRITE, A, B, seq=2), frame(ACK, B, A, ack=1),
    ]  # fmt: skip
    rows = fields(at_one_port(tmp_path, frames), "mbcf.analysis.new_epoch", "mbcf.analysis.stale_epoch")
    assert [["new" if a else "", "stale" if b else ""] for a, b in rows] == [
        ["", ""], ["new", ""], ["", ""], ["", "stale"], ["", "stale"],
    ]  # fmt: skip


def test_channels_and_connections_are_numbered_both_ways(tmp_path: Path) -> None:
    frames = [
        frame(WRITE, A, B, seq=1),
        frame(WRITE, B, A, seq=1),
        frame(WRITE, (1, 5), B, seq=2),
        frame(SYN, (3, 0), A, payload=nonces(1)),
    ]
    assert fields(at_one_port(tmp_path, frames), "mbcf.channel", "mbcf.connection") == [
        ["0", "0"], ["0", "0"], ["0", "1"], ["1", "2"],
    ]  # fmt: skip


def test_the_line_of_a_frame(tmp_path: Path) -> None:
    data = frame(WRITE, A, B, seq=7, ack=5, payload=b"abc", flags=ACK_NOW, op_id=9)
    line = tshark(at_one_port(tmp_path, [data]))
    assert "MBCF 61 1.272 → 2.288 WRITE [ACK_NOW, DEFINES] Seq=7 Ack=5 Id=9 Len=3" in line


@pytest.mark.parametrize("name", ["operations", "statuses", "faults", "restart"])
def test_frames_of_the_protocol_itself(name: str) -> None:
    """Captures that guest-apps/sss-core/tests/mbcf_golden.c made: everything in them is well formed."""
    file = GOLDEN / f"{name}.pcap"
    rows = fields(file, "mbcf.op", "_ws.expert.message")
    allowed = {
        "operations": (),
        "statuses": ("The operation failed", "Unknown operation"),
        "faults": ("Retransmission", "Duplicate", "Dup ACK", "Gap", "Sent again"),
        "restart": ("New epoch", "Retransmission", "The operation failed"),
    }[name]
    assert all(op for op, _ in rows)
    for _, said in rows:
        for part in filter(None, said.split(",")):
            assert any(part.startswith(word) for word in (*allowed, "Dup ACK")), said


def many(directory: Path, frames: int) -> Path:
    """A capture of so many frames of RPC over MBCF."""
    records = []
    for n in range(frames // 2):
        at = 40_000 * n
        records.append(Record(at, 0, OUT, frame(FIFO, A, B, seq=n + 1, ack=n, payload=rpc_call(n, 16))))
        records.append(Record(at + 20_000, 0, IN, frame(FIFO, B, A, seq=n + 1, ack=n + 1, payload=rpc_reply(n, 16))))
    file = directory / f"many-{frames}.pcapng"
    file.write_bytes(capture(["n1:eth0"], records))
    return file


@pytest.mark.night
@pytest.mark.timeout(900)
def test_time_grows_with_the_number_of_frames(tmp_path: Path) -> None:
    """Everything dissected; what is kept of each channel must not slow down later frames."""

    def work(frames: int) -> Callable[[], object]:
        file = many(tmp_path, frames)
        return lambda: tshark.by_itself(file, "-T", "fields", "-e", "mbcf.op", "-e", "rpc.xid")

    assert growth(work, small=2000) < NEAR_LINEAR
