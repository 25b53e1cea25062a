# SPDX-License-Identifier: Apache-2.0
"""PDUs and cells of ATM segments: each field of a record, its time, its place, and whole captures of them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from random import Random

from mutation import capture as pcapng
from mutation import comments
from mutation.capture import IN, OUT, Capture, Frame
from mutation.damage import Copy, Damage, Damages
from mutation.headers import other_value
from mutation.stamps import SHIFTS_NS

HEADER, CELL = 20, 48
"""Octets of ERF and cell header; of a cell's payload."""
CONTROL = b"\xff\x00"
Edit = Callable[[bytes, Random], bytes]
Change = Callable[[dict[str, Capture], Random], None]
_REVERSED = bytes(int(f"{octet:08b}"[::-1], 2) for octet in range(256))


def damages(copy: Copy) -> Damages:
    """All that can be done to the captures beside those of frames."""
    captures = _captures(copy)
    for name, capture in captures.items():
        kind = _kind(name)
        for where in _places(capture):
            for field, edit in _fields(kind).items():
                yield _damage(f"{kind}: {field} of one {where}", _one(name, where, edit))
            for what, change in RECORDS.items():
                yield _damage(f"{kind}: one {where} {what}", _record(name, where, change))
            for words, shift_ns in SHIFTS_NS.items():
                yield _damage(f"{kind}: one {where} {words}", _record(name, where, _moved(shift_ns)))
        for what, whole in WHOLE.items():
            yield _damage(f"{kind}: {what}", _of(name, whole))
        if any(map(capture.is_fate, capture.frames)):
            for part, other in COMMENTS.items():
                yield _damage(f"{kind}: fate with another {part}", _commented(name, other))
            for part, other in ALONE.items():
                yield _damage(f"{kind}: {part} of a fate alone", _commented(name, other))
    for name in captures:
        if _kind(name) == "pdu":
            yield from _everywhere(name, captures)


def _captures(copy: Copy) -> dict[str, Capture]:
    return {name: pcapng.read(copy.read(name)) for name in copy.further}


def _kind(name: str) -> str:
    return name.split(".")[-2].rstrip("s")


def _places(capture: Capture) -> Iterator[str]:
    """What records there are, by where they are."""
    yield from (where for where in WHERE if any(_is(capture, frame, where) for frame in capture.frames))


WHERE = ("sent", "received", "fate")


def _is(capture: Capture, frame: Frame, where: str) -> bool:
    if capture.is_fate(frame):
        return where == "fate"
    return where == {OUT: "sent", IN: "received"}.get(frame.direction)


def _damage(name: str, change: Change) -> Damage:
    def apply(copy: Copy, random: Random) -> None:
        captures = _captures(copy)
        change(captures, random)
        for file, capture in captures.items():
            capture.frames.sort(key=lambda frame: frame.at_ns)
            copy.write(file, capture.to_bytes())

    return Damage(name, apply)


# ---- One record ----


def _bits(offset: int, size: int, bits: int, order: str = "big") -> Edit:
    """Another value in the bits of the number at an offset; one from the end if that is negative."""

    def edit(data: bytes, random: Random) -> bytes:
        at = offset if offset >= 0 else len(data) + offset
        value = int.from_bytes(data[at : at + size], order)  # type: ignore[arg-type]
        low = (bits & -bits).bit_length() - 1
        other = other_value(value & bits, bits, random)
        assert other >> low << low == other
        return data[:at] + (value & ~bits | other).to_bytes(size, order) + data[at + size :]  # type: ignore[arg-type]

    return edit


def _payload(data: bytes, random: Random) -> bytes:
    place = random.randrange(HEADER, max(len(data) - 8, HEADER + 1))
    return data[:place] + bytes([data[place] ^ 1 << random.randrange(8)]) + data[place + 1 :]


def _with_right_crc(edit: Edit) -> Edit:
    def right(data: bytes, random: Random) -> bytes:
        return with_crc(edit(data, random))

    return right


