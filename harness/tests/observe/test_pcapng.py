# SPDX-License-Identifier: Apache-2.0
"""The blocks of pcapng files, read many at once, against a reader that takes one after another and checks each."""

from __future__ import annotations

import mmap
import random
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from sundial.errors import BadInput
from sundial.observe.pcap import open_capture
from sundial.observe.pcapng import BYTE_ORDER, ENHANCED, INTERFACE, PACKET, SECTION, SIMPLE, bad_file, read_blocks

LEAST = {SECTION: 28, INTERFACE: 20, PACKET: 32, SIMPLE: 16, ENHANCED: 32}
Frame = tuple[int, int, int, int, int, int]
"""Offset, length of the block, interface, captured, original and number."""


def block(order: str, kind: int, body: bytes) -> bytes:
    total = struct.pack(f"{order}I", 12 + len(body))
    return struct.pack(f"{order}I", kind) + total + body + total


def section(order: str, generator: random.Random) -> bytes:
    """A section with two interfaces, rarely none, then frames and blocks of an unknown kind, one interface
    in between."""
    interface = block(order, INTERFACE, struct.pack(f"{order}HHI", 1, 0, 0))
    parts = [block(order, SECTION, struct.pack(f"{order}IHHq", BYTE_ORDER, 1, 0, -1))]
    parts += [interface, interface] * (generator.random() < 0.9)
    for _ in range(generator.randrange(12)):
        size = 4 * generator.randrange(20)
        packet = generator.randbytes(size)
        enhanced = struct.pack(f"{order}IIIII", generator.randrange(2), 0, 7, size, size + 9) + packet
        obsolete = struct.pack(f"{order}HHIIII", generator.randrange(2), 3, 0, 7, size, size + 9) + packet
        simple = struct.pack(f"{order}I", size + 5) + packet
        bodies = {ENHANCED: enhanced, PACKET: obsolete, SIMPLE: simple, 77: bytes(size)}
        kind = generator.choice([ENHANCED, ENHANCED, PACKET, SIMPLE, 77])
        parts.append(block(order, kind, bodies[kind]))
    parts.insert(generator.randrange(len(parts)) + 1, interface)
    return b"".join(parts)


def damaged(whole: bytes, generator: random.Random) -> bytes:
    """With up to two words that are others, of those that say how long and of what kind things are more often; or cut,
    or with bytes put in or left out."""
    data = bytearray(whole)
    for _ in range(generator.randrange(3)):
        at = generator.randrange(len(data))
        match generator.randrange(6):
            case 0:
                data[at] = generator.randrange(256)
            case 1:
                del data[at:]
                data += b"\0" * (not data)
            case 2:
                del data[at : at + generator.randrange(1, 9)]
                data += b"\0" * (not data)
            case 3:
                data[at:at] = generator.randbytes(generator.randrange(1, 9))
            case _:
                word = generator.choice(
                    [0, 1, 3, 6, 8, 12, 13, 16, 28, 32, 36, len(data), 1 << 31, (1 << 32) - 4, SECTION]
                )
                data[at // 4 * 4 : at // 4 * 4 + 4] = struct.pack(generator.choice("<>") + "I", word)
    return bytes(data)


def one_by_one(path: Path, data: bytes) -> Iterator[Frame]:
    base = interfaces = number = offset = 0
    order = "<"
    while offset < len(data):
        if len(data) - offset < 12:
            raise bad_file(path, offset, "truncated block")
        if data[offset : offset + 4] == SECTION.to_bytes(4):
            marks = {struct.pack(f"{each}I", BYTE_ORDER): each for each in "<>"}
            if data[offset + 8 : offset + 12] not in marks:
                raise bad_file(path, offset, "section header without byte order")
            order, base = marks[data[offset + 8 : offset + 12]], interfaces
        kind, total = struct.unpack_from(f"{order}II", data, offset)
        if total % 4 or total < LEAST.get(kind, 12):
            raise bad_file(path, offset, f"impossible block length {total}")
        if offset + total > len(data):
            raise bad_file(path, offset, "truncated block")
        if struct.unpack_from(f"{order}I", data, offset + total - 4) != (total,):
            raise bad_file(path, offset, "block whose two lengths differ")
        interfaces += kind == INTERFACE
        number += kind in (ENHANCED, PACKET, SIMPLE)
        if kind in (ENHANCED, PACKET):
            form = "5I" if kind == ENHANCED else "HxxIIII"
            index, _, _, captured, original = struct.unpack_from(f"{order}{form}", data, offset + 8)
            if base + index >= interfaces or captured > total - 32:
                raise bad_file(path, offset, f"impossible frame {number}")
            yield offset, total, base + index, captured, original, number
        elif kind == SIMPLE:
            (original,) = struct.unpack_from(f"{order}I", data, offset + 8)
            if base >= interfaces:
                raise bad_file(path, offset, f"frame {number} without an interface")
            yield offset, total, base, min(original, total - 16), original, number
        offset += total


def many_at_once(path: Path, data: bytes) -> Iterator[Frame]:
    path.write_bytes(data)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        for some in read_blocks(path, mapped):
            numbers = (some.offset, some.total, some.interface, some.captured, some.original, some.number)
            yield from zip(*(each[some.frames].tolist() for each in numbers), strict=True)


def frames_or_error(frames: Iterator[Frame]) -> list[Frame] | str:
    try:
        return list(frames)
    except BadInput as fault:
        return str(fault)


@pytest.mark.parametrize("at_once", [12, 200, 16 << 20])
def test_files_are_read_or_refused_as_one_block_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr("sundial.observe.pcapng._AT_ONCE_BYTES", at_once)
    generator, file = random.Random(at_once), tmp_path / "damaged.pcapng"
    answers = []
    cases = 150 + settings.default.max_examples // 2
    for _ in range(cases):
        whole = b"".join(section(generator.choice("<>"), generator) for _ in range(generator.randrange(1, 4)))
        data = damaged(whole, generator)
        answers.append(frames_or_error(one_by_one(file, data)))
        assert frames_or_error(many_at_once(file, data)) == answers[-1], data.hex()
    refused = {answer.split(": ", 1)[1].split(" at byte")[0] for answer in answers if isinstance(answer, str)}
    # Every refusal was met, and many files were read.
    for word in ("truncated block", "section header without", "impossible block length", "two lengths differ",
                 "impossible frame", "without an interface"):  # fmt: skip
        assert any(word in each for each in refused), word
    assert sum(isinstance(answer, list) for answer in answers) > cases // 5


def test_packets_are_where_their_kind_of_block_has_them(tmp_path: Path) -> None:
    generator, file = random.Random(1), tmp_path / "mixed.pcapng"
    kinds = set()
    for _ in range(40):
        data = b"".join(section(generator.choice("<>"), generator) for _ in range(2))
        if isinstance(frames_or_error(one_by_one(file, data)), str):
            continue
        file.write_bytes(data)
        expected = {}
        for offset, total, _, captured, _, number in one_by_one(file, data):
            simple = SIMPLE in struct.unpack_from("<I", data, offset) + struct.unpack_from(">I", data, offset)
            kinds.add(simple)
            begin = offset + (12 if simple else 28)
            assert begin + captured <= offset + total - 4
            expected[number] = data[begin : begin + captured]
        capture = open_capture(file)
        for interface in capture.interfaces:
            octets = capture.octets(interface)
            for place, each in enumerate(interface.each()):
                assert capture.packet(each) == octets.frame(place) == expected.pop(each[-1])
        assert not expected
        capture.close()
    assert kinds == {True, False}
