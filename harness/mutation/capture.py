# SPDX-License-Identifier: Apache-2.0
"""A pcapng file as frames that can be changed, and written again.

Its own reader, since a fault of the verifier's must not hide here.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

IN, OUT = 1, 2
_SECTION, _INTERFACE, _STATISTICS, _ENHANCED = 0x0A0D0D0A, 1, 5, 6
_COMMENT, _FLAGS, _NAME = 1, 2, 2
_FATE = ":fate"
ETHERNET, BACKPLANE = 1, 148
"""Link types."""


@dataclass
class Frame:
    """One frame as it was seen at one port, or a fate."""

    interface: int
    at_ns: int
    """Since 1970."""
    data: bytes
    direction: int
    """0, IN or OUT."""
    comment: str | None
    length: int
    """What the record says that it was on the wire."""

    def copy(self) -> Frame:
        return replace(self)


@dataclass
class Note:
    """A comment without a frame."""

    interface: int
    at_ns: int
    text: str


@dataclass
class Capture:
    """`head` is everything before the first frame."""

    head: bytes
    interfaces: list[str]
    frames: list[Frame] = field(default_factory=list)
    link_type: int = ETHERNET
    notes: list[Note] = field(default_factory=list)

    def is_fate(self, frame: Frame) -> bool:
        return self.interfaces[frame.interface].endswith(_FATE)

    def to_bytes(self) -> bytes:
        blocks, notes = [self.head], sorted(self.notes, key=lambda note: note.at_ns)
        for frame in self.frames:
            while notes and notes[0].at_ns <= frame.at_ns:
                blocks.append(_statistics(notes.pop(0)))
            blocks.append(_packet(frame))
        return b"".join([*blocks, *map(_statistics, notes)])


def read(data: bytes) -> Capture:
    """Little-endian with ns, as the fabric writes it."""
    capture = Capture(b"", [])
    offset = 0
    while offset < len(data):
        kind, total = struct.unpack_from("<II", data, offset)
        block = data[offset : offset + total]
        if kind == _ENHANCED:
            capture.frames.append(_frame(block))
        elif kind == _STATISTICS and _COMMENT in (options := _options(block[20:-4])):
            interface, high, low = struct.unpack_from("<III", block, 8)
            capture.notes.append(Note(interface, high << 32 | low, options[_COMMENT].decode()))
        else:
            assert kind in (_SECTION, _INTERFACE), f"block {kind}"
            assert not capture.frames, "an interface after the first frame"
            capture.head += block
            if kind == _INTERFACE:
                capture.link_type = int.from_bytes(block[8:10], "little")
                capture.interfaces.append(_options(block[16:-4]).get(_NAME, b"").decode())
        offset += total
    return capture


def _frame(block: bytes) -> Frame:
    interface, high, low, captured, length = struct.unpack_from("<IIIII", block, 8)
    options = _options(block[28 + (captured + 3) // 4 * 4 : -4])
    comment = options.get(_COMMENT)
    return Frame(
        interface,
        high << 32 | low,
        block[28 : 28 + captured],
        struct.unpack("<I", options[_FLAGS])[0] & 3 if _FLAGS in options else 0,
        None if comment is None else comment.decode(),
        length,
    )


def _options(data: bytes) -> dict[int, bytes]:
    found, offset = {}, 0
    while offset + 4 <= len(data):
        code, length = struct.unpack_from("<HH", data, offset)
        if code == 0:
            break
        found[code] = data[offset + 4 : offset + 4 + length]
        offset += 4 + (length + 3) // 4 * 4
    return found


def _packet(frame: Frame) -> bytes:
    options = b""
    if frame.direction:
        options += _option(_FLAGS, struct.pack("<I", frame.direction))
    if frame.comment is not None:
        options += _option(_COMMENT, frame.comment.encode())
    if options:
        options += _option(0, b"")
    at_ns = frame.at_ns
    head = struct.pack("<IIIII", frame.interface, at_ns >> 32, at_ns & 0xFFFFFFFF, len(frame.data), frame.length)
    body = head + frame.data + bytes(-len(frame.data) % 4) + options
    return struct.pack("<II", _ENHANCED, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))


def _statistics(note: Note) -> bytes:
    head = struct.pack("<III", note.interface, note.at_ns >> 32, note.at_ns & 0xFFFFFFFF)
    body = head + _option(_COMMENT, note.text.encode()) + _option(0, b"")
    return struct.pack("<II", _STATISTICS, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)


@dataclass(frozen=True)
class Transmission:
    """One frame from its sender to its receivers, in all captures."""

    machine: str
    """The sender."""
    sent: tuple[Frame, ...]
    received: tuple[Frame, ...]
    fates: tuple[Frame, ...]

    @property
    def data(self) -> bytes:
        return self.sent[0].data

    @property
    def everywhere(self) -> tuple[Frame, ...]:
        return self.sent + self.received + self.fates


def transmissions(captures: Sequence[Capture]) -> list[Transmission]:
    """In the order in which they were sent. Equal frames are paired by their order at each port.

    What only arrived, since it was damaged on its way or doubled, belongs to none.
    """
    count: dict[tuple[int, int, int, bytes], int] = defaultdict(int)
    found: dict[tuple[bytes, int], list[tuple[Capture, Frame]]] = defaultdict(list)
    for place, capture in enumerate(captures):
        for frame in sorted(capture.frames, key=lambda each: each.at_ns):
            key = (place, frame.interface, frame.direction, frame.data)
            found[frame.data, count[key]].append((capture, frame))
            count[key] += 1
    made = []
    for frames in found.values():
        ports = [(capture, frame) for capture, frame in frames if not capture.is_fate(frame)]
        sent = [(capture, frame) for capture, frame in ports if frame.direction == OUT]
        if sent:
            capture, first = min(sent, key=lambda each: each[1].at_ns)
            made.append(
                Transmission(
                    capture.interfaces[first.interface].partition(":")[0],
                    tuple(frame for _, frame in sent),
                    tuple(frame for _, frame in ports if frame.direction == IN),
                    tuple(frame for capture, frame in frames if capture.is_fate(frame)),
                )
            )
    return sorted(made, key=lambda each: each.sent[0].at_ns)
