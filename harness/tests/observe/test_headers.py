# SPDX-License-Identifier: Apache-2.0
"""Fields read from the bytes: of frames packed by hand, and never another value than tshark's."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import numpy as np
import polars as pl

from sundial.observe import read_frames
from sundial.observe.headers import header_columns
from sundial.observe.octets import Octets
from tests.verify.bed import CLIENT, MAC, SERVER, Record, address, capture

TCP = struct.pack(">HHIIHHHH", 7, 8, 9, 0xFFFFFFFE, 0x6012, 5, 6, 7) + b"\2\4\5\xb4" + b"payload"
UDP = struct.pack(">HHHH", 7, 8, 11, 0x1234) + b"abc"


def packet(protocol: int, payload: bytes, *, fragment: int = 0x4000, checksum: int = 0, first: int = 0x45) -> bytes:
    head = struct.pack(">BBHHHBBH", first, 0x10, 20 + len(payload), 77, fragment, 63, protocol, checksum)
    return MAC[SERVER] + MAC[CLIENT] + b"\x08\x00" + head + address(CLIENT) + address(SERVER) + payload


def read(*frames: bytes, ethernet: bool = True) -> pl.DataFrame:
    length = np.array([len(frame) for frame in frames])
    return header_columns(
        Octets(np.frombuffer(b"".join(frames), np.uint8), np.cumsum(length) - length, length), ethernet=ethernet
    )


def test_fields_of_a_segment() -> None:
    row = read(packet(6, TCP)).row(0, named=True)
    assert row["eth_source"] == int.from_bytes(MAC[CLIENT])
    assert row["eth_target"] == int.from_bytes(MAC[SERVER])
    expected = {
        "eth_type": 0x800, "ip_version": 4, "ip_header": 20, "ip_tos": 0x10, "ip_length": 20 + len(TCP), "ip_id": 77,
        "ip_flags": 2, "more": False, "fragment_offset": 0, "ip_ttl": 63, "protocol": 6, "source_port": 7,
        "target_port": 8, "tcp_seq": 9, "tcp_ack": 0xFFFFFFFE, "tcp_header": 24, "tcp_flags": 0x12, "tcp_window": 5,
        "tcp_checksum": 6, "tcp_urgent": 7, "tcp_length": 7, "udp_length": None, "udp_checksum": None,
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected


def test_fields_of_a_datagram_and_its_fragments() -> None:
    table = read(packet(17, UDP), packet(17, UDP, fragment=0x2000), packet(17, UDP, fragment=0x0003))
    assert table["udp_checksum"].to_list() == [0x1234, 0x1234, None]
    assert table["udp_length"].to_list() == [11, 11, None]
    assert table["more"].to_list() == [False, True, False]
    assert table["fragment_offset"].to_list() == [0, 0, 24]


def test_sums() -> None:
    frame = packet(17, UDP)
    words = sum(struct.unpack(">10H", frame[14:34]))
    right = 0xFFFF - (words % 0xFFFF)
    table = read(packet(17, UDP, checksum=right), packet(17, UDP, checksum=right ^ 1), frame + b"\xff" * 20)
    assert table["ip_checksum_right"].to_list() == [True, False, False]
    assert table["ip_payload_sum"].unique().to_list() == [sum(struct.unpack(">6H", UDP + b"\0")) % 0xFFFF]


def test_what_is_no_such_header_is_null() -> None:
    whole = packet(17, UDP)
    cases = {
        "half an Ethernet header": (whole[:13], "eth_type", None),
        "no IPv4": (whole[:12] + b"\x86\xdd" + whole[14:], "ip_ttl", None),
        "a version": (packet(17, UDP, first=0x65), "ip_version", 6),
        "of no IPv4": (packet(17, UDP, first=0x65), "ip_ttl", None),
        "a short header": (packet(17, UDP, first=0x44), "ip_ttl", None),
        "half a UDP header": (whole[:41], "udp_checksum", None),
        "a datagram cut in the capture": (whole[:-1], "ip_payload_sum", None),
        "of another link": (whole, "eth_type", None),
    }
    for what, (frame, column, value) in cases.items():
        assert read(frame, ethernet=what != "of another link")[column].item() == value, what


def test_tshark_reads_the_same(tmp_path: Path) -> None:
    """1000 frames with flipped bits: both readers say the same, or one of them says that it is not a header."""
    generator = random.Random(1)
    frames = []
    for place in range(1000):
        frame = bytearray(packet(*((6, TCP), (17, UDP))[place % 2]))
        for _ in range(place % 4):
            frame[generator.randrange(15, len(frame))] ^= 1 << generator.randrange(8)
        frames.append(bytes(frame))
    file = tmp_path / "lan.pcapng"
    file.write_bytes(capture(["client:eth0"], [Record(at, 0, 2, frame) for at, frame in enumerate(frames)]))
    table = read_frames([(file, "lan")], 0)
    differing = table.filter(pl.col("read_differently").is_not_null())
    assert differing.height < 30
    # Each of them has an impossible length of an IP or TCP header.
    assert table.filter(pl.arange(pl.len()) % 4 == 0)["read_differently"].is_null().all()
    assert table["octets_hash"].n_unique() == len(set(frames))