def with_crc(data: bytes) -> bytes:
    """A record of a PDU whose CRC is made right: CRC-32, most significant bit first."""
    value = zlib.crc32(data[HEADER:-4].translate(_REVERSED))
    return data[:-4] + int(f"{value:032b}"[::-1], 2).to_bytes(4, "big")


def _fields(kind: str) -> dict[str, Edit]:
    found = {
        "erf.time": _bits(0, 8, (1 << 64) - 1, "little"),
        "erf.type": _bits(8, 1, 0xFF),
        "erf.flags": _bits(9, 1, 0xFF),
        "erf.rlen": _bits(10, 2, 0xFFFF),
        "erf.lctr": _bits(12, 2, 0xFFFF),
        "erf.wlen": _bits(14, 2, 0xFFFF),
        "atm.gfc": _bits(16, 4, 0xF0000000),
        "atm.vpi": _bits(16, 4, 0x0FF00000),
        "atm.vci": _bits(16, 4, 0x000FFFF0),
        "atm.pt": _bits(16, 4, 0x0000000E),
        "atm.clp": _bits(16, 4, 0x00000001),
        "payload": _payload,
    }
    if kind == "pdu":
        found |= {
            "aal5.uu": _bits(-8, 1, 0xFF),
            "aal5.cpi": _bits(-7, 1, 0xFF),
            "aal5.length": _bits(-6, 2, 0xFFFF),
            "aal5.crc": _bits(-4, 4, 0xFFFFFFFF),
            "payload, with its CRC": _with_right_crc(_payload),
            "aal5.length, with its CRC": _with_right_crc(_bits(-6, 2, 0xFFFF)),
        }
    return found


def _chosen(captures: dict[str, Capture], name: str, where: str, random: Random) -> Frame:
    return random.choice([frame for frame in captures[name].frames if _is(captures[name], frame, where)])


def _one(name: str, where: str, edit: Edit) -> Change:
    def change(captures: dict[str, Capture], random: Random) -> None:
        frame = _chosen(captures, name, where, random)
        frame.data = edit(frame.data, random)

    return change


def _record(name: str, where: str, edit: Callable[[Capture, Frame, Random], None]) -> Change:
    def change(captures: dict[str, Capture], random: Random) -> None:
        edit(captures[name], _chosen(captures, name, where, random), random)

    return change


def _moved(shift_ns: int) -> Callable[[Capture, Frame, Random], None]:
    """Block and record alike."""

    def edit(capture: Capture, frame: Frame, random: Random) -> None:
        _set_time(frame, frame.at_ns + random.choice([1, -1]) * shift_ns)

    return edit


