# SPDX-License-Identifier: Apache-2.0
"""Arguments and results of the twelve functions as bytes, by C706 chapter 14, for the interface of
guest-apps/dce/twelve.idl.

Numbers are aligned to their length from the beginning of the message. A string is its room, its offset and its
length, the NUL counted, before its bytes; an array whose length is a parameter has its room in front. Behind an
array or a structure with pointers follows what they point to.
"""

from __future__ import annotations

import struct
from functools import lru_cache

from sundial.workloads.functions import BY_NAME, FUNCTIONS, Person, Value

REFERENT = 0x20000
"""A unique pointer that is not null is any number but 0; the programs write this one."""


class _Writer:
    """A message in the order of its sender."""

    def __init__(self, *, little: bool) -> None:
        self._order = "<" if little else ">"
        self._bytes = bytearray()

    def number(self, kind: str, *values: float) -> None:
        """Each in the format of `struct`, aligned."""
        for value in values:
            self._bytes += bytes(-len(self._bytes) % struct.calcsize(kind))
            self._bytes += struct.pack(self._order + kind, value)

    def string(self, text: str) -> None:
        octets = text.encode("ascii") + b"\0"
        self.number("I", len(octets), 0, len(octets))
        self._bytes += octets

    def strings(self, texts: tuple[str, ...]) -> None:
        self.number("I", len(texts), *(REFERENT,) * len(texts))
        for text in texts:
            self.string(text)

    def person(self, person: Person) -> None:
        self.number("I", REFERENT)
        self.number("i", person.age)
        self.number("f", person.weight)
        self.string(person.name)

    def done(self) -> bytes:
        return bytes(self._bytes)


_SCALARS = {"boolean": "B", "int": "i", "long": "q"}
_ARRAYS = {"int_array": "i", "float_array": "f"}


def _echoed(name: str, value: Value | Person, writer: _Writer) -> None:
    """What functions 2 to 11 pass both ways."""
    if isinstance(value, Person):
        writer.person(value)
    elif isinstance(value, str):
        writer.string(value)
    elif isinstance(value, tuple) and name in _ARRAYS:
        writer.number("I", len(value))
        writer.number(_ARRAYS[name], *(item for item in value if isinstance(item, int | float)))
    elif isinstance(value, tuple):
        writer.strings(tuple(map(str, value)))
    elif value is not None:
        assert not isinstance(value, tuple)
        writer.number(_SCALARS[name], value)


@lru_cache
def messages(name: str, *, little: bool) -> tuple[bytes, bytes]:
    """The bodies of request and response; each end has an order of its own, so both are not always of one call."""
    function = BY_NAME[name]
    request, response = _Writer(little=little), _Writer(little=little)
    if name == "distance":
        for point in function.arguments:
            assert isinstance(point, tuple)
            request.number("f", *(item for item in point if isinstance(item, float)))
        assert isinstance(function.result, float)
        response.number("d", function.result)
        return request.done(), response.done()
    for argument in function.arguments:
        if isinstance(argument, tuple):
            request.number("I", len(argument))
        _echoed(name, argument, request)
        _echoed(name, function.result, response)
    return request.done(), response.done()


def by_number(number: int) -> str | None:
    """The function that an operation of the interface is; None where there is none."""
    return next((each.name for each in FUNCTIONS if each.number == number), None)


def lengths(name: str) -> tuple[int, int]:
    """Of request and response, in either order."""
    request, response = messages(name, little=True)
    return len(request), len(response)


MESSAGE_MOST = max(length for each in FUNCTIONS for length in lengths(each.name))
