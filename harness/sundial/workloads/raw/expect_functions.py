# SPDX-License-Identifier: Apache-2.0
"""Calls of the twelve functions over plain sockets: the header of echoes with another magic, then the values as C has
them in memory, little endian, the members of a structure and the strings of an array one behind the other."""

from __future__ import annotations

import struct
from functools import lru_cache

from sundial.workloads.functions import BY_NAME, Person, Value

MAGIC = b"SDF"
"""And the number of the function in a fourth byte."""

_INTEGERS = {"int": "<i", "long": "<q", "int_array": "<i"}


def _octets(name: str, value: Value | Person) -> bytes:
    match value:
        case None:
            return b""
        case bool():
            return struct.pack("<?", value)
        case int():
            return struct.pack(_INTEGERS[name], value)
        case float():
            return struct.pack("<f", value)
        case str():
            return value.encode()
        case Person():
            return value.name.encode() + struct.pack("<if", value.age, value.weight)
    return b"".join(_octets(name, element) for element in value)


@lru_cache
def values(name: str, *, reply: bool) -> bytes:
    """What is behind the header of a call, or of its reply."""
    function = BY_NAME[name]
    if not reply:
        return b"".join(_octets(name, value) for value in function.arguments)
    # Computed from floats, in double precision.
    return struct.pack("<d", function.result) if name == "distance" else _octets(name, function.result)


def magic(name: str) -> bytes:
    """The first word of both."""
    return MAGIC + bytes([BY_NAME[name].number])
