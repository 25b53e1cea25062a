# SPDX-License-Identifier: Apache-2.0
"""Brine, RPyC's form for immutable values, and the messages and frames that carry it, for RPyC 4, 5 and 6.

Written from the format, without the library: tests check the two against each other.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

COMPRESSED_ABOVE = 3000
"""Plain bytes of a message; longer ones are compressed (zlib, level 1)."""
WRITE_MOST = 64_000
"""Bytes of a frame that leave in one write; a longer one takes three, the last of the end mark alone."""
HEADER, END = 5, b"\n"
AROUND = HEADER + len(END)
"""Bytes of a frame around its data."""

_NONE, _EMPTY_TEXT, _EMPTY_TUPLE, _TRUE, _FALSE = range(5)
_TEXT, _BYTES_1, _BYTES_8, _BYTES_32 = 0x08, 0x0A, 0x0E, 0x0F
_TUPLE_1, _TUPLE_8, _TUPLE_32 = 0x10, 0x14, 0x15
_INT_8, _INT_32, _FLOAT = 0x16, 0x17, 0x18
_SMALL_LEAST, _SMALL_END, _SMALL_ZERO = -0x30, 0xA0, 0x50
_CONSTANTS: dict[int, Any] = {_NONE: None, _EMPTY_TEXT: b"", _EMPTY_TUPLE: (), _TRUE: True, _FALSE: False}
_DEPTH = 32
"""No message of ours has values in one another as deep as this."""
_DIGITS = 4096
"""Python reads no longer numbers."""


class Kind(IntEnum):
    """What a message is."""

    REQUEST = 1
    REPLY = 2
    EXCEPTION = 3


class Label(IntEnum):
    """How a value is boxed: it crosses itself, or a reference to an object of one of the sides does."""

    VALUE = 1
    TUPLE = 2
    YOURS = 3
    """An object of the side that receives it."""
    MINE = 4
    """One of the side that sends it."""


class Handler(IntEnum):
    """What a request asks for; the library has more."""

    CLOSE = 2
    GETROOT = 3
    GETATTR = 4
    CALL = 7
    CALLATTR = 8
    DEL = 15
    INSPECT = 16


STOP_ITERATION = 1
"""The whole of an exception that ends an iteration."""


class Malformed(ValueError):
    """Bytes that are no message."""


@dataclass(frozen=True)
class Message:
    """One message."""

    kind: int
    number: int
    """Of the request, also in what answers it."""
    body: Any
    """Of a request its handler and its boxed arguments, of a reply its boxed value."""


@dataclass(frozen=True)
class Frame:
    """A message as it is in a stream."""

    begin: int
    end: int
    compressed: bool
    data: bytes
    """Inflated where it was compressed."""


def encode(value: Any) -> bytes:
    """A value as brine. Raises TypeError for what brine does not have here."""
    parts: list[bytes] = []
    _encode(value, parts)
    return b"".join(parts)


def _encode(value: Any, parts: list[bytes]) -> None:
    if value is None:
        parts.append(bytes([_NONE]))
    elif value is True or value is False:
        parts.append(bytes([_TRUE if value else _FALSE]))
    elif isinstance(value, int):
        parts.append(_encode_int(int(value)))
    elif isinstance(value, float):
        parts.append(struct.pack("!Bd", _FLOAT, value))
    elif isinstance(value, str):
        parts.append(bytes([_TEXT]))
        parts.append(_encode_bytes(value.encode()))
    elif isinstance(value, bytes):
        parts.append(_encode_bytes(value))
    elif isinstance(value, tuple):
        if value:
            parts.append(_counted(len(value), _TUPLE_1, _TUPLE_8, _TUPLE_32))
        else:
            parts.append(bytes([_EMPTY_TUPLE]))
        for each in value:
            _encode(each, parts)
    else:
        raise TypeError(f"brine has no {type(value).__name__}")


def _encode_int(value: int) -> bytes:
    if _SMALL_LEAST <= value < _SMALL_END:
        return bytes([value + _SMALL_ZERO])
    digits = str(value).encode()
    long = len(digits) > 0xFF
    return (struct.pack("!BL", _INT_32, len(digits)) if long else bytes([_INT_8, len(digits)])) + digits


def _encode_bytes(value: bytes) -> bytes:
    return _counted(len(value), _BYTES_1, _BYTES_8, _BYTES_32) + value if value else bytes([_EMPTY_TEXT])


def _counted(count: int, tag_1: int, tag_8: int, tag_32: int) -> bytes:
    """How a count from 1 on is written: 1 to 4 in the tag itself."""
    if count <= 4:
        return bytes([tag_1 + count - 1])
    return bytes([tag_8, count]) if count <= 0xFF else struct.pack("!BL", tag_32, count)


def decode(data: bytes, begin: int = 0) -> Any:
    """The one value that some bytes are, from `begin` on. Raises Malformed."""
    try:
        value, end = _decode(data, begin, 0)
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise Malformed(f"no value: {error}") from None
    if end != len(data):
        raise Malformed(f"{len(data) - end} bytes behind the value")
    return value


def _decode(data: bytes, at: int, depth: int) -> tuple[Any, int]:
    tag = data[at]
    at += 1
    if tag >= _SMALL_LEAST + _SMALL_ZERO and tag < _SMALL_END + _SMALL_ZERO:
        return tag - _SMALL_ZERO, at
    if tag in _CONSTANTS:
        return _CONSTANTS[tag], at
    if tag == _TEXT:
        if data[at] != _EMPTY_TEXT and not _BYTES_1 <= data[at] <= _BYTES_32:
            raise Malformed("a text that is not bytes")
        value, at = _decode(data, at, depth)
        return value.decode(), at
    if _BYTES_1 <= tag <= _BYTES_32:
        count, at = _count(data, at, tag - _BYTES_1)
        return _piece(data, at, count), at + count
    if _TUPLE_1 <= tag <= _TUPLE_32:
        count, at = _count(data, at, tag - _TUPLE_1)
        if depth > _DEPTH or count > len(data) - at:
            raise Malformed(f"a tuple of {count} values in {len(data) - at} bytes")
        values = []
        for _ in range(count):
            value, at = _decode(data, at, depth + 1)
            values.append(value)
        return tuple(values), at
    if tag in (_INT_8, _INT_32):
        count, at = _count(data, at, 4 if tag == _INT_8 else 5)
        return _integer(_piece(data, at, count)), at + count
    if tag == _FLOAT:
        return struct.unpack_from("!d", data, at)[0], at + 8
    raise Malformed(f"tag 0x{tag:02x}")


def _count(data: bytes, at: int, place: int) -> tuple[int, int]:
    """A count by the place of its tag among the six of its type, and where it ends."""
    if place < 4:
        return place + 1, at
    return (data[at], at + 1) if place == 4 else (struct.unpack_from("!L", data, at)[0], at + 4)


def _piece(data: bytes, at: int, count: int) -> bytes:
    piece = data[at : at + count]
    if len(piece) < count:
        raise Malformed(f"{len(piece)} bytes instead of {count}")
    return piece


def _integer(digits: bytes) -> int:
    if len(digits) > _DIGITS or not digits.lstrip(b"-").isdigit() or digits.rfind(b"-") > 0:
        raise Malformed(f"a number of {digits[:20]!r}")
    return int(digits)


def pack(message: Message, *, bare_kind: bool) -> bytes:
    """The data of a message. `bare_kind`: as from RPyC 6 on its kind is a byte before the brine, not a value in it."""
    if bare_kind:
        return bytes([message.kind]) + encode((message.number, message.body))
    return encode((message.kind, message.number, message.body))


def unpack(data: bytes) -> Message:
    """The message in some data; the first byte says which of the two forms it has. Raises Malformed."""
    bare = data[:1] in (b"\x01", b"\x02", b"\x03")
    value = decode(data, 1) if bare else decode(data)
    if not isinstance(value, tuple) or len(value) != (2 if bare else 3):
        raise Malformed("no message: a number and a body are wanted")
    kind, number, body = (data[0], *value) if bare else value
    if type(kind) is not int or type(number) is not int or number < 0:
        raise Malformed("no message: its kind or its number is none")
    return Message(kind, number, body)


def frame(data: bytes) -> bytes:
    """Data as a frame."""
    compressed = len(data) > COMPRESSED_ABOVE
    inside = zlib.compress(data, 1) if compressed else data
    return struct.pack("!LB", len(inside), compressed) + inside + END


def frames(stream: bytes, begin: int = 0) -> Iterator[Frame]:
    """The frames of a stream; what is behind the last whole one is left out. Raises Malformed."""
    while len(stream) - begin >= HEADER:
        length, flag = struct.unpack_from("!LB", stream, begin)
        end = begin + AROUND + length
        if flag > 1:
            raise Malformed(f"flag {flag} of the frame at {begin}")
        if end > len(stream):
            return
        if stream[end - 1 : end] != END:
            raise Malformed(f"0x{stream[end - 1]:02x} ends the frame at {begin}")
        data = stream[begin + HEADER : end - 1]
        yield Frame(begin, end, bool(flag), _inflated(data, begin) if flag else data)
        begin = end


def _inflated(data: bytes, begin: int) -> bytes:
    try:
        return zlib.decompress(data)
    except zlib.error as error:
        raise Malformed(f"the frame at {begin} does not inflate: {error}") from None


def writes(length: int) -> tuple[int, ...]:
    """How many bytes each write of a frame of `length` has."""
    return (length,) if length <= WRITE_MOST else (WRITE_MOST, length - WRITE_MOST - 1, 1)


def int_size(value: int) -> int:
    """Bytes of an integer."""
    return 1 if _SMALL_LEAST <= value < _SMALL_END else 2 + len(str(value))


def text_size(length: int) -> int:
    """Bytes of a text of `length` bytes."""
    if length == 0:
        return 2
    return 1 + length + (1 if length <= 4 else 2 if length <= 0xFF else 5)
