# SPDX-License-Identifier: Apache-2.0
"""tshark as the witness of what is read from bytes: each column of each plain frame is as tshark shows it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random

import polars as pl
import pytest

from mutation import runs
from sundial.observe import open_capture, read_frames
from sundial.observe.asked import FIELDS, asked
from sundial.observe.tshark import dissect
from tests.verify.bed import CLIENT, MAC, SERVER, address

GATE = ("dce-loss-virtual", "grpc-virtual", "iperf3-virtual", "lane-virtual", "sunrpc-virtual", "vrpc-virtual")
RPC_PORTS = (111, 2000, 2001)
DCE = {
    "dce_type": "dcerpc.pkt_type", "dce_sequence": "dcerpc.dg_seqnum", "dce_fragment": "dcerpc.dg_frag_num",
    "dce_length": "dcerpc.dg_frag_len", "dce_opnum": "dcerpc.opnum", "dce_activity": "dcerpc.dg_act_id",
    "dce_interface": "dcerpc.dg_if_id",
}  # fmt: skip


def night_but(names: tuple[str, ...]) -> list[object]:
    return [pytest.param(name, marks=() if name in names else pytest.mark.night) for name in runs.stored()]


def differing(file: Path) -> tuple[int, list[tuple[str, int, object, object]]]:
    """How many frames are not plain; column, frame, our value and that of tshark where they differ in others."""
    opened = open_capture(file)
    used = [each for each in opened.interfaces if len(each.blocks)]
    if not used:
        return 0, []
    witness = asked(opened, used)
    opened.close()
    own = read_frames([(file, "lan")], 0)
    assert own.height == witness.height
    found = []
    for column in witness.columns:
        both = own.select("frame", own=column).with_columns(
            other=witness[column].cast(own.schema[column]), column=pl.lit(column)
        )
        found += both.filter(pl.col("own").ne_missing(pl.col("other"))).select("column", "frame", "own", "other").rows()
    return own["read_differently"].count(), found


@pytest.mark.parametrize("name", night_but(GATE))
def test_recorded_runs(name: str, tmp_path: Path) -> None:
    run = runs.recorded(name, tmp_path)
    for file in (run / "wire").glob("*.pcapng"):
        assert differing(file) == (0, []), file.name


def fields(file: Path, names: Mapping[str, str], options: tuple[str, ...]) -> pl.DataFrame:
    (table,) = dissect([file.read_bytes()], ["frame.number", *names.values()], options=options, name=file, whole=True)
    return table.rename({shown: name for name, shown in names.items()} | {"frame.number": "frame"}).cast(
        {"frame": pl.UInt32}
    )


@pytest.mark.parametrize("name", night_but(("dce-loss-virtual",)))
def test_pdus(name: str, tmp_path: Path) -> None:
    """Every field of DCE RPC that tshark has, where it takes a frame for a PDU (WireGuard's dissector takes some)."""
    if not name.startswith("dce"):
        pytest.skip("no DCE RPC")
    (file,) = (runs.recorded(name, tmp_path) / "wire").glob("*.pcapng")
    own = read_frames([(file, "lan")], 0)
    both = own.join(fields(file, DCE, ("--disable-protocol wg",)), on="frame", suffix="_there")
    both = both.filter(pl.col("dce_type").is_not_null(), pl.col("dce_type_there").is_not_null())
    assert both.height > 50
    for column in DCE:
        there = pl.col(f"{column}_there")
        words = pl.col(column).cast(pl.String)
        assert both.filter(words.ne_missing(there)).select(column, there).rows() == [], column


@pytest.mark.parametrize("name", night_but(("sunrpc-virtual",)))
def test_names_of_messages(name: str, tmp_path: Path) -> None:
    """Of Sun RPC, where tshark dissects it too: it does not without a call, nor what is sent again over TCP."""
    if not name.startswith(("sunrpc-r", "sunrpc-v", "switch", "netem", "link", "jitter", "lane", "trace")):
        pytest.skip("no Sun RPC over UDP and TCP")
    rules = [f"-d {transport}.port=={port},rpc" for transport in ("udp", "tcp") for port in RPC_PORTS]
    options = ("-o rpc.dissect_unknown_programs:TRUE", "-o ip.defragment:FALSE", *rules)
    for file in (runs.recorded(name, tmp_path) / "wire").glob("*.pcapng"):
        there = fields(file, {"there": "rpc.xid"}, options).drop_nulls()
        both = read_frames([(file, "lan")], 0).join(there, on="frame").drop_nulls("rpc_xid")
        own = pl.format("0x{}", pl.col("rpc_xid").map_elements("{:08x}".format, return_dtype=pl.String))
        assert both.height > 20
        assert both.filter(own != pl.col("there")).select("frame", "rpc_xid", "there").rows() == []


def ip(protocol: int, payload: bytes, fragment: int = 0x4000, options: bytes = b"", length: int | None = None) -> bytes:
    total = 20 + len(options) + len(payload) if length is None else length
    head = struct.pack(">BBHHHBBH", 0x45 + len(options) // 4, 0, total, 77, fragment, 63, protocol, 0)
    return MAC[SERVER] + MAC[CLIENT] + b"\x08\x00" + head + address(CLIENT) + address(SERVER) + options + payload


def udp(data: bytes, length: int | None = None) -> bytes:
    return struct.pack(">HHHH", 7000, 8000, 8 + len(data) if length is None else length, 0) + data


def tcp(options: bytes, data: bytes, flags: int = 0x18) -> bytes:
    words = (20 + len(options)) // 4 << 12 | flags
    return struct.pack(">HHIIHHHH", 7000, 8000, 0xFFFFFFF0, 9, words, 5, 6, 0) + options + data


STAMP = struct.pack(">BBII", 8, 10, 0xFEDCBA98, 7)
FRAMES: Mapping[str, bytes] = {
    "datagram": ip(17, udp(bytes(range(100)))),
    "short datagram": ip(17, udp(b"abc")),
    "empty datagram": ip(17, udp(b"")),
    "padded datagram": ip(17, udp(b"ab")) + bytes(16),
    "first fragment": ip(17, udp(bytes(80), 1000), 0x2000),
    "further fragment": ip(17, bytes(80), 0x2010),
    "last fragment": ip(6, bytes(80), 0x0010),
    "fragment of a message": ip(1, bytes(80), 0x0010),
    "opening": ip(6, tcp(b"\2\4\5\xb4\4\2" + STAMP + b"\1\3\3\7", b"", 2)),
    "segment": ip(6, tcp(b"\1\1" + STAMP, bytes(range(50)))),
    "segment without options": ip(6, tcp(b"", bytes(range(50)))),
    "acknowledgement with blocks": ip(6, tcp(b"\1\1" + STAMP + b"\1\1\5\x0a" + bytes(8), b"", 0x10)),
    "end of options": ip(6, tcp(b"\0\0\0\0", b"x")),
    "mss behind the end": ip(6, tcp(b"\0\2\4\5\xb4\0\0\0", b"x")),
    "echo": ip(1, b"\x08\0" + bytes(6) + b"data"),
    "unreachable": ip(1, b"\3\3" + bytes(6) + ip(17, udp(b"quoted"))[14:]),
    "arp": MAC[SERVER] + MAC[CLIENT] + b"\x08\x06" + struct.pack(">HHBBH", 1, 0x800, 6, 4, 1) + bytes(20),
    "experiment": MAC[SERVER] + MAC[CLIENT] + b"\x88\xb6" + bytes(46),
    "vlan": ip(17, udp(b"abc"))[:12] + b"\x81\0\0\5" + ip(17, udp(b"abc"))[12:],
    "ip in ip": ip(4, ip(17, udp(b"inner"))[14:]),
    "options of ip": ip(17, udp(b"abc"), options=b"\1\1\1\0"),
    "too long": ip(17, udp(b"abc"), length=200),
    "no length": ip(6, tcp(b"", b"abc"), length=0),
    "unknown option": ip(6, tcp(b"\xfd\4\1\2", b"abc")),
    "two stamps": ip(6, tcp(b"\1\1" + STAMP + b"\1\1" + STAMP, b"abc")),
    "length of 802.3": MAC[SERVER] + MAC[CLIENT] + b"\0\x20" + bytes(32),
    "half a header": ip(17, udp(b"abc"))[:30],
}


def whole(frame: bytes, generator: Random) -> bytes:
    return frame


def flipped(frame: bytes, generator: Random) -> bytes:
    """Up to three bits of the headers."""
    found = bytearray(frame)
    for _ in range(generator.randrange(1, 4)):
        found[generator.randrange(12, min(len(frame), 80))] ^= 1 << generator.randrange(8)
    return bytes(found)


def cut(frame: bytes, generator: Random) -> bytes:
    return frame[: generator.randrange(14, len(frame) + 1)]


def written(file: Path, frames: Sequence[bytes], lengths: Sequence[int]) -> Path:
    """`lengths`: of the frames on the wire."""
    head = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)
    records = [
        struct.pack("<IIII", 0, at, len(frame), length) + frame
        for at, (frame, length) in enumerate(zip(frames, lengths, strict=True))
    ]
    file.write_bytes(head + b"".join(records))
    return file


@pytest.mark.parametrize(("change", "times"), [(whole, 1), (flipped, 200), (cut, 40)], ids=["whole", "flipped", "cut"])
def test_frames_of_all_kinds(change: Callable[[bytes, Random], bytes], times: int, tmp_path: Path) -> None:
    generator = Random(1)
    frames = [change(frame, generator) for frame in FRAMES.values() for _ in range(times)]
    assert differing(written(tmp_path / "lan.pcap", frames, [len(frame) for frame in frames]))[1] == []


def test_captures_of_the_first_bytes(tmp_path: Path) -> None:
    """Of longer frames."""
    both = [(cut(frame, Random(times)), len(frame)) for frame in FRAMES.values() for times in range(40)]
    frames, lengths = zip(*both, strict=True)
    assert differing(written(tmp_path / "lan.pcap", frames, lengths))[1] == []


def test_what_is_usual_is_plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without tshark."""
    odd = list(FRAMES).index("unreachable"), list(FRAMES).index("vlan")
    usual = [frame for place, frame in enumerate(FRAMES.values()) if place < odd[1] and place != odd[0]]
    file = written(tmp_path / "lan.pcap", usual, [len(frame) for frame in usual])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert read_frames([(file, "lan")], 0).height == len(usual)


def test_columns_are_all_that_tshark_gives() -> None:
    assert {"udp_head", "tcp_mss", "icmp_type"} <= {field.column for field in FIELDS}
