# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 (RFC 9113): frames to octets and back, and the windows of flow control. Standard library only."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADER = 9
FRAME_SIZE = 16384
"""Largest payload before anything is agreed."""
WINDOW = 65535
"""Of the connection, and of each stream, before anything is agreed."""
WINDOW_MOST = STREAM_MOST = (1 << 31) - 1


class Type(IntEnum):
    """Section 6."""

    DATA = 0
    HEADERS = 1
    PRIORITY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PUSH_PROMISE = 5
    PING = 6
    GOAWAY = 7
    WINDOW_UPDATE = 8
    CONTINUATION = 9


_NAMES: dict[int, str] = {int(each): each.name for each in Type}


class Flag(IntEnum):
    """What a bit means where the type has it; ACK and END_STREAM are the same bit."""

    END_STREAM = 0x01
    ACK = 0x01
    END_HEADERS = 0x04
    PADDED = 0x08
    PRIORITY = 0x20


class Setting(IntEnum):
    """Section 6.5.2; the last two are gRPC's own."""

    HEADER_TABLE_SIZE = 1
    ENABLE_PUSH = 2
    MAX_CONCURRENT_STREAMS = 3
    INITIAL_WINDOW_SIZE = 4
    MAX_FRAME_SIZE = 5
    MAX_HEADER_LIST_SIZE = 6
    GRPC_ALLOW_TRUE_BINARY_METADATA = 0xFE03
    GRPC_PREFERRED_RECEIVE_MESSAGE_SIZE = 0xFE04


class Http2Error(ValueError):
    """Octets that are no frame, or a frame that its stream cannot have."""


@dataclass(frozen=True)
class Frame:
    """One frame. `type` is a number that RFC 9113 may not know; `payload` is as written."""

    type: int
    flags: int
    stream: int
    payload: bytes = b""

    def __str__(self) -> str:
        name = _NAMES.get(self.type, f"type {self.type}")
        return f"{name} flags {self.flags:#04x} stream {self.stream} length {len(self.payload)}"

    @property
    def octets(self) -> bytes:
        """As it goes over the wire."""
        head = struct.pack(">IBBI", len(self.payload), self.type, self.flags, self.stream)
        return head[1:] + self.payload

    def has(self, flag: Flag) -> bool:
        """Whether a bit is set."""
        return bool(self.flags & flag)

    @property
    def content(self) -> bytes:
        """Of DATA, HEADERS and PUSH_PROMISE without padding, priority and promised stream. Raises Http2Error."""
        if self.type not in (Type.DATA, Type.HEADERS, Type.PUSH_PROMISE):
            return self.payload
        begin, pad = 0, 0
        if self.has(Flag.PADDED):
            begin, pad = 1, self.payload[0] if self.payload else 1
        if self.type == Type.HEADERS and self.has(Flag.PRIORITY):
            begin += 5
        if self.type == Type.PUSH_PROMISE:
            begin += 4
        if begin + pad > len(self.payload):
            raise Http2Error(f"{self} with {pad} octets of padding")
        return self.payload[begin : len(self.payload) - pad]


def frames(octets: bytes, begin: int = 0) -> Iterator[tuple[int, Frame]]:
    """Whole frames and where each ends; what is behind the last whole one is left."""
    at = begin
    while at + HEADER <= len(octets):
        length = int.from_bytes(octets[at : at + 3], "big")
        end = at + HEADER + length
        if end > len(octets):
            return
        stream = int.from_bytes(octets[at + 5 : at + HEADER], "big")
        yield end, Frame(octets[at + 3], octets[at + 4], stream, octets[at + HEADER : end])
        at = end


# ---- what is written ----


def settings(values: Sequence[tuple[int, int]]) -> Frame:
    """SETTINGS with numbers and values in order."""
    return Frame(Type.SETTINGS, 0, 0, b"".join(struct.pack(">HI", *each) for each in values))


SETTINGS_ACK = Frame(Type.SETTINGS, Flag.ACK, 0)


def data(stream: int, octets: bytes, *, last: bool) -> Frame:
    """DATA without padding."""
    return Frame(Type.DATA, Flag.END_STREAM if last else 0, stream, octets)


def headers(stream: int, block: bytes, *, last: bool) -> Frame:
    """HEADERS whose block is whole, without padding and priority."""
    return Frame(Type.HEADERS, Flag.END_HEADERS | (Flag.END_STREAM if last else 0), stream, block)


def window_update(stream: int, increment: int) -> Frame:
    """WINDOW_UPDATE; stream 0 is the connection."""
    return Frame(Type.WINDOW_UPDATE, 0, stream, increment.to_bytes(4, "big"))


def rst_stream(stream: int, error: int) -> Frame:
    """RST_STREAM."""
    return Frame(Type.RST_STREAM, 0, stream, error.to_bytes(4, "big"))


def ping(octets: bytes, *, ack: bool = False) -> Frame:
    """PING."""
    return Frame(Type.PING, Flag.ACK if ack else 0, 0, octets)


def goaway(last_stream: int, error: int, text: bytes = b"") -> Frame:
    """GOAWAY."""
    return Frame(Type.GOAWAY, 0, 0, struct.pack(">II", last_stream, error) + text)


# ---- what is read ----


def read_settings(frame: Frame) -> list[tuple[int, int]]:
    """Numbers and values. Raises Http2Error."""
    if len(frame.payload) % 6 or (frame.has(Flag.ACK) and frame.payload):
        raise Http2Error(f"{frame}: not a whole number of settings, or an acknowledgement with some")
    return [(number, value) for number, value in struct.iter_unpack(">HI", frame.payload)]


def read_increment(frame: Frame) -> int:
    """Of a WINDOW_UPDATE. Raises Http2Error."""
    if len(frame.payload) != 4 or not int.from_bytes(frame.payload, "big") & WINDOW_MOST:
        raise Http2Error(f"{frame}: an increment is four octets, and not 0")
    return int.from_bytes(frame.payload, "big") & WINDOW_MOST


class Windows:
    """What one direction may still send: of the connection and of each stream (section 5.2)."""

    def __init__(self, initial: int = WINDOW) -> None:
        self.connection = WINDOW
        self._initial = initial
        self._streams: dict[int, int] = {}

    def resize(self, initial: int) -> None:
        """The receiver's SETTINGS: all streams change by the difference (6.9.2)."""
        change = initial - self._initial
        self._initial = initial
        self._streams = {stream: room + change for stream, room in self._streams.items()}

    def stream(self, number: int) -> int:
        """Room of a stream."""
        return self._streams.get(number, self._initial)

    def update(self, stream: int, increment: int) -> bool:
        """A WINDOW_UPDATE; False: it makes a window larger than may be."""
        if not stream:
            self.connection += increment
            return self.connection <= WINDOW_MOST
        self._streams[stream] = self.stream(stream) + increment
        return self._streams[stream] <= WINDOW_MOST

    def send(self, stream: int, octets: int) -> bool:
        """The payload of a DATA frame; False: it was more than there was room for."""
        self.connection -= octets
        self._streams[stream] = self.stream(stream) - octets
        return self.connection >= 0 and (self._streams[stream] >= 0 or not octets)

    def forget(self, stream: int) -> None:
        """A stream that is over."""
        self._streams.pop(stream, None)
