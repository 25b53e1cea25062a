# SPDX-License-Identifier: Apache-2.0
"""A capture that is verified part by part has the verdict, findings, numbers and counts of one that is not."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from benchmarks.captures import write_small_frames
from sundial.errors import BadInput
from sundial.observe import divide, open_capture
from sundial.verify import Verification, verify_pcap
from sundial.verify.sockets import any_capture
from tests.verify.real import GOLDEN
from tests.verify.test_golden import PORT, Damage, blocks, flipped, frame_places, removed, shortened

FEW = 20
"""Frames a part: the captures have some 80."""


def in_parts(
    file: Path, protocol: str, mtu: int | None, port: int | None, monkeypatch: pytest.MonkeyPatch
) -> Verification:
    with monkeypatch.context() as patched:
        patched.setattr(any_capture, "FRAMES_AT_ONCE", FEW)
        return verify_pcap(file, protocol=protocol, mtu=mtu, port=port)


@pytest.mark.parametrize(
    ("file", "protocol", "mtu", "port"),
    [
        ("run.client.pcapng", "sunrpc-udp", 1500, None),
        ("run.server.pcapng", "sunrpc-tcp", 1500, PORT),
        ("small.client.pcapng", "sunrpc-udp", 576, PORT),
        ("small.client.pcapng", "sunrpc-udp", 1500, None),
        ("small.client.pcapng", "sunrpc-tcp", 1500, None),
        ("small.client.pcapng", "sunrpc-udp", None, None),
        ("small.client.pcapng", "sunrpc-tcp", None, None),
    ],
)
def test_parts_are_as_good_as_the_whole(
    file: str, protocol: str, mtu: int | None, port: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = verify_pcap(GOLDEN / file, protocol=protocol, mtu=mtu, port=port)
    assert in_parts(GOLDEN / file, protocol, mtu, port, monkeypatch) == whole


@pytest.mark.parametrize("damage", [removed, shortened, flipped])
def test_damage_is_found_in_parts_too(tmp_path: Path, damage: Damage, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = blocks((GOLDEN / "small.client.pcapng").read_bytes())
    places = [place for place in frame_places(parts) if parts[place][28 + 23] == 17]
    for place in places[::8]:
        target = tmp_path / "damaged.pcapng"
        target.write_bytes(b"".join(damage(parts, place)))
        whole = verify_pcap(target, protocol="sunrpc-udp", mtu=576, port=PORT)
        assert whole.verdict == "fail"
        assert in_parts(target, "sunrpc-udp", 576, PORT, monkeypatch) == whole


def test_a_part_has_what_must_be_seen_together() -> None:
    capture = open_capture(GOLDEN / "run.client.pcapng")
    parts = list(divide(capture, FEW))
    assert len(parts) > 1
    seen: dict[bytes, int] = {}
    numbers = []
    for place, part in enumerate(parts):
        for block in part.interfaces[0].each():
            numbers.append(block[-1])
            frame = part.packet(block)
            if frame[12:14] == b"\x08\x00" and frame[23] == 6:
                ends = sorted([frame[26:30] + frame[34:36], frame[30:34] + frame[36:38]])
                assert seen.setdefault(b"".join(ends), place) == place, "a connection is not cut"
    capture.close()
    assert sorted(numbers) == list(range(1, capture.frames + 1))


def unreachable(quoted: bytes) -> bytes:
    """An ICMP message (RFC 792, type 3) of the receiver about a datagram, in a frame."""
    ip = quoted[14:42]
    header = struct.pack(">BBHHHBBH", 0x45, 0, 28 + len(ip), 0, 0, 64, 1, 0) + ip[16:20] + ip[12:16]
    return quoted[6:12] + quoted[:6] + b"\x08\x00" + header + bytes([3, 3, 0, 0, 0, 0, 0, 0]) + ip


def test_an_icmp_message_is_with_the_first_datagram_that_it_quotes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "small.pcapng"
    write_small_frames(file, 4 * FEW)
    parts = blocks(file.read_bytes())
    frame = unreachable(parts[-1][28:88])
    length = 32 + (len(frame) + 3) // 4 * 4
    block = struct.pack("<III", 6, length, 0) + parts[-1][12:20] + struct.pack("<II", len(frame), len(frame))
    file.write_bytes(b"".join([*parts, block + frame.ljust(length - 32, b"\0") + struct.pack("<I", length)]))
    late = bytearray(file.read_bytes())
    struct.pack_into("<I", late, len(late) - length + 16, 1 << 31)
    file.write_bytes(late)
    whole = verify_pcap(file, protocol="raw-udp")
    assert whole.classified == {"call": 4 * FEW, "icmp_unreachable": 1}
    assert in_parts(file, "raw-udp", None, None, monkeypatch) == whole


def test_what_is_not_there_is_refused_in_parts_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "small.pcapng"
    write_small_frames(file, 4 * FEW)
    with pytest.raises(BadInput, match="holds no sunrpc over udp"):
        in_parts(file, "sunrpc-udp", 1500, None, monkeypatch)
    with pytest.raises(BadInput, match="holds no call of raw over udp to port 9"):
        in_parts(file, "raw-udp", 1500, 9, monkeypatch)


def test_frames_of_the_generator_are_right(tmp_path: Path) -> None:
    file = tmp_path / "small.pcapng"
    write_small_frames(file, 10)
    capture = open_capture(file)
    octets = capture.octets(capture.interfaces[0])
    capture.close()
    assert set(octets.length.tolist()) == {60}
    sums = octets.sums(14, 34)
    assert np.all(sums % 0xFFFF == 0), "IP checksums (RFC 1071)"
