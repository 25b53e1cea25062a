# SPDX-License-Identifier: Apache-2.0
"""The messages of the twelve functions in protocol buffers' encoding (guest-apps/grpc/functions.proto, proto3).

Standard library only. A field that has its default is left out; arrays of numbers are packed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from sundial.workloads import functions

VARINT, LENGTH, FIXED32 = 0, 2, 5
"""Types of fields on the wire."""


def varint(value: int) -> bytes:
    """Seven bits an octet, the least first; a negative number has 64 bits."""
    value &= (1 << 64) - 1
    octets = bytearray()
    while value >= 0x80:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*octets, value))


def _key(number: int, kind: int) -> bytes:
    return varint(number << 3 | kind)


def integer(number: int, value: int) -> bytes:
    """A field of type bool, int32 or int64."""
    return _key(number, VARINT) + varint(value) if value else b""


def text(number: int, value: str) -> bytes:
    """A field of type string."""
    return _delimited(number, value.encode()) if value else b""


def real(number: int, value: float) -> bytes:
    """A field of type float; of the zeros only the positive one is left out."""
    octets = struct.pack("<f", value)
    return _key(number, FIXED32) + octets if any(octets) else b""


def integers(number: int, values: Sequence[int]) -> bytes:
    """A repeated field of type int32."""
    return _delimited(number, b"".join(map(varint, values))) if values else b""


def reals(number: int, values: Sequence[float]) -> bytes:
    """A repeated field of type float."""
    return _delimited(number, struct.pack(f"<{len(values)}f", *values)) if values else b""


def texts(number: int, values: Sequence[str]) -> bytes:
    """A repeated field of type string: each in a field of its own, the empty ones, too."""
    return b"".join(_delimited(number, value.encode()) for value in values)


def _delimited(number: int, octets: bytes) -> bytes:
    return _key(number, LENGTH) + varint(len(octets)) + octets


def person(value: functions.Person) -> bytes:
    """PersonValue."""
    return text(1, value.name) + integer(2, value.age) + real(3, value.weight)


_ENCODERS: dict[str, Callable[[Any], bytes]] = {
    **dict.fromkeys(("boolean", "int", "long"), lambda value: integer(1, value)),
    **dict.fromkeys(("string_32", "string_512", "string_1024"), lambda value: text(1, value)),
    "int_array": lambda value: integers(1, value),
    "float_array": lambda value: reals(1, value),
    "string_array": lambda value: texts(1, value),
    "person": person,
}
"""Of the functions that return their argument."""


@cache
def messages(name: str) -> tuple[bytes, bytes]:
    """Request and reply of a function."""
    function = functions.BY_NAME[name]
    if name == "void":
        return b"", b""
    if name == "distance":
        first, second = function.arguments
        return reals(1, first) + reals(2, second), real(1, function.result)  # type: ignore[arg-type]
    (argument,) = function.arguments
    return _ENCODERS[name](argument), _ENCODERS[name](function.result)
