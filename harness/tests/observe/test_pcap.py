# SPDX-License-Identifier: Apache-2.0
"""Capture files as blocks: interfaces, numbers, damage."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sundial.errors import BadInput
from sundial.observe import open_capture, read_frames
from tests.verify.bed import CLIENT, RPC_PORT, Bed, capture, rpc_call


def classic(path: Path, frames: list[tuple[int, bytes]], magic: int = 0xA1B23C4D, order: str = "<") -> Path:
    unit = 1 if magic == 0xA1B23C4D else 1000
    parts = [struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 65535, 1)]
    for at, frame in frames:
        parts.append(struct.pack(f"{order}IIII", at // 10**9, at % 10**9 // unit, len(frame), len(frame)) + frame)
    path.write_bytes(b"".join(parts))
    return path


def bed(directory: Path) -> Bed:
    made = Bed(directory / "run")
    made.batch("echo-client", "udp", 2000, RPC_PORT, 853)
    for xid in (1, 2):
        made.udp_call(2000, xid, client_port=853)
    return made


def test_frames_keep_the_numbers_of_the_original_file(tmp_path: Path) -> None:
    file = bed(tmp_path).write() / "wire" / "lan.pcapng"
    opened = open_capture(file)
    assert [interface.name for interface in opened.interfaces] == ["client:eth0", "server:eth0", "lan:fate"]
    assert opened.frames == 16
    opened.close()
    frames = read_frames([(file, "wire/lan.pcapng")], 946_684_800 * 10**9)
    assert frames.sort("frame")["frame"].to_list() == list(range(1, 17))
    assert frames["time_ns"].sort().to_list() == sorted(record.at for record in bed(tmp_path).records)


def test_columns_of_a_fragmented_call(tmp_path: Path) -> None:
    file = bed(tmp_path).write() / "wire" / "lan.pcapng"
    frames = read_frames([(file, "lan")], 0).filter(interface="client:eth0").head(2)
    assert frames["fragment_offset"].to_list() == [0, 1480]
    assert frames["more"].to_list() == [True, False]
    assert frames["ip_length"].to_list() == [1500, 20 + 2052 - 1480]
    assert frames["udp_length"].to_list() == [2052, None]
    assert frames["target_port"].to_list() == [RPC_PORT, None]
    assert frames["rpc_xid"].to_list() == [1, None]
    assert frames["direction"].to_list() == [2, 2]
    assert frames["udp_head"][0].startswith("000000010000000000000002")


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("magic", [0xA1B23C4D, 0xA1B2C3D4])
def test_classic_files_of_either_order_and_resolution(tmp_path: Path, order: str, magic: int) -> None:
    made = Bed(tmp_path)
    frames = made.datagram(CLIENT, (700, RPC_PORT), rpc_call(77, 2000))
    file = classic(
        tmp_path / "c.pcap", [(10**18 + 5_000 * place, frame) for place, frame in enumerate(frames)], magic, order
    )
    table = read_frames([(file, "c.pcap")], 10**18)
    assert table["time_ns"].to_list() == [0, 5_000]
    assert table["rpc_xid"].to_list() == [77, None]
    assert table["frame"].to_list() == [1, 2]


@settings(max_examples=settings.default.max_examples // 4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_cut_file_is_refused_with_the_offset_of_the_cut_block(tmp_path: Path, data: st.DataObject) -> None:
    made = bed(tmp_path)
    whole = capture(["client:eth0", "server:eth0", "lan:fate"], made.records)
    ends = [0]
    while ends[-1] < len(whole):
        ends.append(ends[-1] + struct.unpack_from("<I", whole, ends[-1] + 4)[0])
    cut = data.draw(st.integers(1, len(whole) - 1).filter(lambda place: place not in ends))
    file = tmp_path / "cut.pcapng"
    file.write_bytes(whole[:cut])
    with pytest.raises(BadInput) as error:
        open_capture(file)
    offset = max(end for end in ends if end < cut)
    assert str(error.value).startswith(f"{file}: ")
    assert f"at byte {offset}" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (b"hello, this is not a capture at all", "neither pcapng nor pcap at byte 0"),
        (struct.pack("<IHHiIIIIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1, 0, 0, 100, 100), "truncated frame at byte 24"),
        (struct.pack("<IHHiIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1, 0), "truncated record header at byte 24"),
    ],
)
def test_unreadable_files_are_named(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "bad.pcap"
    file.write_bytes(content)
    with pytest.raises(BadInput, match=said) as error:
        open_capture(file)
    assert str(file) in str(error.value)


def test_impossible_lengths_are_refused(tmp_path: Path) -> None:
    whole = bytearray(capture(["a:eth0"], bed(tmp_path).records[:0]))
    file = tmp_path / "bad.pcapng"
    for value, said in ((29, "impossible block length 29"), (32, "two lengths differ|truncated block")):
        struct.pack_into("<I", whole, 4, value)
        file.write_bytes(whole)
        with pytest.raises(BadInput, match=said):
            open_capture(file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"none\.pcapng: does not exist"):
        open_capture(tmp_path / "none.pcapng")
