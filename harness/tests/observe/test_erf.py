# SPDX-License-Identifier: Apache-2.0
"""ERF records: the vectors of the standard's layout, options, and damaged files."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from sundial.errors import BadInput
from sundial.observe.erf import erf_octets, read_erf
from tests.verify.bed import EPOCH_NS, block, option

CALL = bytes.fromhex(
    "8cb8000080436d38 04 04 00a4 0000 0094 00000420 0001 025344000002 025344000001 0800 45000058 00010000 40116692"
    "0a000001 0a000002 04000801 00440000 11223344 00000000 00000002 20000001 00000001 00000001" + "00" * 16
    + "00000010" + "41" * 16 + "00" * 32 + "0000 0068 7d9f8139"
)  # fmt: skip
LAST_CELL = bytes.fromhex(
    "6d6b010080436d38 03 04 0044 0000 0035 00000422" + "41" * 8 + "00" * 32 + "0000 0068 7d9f8139"
)


def capture(records: list[tuple[int, bytes, bytes]], link: int = 197, resolution: bytes = b"\x09") -> bytes:
    """`records`: interface, packet, options."""
    parts = [block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    for name in (b"client:eth0", b"elan:fate"):
        parts.append(
            block(1, struct.pack("<HHI", link, 0, 0) + option(2, name) + option(9, resolution) + option(0, b""))
        )
    for place, (interface, data, options) in enumerate(records):
        ticks = EPOCH_NS + place
        head = struct.pack("<IIIII", interface, ticks >> 32, ticks & 0xFFFFFFFF, len(data), len(data))
        parts.append(block(6, head + data + bytes(-len(data) % 4) + options))
    return b"".join(parts)


OUTBOUND = option(2, struct.pack("<I", 2)) + option(0, b"")


def written(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "elan.pdus.pcapng"
    path.write_bytes(data)
    return path


def test_fields_of_a_pdu_and_of_a_cell(tmp_path: Path) -> None:
    comment = option(1, b"dropped: 1 of 3 cells") + option(0, b"")
    path = written(tmp_path, capture([(0, CALL, OUTBOUND), (1, LAST_CELL, comment), (0, LAST_CELL, OUTBOUND)]))
    table = read_erf(path, EPOCH_NS)
    assert table["row"].to_list() == [0, 1, 2]
    assert table["time_ns"].to_list() == [0, 1, 2]
    assert table["interface"].to_list() == ["client:eth0", "elan:fate", "client:eth0"]
    assert table["direction"].to_list() == [2, 0, 2]
    assert table["comment"].to_list() == [None, "dropped: 1 of 3 cells", None]
    assert table.select("erf_type", "erf_flags", "rlen", "lctr", "wlen").rows()[:2] == [
        (4, 4, 0xA4, 0, 0x94), (3, 4, 0x44, 0, 0x35)
    ]  # fmt: skip
    assert table.select("gfc", "vpi", "vci", "pt", "clp").rows()[:2] == [(0, 0, 66, 0, 0), (0, 0, 66, 1, 0)]
    assert table["erf_time"][0] == 0x386D43800000B88C
    octets = erf_octets(path, table)
    assert octets.frame(0) == CALL[20:]
    assert octets.frame(2) == LAST_CELL[20:]
    assert table["plain"].all()


@pytest.mark.parametrize(
    ("packet", "options"),
    [
        (CALL, option(2, struct.pack("<I", 2 | 1 << 24)) + option(0, b"")),
        (CALL, option(4, bytes(8)) + option(0, b"")),
        (CALL, OUTBOUND + bytes(4)),
    ],
)
def test_what_is_beside_direction_and_comment_is_told(tmp_path: Path, packet: bytes, options: bytes) -> None:
    table = read_erf(written(tmp_path, capture([(0, CALL, OUTBOUND), (0, packet, options)])), EPOCH_NS)
    assert table["plain"].to_list() == [True, False]


def test_a_padding_that_is_not_zero_is_told(tmp_path: Path) -> None:
    data = capture([(0, CALL[:-1], OUTBOUND), (0, CALL[:-1], OUTBOUND)])
    place = data.rindex(CALL[:-1]) + len(CALL) - 1
    table = read_erf(written(tmp_path, data[:place] + b"\1" + data[place + 1 :]), EPOCH_NS)
    assert table["plain"].to_list() == [True, False]


def test_no_records_are_a_table_without_rows(tmp_path: Path) -> None:
    path = written(tmp_path, capture([]))
    table = read_erf(path, EPOCH_NS)
    assert table.is_empty()
    assert len(erf_octets(path, table).begin) == 0


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "the file is empty"),
        (capture([(0, CALL, OUTBOUND)])[:-7], "truncated block"),
        (capture([(0, CALL, OUTBOUND), (0, CALL[:19], OUTBOUND)]), "record 2 is too short for ERF"),
        (capture([(0, CALL, OUTBOUND)], link=1), "interface 'client:eth0' has no ERF records in ns"),
        (capture([(0, CALL, OUTBOUND)], resolution=b"\x06"), "interface 'client:eth0' has no ERF records in ns"),
        (capture([(7, CALL, OUTBOUND)]), "impossible frame 1"),
    ],
)
def test_a_damaged_file_is_one_error(tmp_path: Path, data: bytes, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        read_erf(written(tmp_path, data), EPOCH_NS)