def _set_time(frame: Frame, at_ns: int) -> None:
    frame.at_ns = at_ns
    stamp = (at_ns // 10**9 << 32) + (at_ns % 10**9 << 32) // 10**9
    frame.data = struct.pack("<Q", stamp) + frame.data[8:]


def _removed(capture: Capture, frame: Frame, random: Random) -> None:
    capture.frames = [each for each in capture.frames if each is not frame]


def _doubled(capture: Capture, frame: Frame, random: Random) -> None:
    again = replace(frame)
    _set_time(again, frame.at_ns + 1_000_000)
    capture.frames.append(again)


def _exchanged(capture: Capture, frame: Frame, random: Random) -> None:
    """With the next of its place, but for their times."""
    place = [each for each in capture.frames if (each.interface, each.direction) == (frame.interface, frame.direction)]
    number = next(at for at, each in enumerate(place) if each is frame)
    other = place[number + 1 if number + 1 < len(place) else number - 1]
    frame.data, other.data = frame.data[:8] + other.data[8:], other.data[:8] + frame.data[8:]


def _at_another(capture: Capture, frame: Frame, random: Random) -> None:
    others = [place for place in range(len(capture.interfaces)) if place != frame.interface]
    frame.interface = random.choice(others)


def _turned(capture: Capture, frame: Frame, random: Random) -> None:
    frame.direction = {IN: OUT, OUT: IN}.get(frame.direction, IN)


def _shorter(capture: Capture, frame: Frame, random: Random) -> None:
    frame.data = frame.data[:-CELL] if len(frame.data) > HEADER + CELL else frame.data[:-4]
    frame.length = len(frame.data)


def _longer(capture: Capture, frame: Frame, random: Random) -> None:
    frame.data += bytes(CELL)
    frame.length += CELL


def _length(capture: Capture, frame: Frame, random: Random) -> None:
    frame.length += 1


def _remark(capture: Capture, frame: Frame, random: Random) -> None:
    frame.comment = f"{frame.comment or 'dropped: 1 of 2 cells, queue full'} "


RECORDS: dict[str, Callable[[Capture, Frame, Random], None]] = {
    "removed": _removed,
    "doubled": _doubled,
    "exchanged with the next": _exchanged,
    "at another port": _at_another,
    "turned": _turned,
    "shorter": _shorter,
    "longer": _longer,
    "with another original length": _length,
    "with a remark": _remark,
}


# ---- Fates ----


COMMENTS: dict[str, Callable[[str], str]] = {
    "number of cells lost": lambda comment: comments.other_number(comment, "lost_cells"),
    "number of cells": lambda comment: comments.other_number(comment, "cells"),
    "port": comments.other_port,
    "reason": comments.other_reason,
    "way": comments.other_way,
}
ALONE: dict[str, Callable[[str], str]] = {"words": comments.other_words, "record": comments.other_record}


def _commented(name: str, edit: Callable[[str], str]) -> Change:
    def change(captures: dict[str, Capture], random: Random) -> None:
        frame = _chosen(captures, name, "fate", random)
        frame.comment = edit(frame.comment or "")

    return change


# ---- Whole captures ----


def _all(edit: Callable[[Frame], None]) -> Callable[[Capture], None]:
    def change(capture: Capture) -> None:
        for frame in capture.frames:
            edit(frame)

    return change


def _no_payload(frame: Frame) -> None:
    frame.data = frame.data[:HEADER] + bytes(len(frame.data) - HEADER)


def _later(frame: Frame) -> None:
    _set_time(frame, frame.at_ns + 1_000)


def _first_missing(capture: Capture) -> None:
    capture.frames = capture.frames[1:]


def _last_missing(capture: Capture) -> None:
    capture.frames = capture.frames[:-1]


def _none(capture: Capture) -> None:
    capture.frames = []


def _half(capture: Capture) -> None:
    capture.frames = capture.frames[: len(capture.frames) // 2]


def _nothing_received(capture: Capture) -> None:
    capture.frames = [frame for frame in capture.frames if frame.direction != IN]


WHOLE: dict[str, Callable[[Capture], None]] = {
    "all payloads zeroed": _all(_no_payload),
    "all records 1 us later": _all(_later),
    "first record missing": _first_missing,
    "last record missing": _last_missing,
    "no records": _none,
    "second half missing": _half,
    "nothing received": _nothing_received,
}


def _of(name: str, whole: Callable[[Capture], None]) -> Change:
    return lambda captures, random: whole(captures[name])


# ---- The same octets of a PDU at all ports, and in its cells ----


CONTROL_FIELDS = {
    "le.marker": (0, 2), "le.protocol": (2, 1), "le.version": (3, 1), "le.opcode": (4, 2), "le.status": (6, 2),
    "le.transaction": (8, 4), "le.lecid": (12, 2), "le.flags": (14, 2), "le.source_lan": (16, 8),
    "le.target_lan": (24, 8), "le.source_atm": (32, 20), "le.lan_type": (52, 1), "le.frame_size": (53, 1),
    "le.tlvs": (54, 1),
    "le.name_length": (55, 1), "le.target_atm": (56, 20), "le.name": (76, 32),
}  # fmt: skip
"""Of LE control frames (af-lane-0021, table 11): place and octets."""


def _everywhere(name: str, captures: dict[str, Capture]) -> Damages:
    frames = captures[name].frames
    opcodes = sorted({_opcode(frame.data) for frame in frames if _opcode(frame.data)})
    for opcode in opcodes:
        for field, (place, size) in CONTROL_FIELDS.items():
            if any(_opcode(frame.data) == opcode and _sdu(frame.data) >= place + size for frame in frames):
                edit = _bits(HEADER + place, size, (1 << 8 * size) - 1)
                yield _damage(f"pdu: {field} of {opcode:#06x}, everywhere", _in_all(name, _of_opcode(opcode), edit))
        yield _damage(f"pdu: {opcode:#06x} removed everywhere", _without(name, _of_opcode(opcode)))
    if any(not _opcode(frame.data) for frame in frames):
        yield _damage("pdu: payload of data, everywhere", _in_all(name, _is_data, _payload_of_sdu))
        yield _damage("pdu: LEC ID or header of data, everywhere", _in_all(name, _is_data, _bits(HEADER, 2, 0xFFFF)))
        yield _damage("pdu: data removed everywhere", _without(name, _is_data))


def _sdu(data: bytes) -> int:
    return int.from_bytes(data[-6:-4])


def _opcode(data: bytes) -> int:
    """Of an LE control frame; 0 of other PDUs."""
    return int.from_bytes(data[HEADER + 4 : HEADER + 6]) if data[HEADER : HEADER + 2] == CONTROL else 0


def _of_opcode(opcode: int) -> Callable[[bytes], bool]:
    return lambda data: _opcode(data) == opcode


def _is_data(data: bytes) -> bool:
    return not _opcode(data)


def _payload_of_sdu(data: bytes, random: Random) -> bytes:
    place = HEADER + random.randrange(14, max(_sdu(data), 15))
    return data[:place] + bytes([data[place] ^ 1 << random.randrange(8)]) + data[place + 1 :]


def _same(captures: dict[str, Capture], name: str, chosen: bytes) -> list[Frame]:
    """Records of PDUs with these octets."""
    return [frame for frame in captures[name].frames if frame.data[HEADER:] == chosen[HEADER:]]


def _cells_of(captures: dict[str, Capture], name: str, pdu: Frame) -> list[tuple[Capture, list[Frame]]]:
    """The cells of a PDU at a port, where they are captured: those that begin, or end, at its stamp."""
    cells = captures.get(name.replace(".pdus.", ".cells."))
    if cells is None or not pdu.direction:
        return []
    number = (len(pdu.data) - HEADER) // CELL
    channel = pdu.data[16:19]
    own = [
        frame
        for frame in cells.frames
        if (frame.interface, frame.direction) == (pdu.interface, pdu.direction) and frame.data[16:19] == channel
    ]
    at = [place for place, frame in enumerate(own) if frame.at_ns == pdu.at_ns]
    if not at:
        return []
    first = at[0] if pdu.direction == OUT else at[0] - number + 1
    return [(cells, own[first : first + number])]


def _in_all(name: str, fits: Callable[[bytes], bool], edit: Edit) -> Change:
    def change(captures: dict[str, Capture], random: Random) -> None:
        chosen = random.choice([frame.data for frame in captures[name].frames if fits(frame.data)])
        new = with_crc(edit(chosen, random))
        for pdu in _same(captures, name, chosen):
            for _, cells in _cells_of(captures, name, pdu):
                for place, cell in enumerate(cells):
                    cell.data = cell.data[:HEADER] + new[HEADER + CELL * place : HEADER + CELL * (place + 1)]
            pdu.data = pdu.data[:HEADER] + new[HEADER:]

    return change


def _without(name: str, fits: Callable[[bytes], bool]) -> Change:
    def change(captures: dict[str, Capture], random: Random) -> None:
        chosen = random.choice([frame.data for frame in captures[name].frames if fits(frame.data)])
        pdus = _same(captures, name, chosen)
        for pdu in pdus:
            for capture, cells in _cells_of(captures, name, pdu):
                _drop(capture, cells)
        _drop(captures[name], pdus)

    return change


def _drop(capture: Capture, frames: Sequence[Frame]) -> None:
    gone = set(map(id, frames))
    capture.frames = [frame for frame in capture.frames if id(frame) not in gone]
