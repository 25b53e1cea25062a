# SPDX-License-Identifier: Apache-2.0
"""The twelve functions in XDR (RFC 4506), by the types that guest-apps/echo/function_calls.x gives them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from sundial.workloads.functions import BY_NAME, Person

PROGRAM, VERSION = 0x2000199A, 1

_Filter = Callable[[Any], bytes]


def _integer(value: int) -> bytes:
    """Section 4.1; a boolean is one of its two values (4.4)."""
    return struct.pack(">i", value)


def _hyper(value: int) -> bytes:
    """Section 4.5."""
    return struct.pack(">q", value)


def _single(value: float) -> bytes:
    """Section 4.6."""
    return struct.pack(">f", value)


def _double(value: float) -> bytes:
    """Section 4.7."""
    return struct.pack(">d", value)


def _string(value: str) -> bytes:
    """Section 4.11: length, bytes, and zeros up to a multiple of four."""
    data = value.encode()
    return struct.pack(">I", len(data)) + data + bytes(-len(data) % 4)


def _array(element: _Filter) -> Callable[[Sequence[Any]], bytes]:
    """Section 4.13: the number of elements, then each."""
    return lambda values: struct.pack(">I", len(values)) + b"".join(map(element, values))


def _person(value: Person) -> bytes:
    """Section 4.14: the components in their order."""
    return _string(value.name) + _integer(value.age) + _single(value.weight)


_FILTERS: dict[str, _Filter] = {
    "boolean": _integer,
    "int": _integer,
    "long": _hyper,
    "string_32": _string,
    "string_512": _string,
    "string_1024": _string,
    "int_array": _array(_integer),
    "float_array": _array(_single),
    "string_array": _array(_string),
    "person": _person,
    "distance": _array(_single),
}
_RESULTS: dict[str, _Filter] = {**_FILTERS, "distance": _double}
_RUNS_OF_BYTES = frozenset({"void", "string_32", "string_512", "string_1024", "string_array"})
"""Those that end otherwise than with a word (`expect.record_fragments`)."""


@lru_cache
def arguments(name: str) -> bytes:
    """What a call carries."""
    return b"".join(_FILTERS[name](value) for value in BY_NAME[name].arguments)


@lru_cache
def results(name: str) -> bytes:
    """What its reply carries."""
    result = BY_NAME[name].result
    return b"" if result is None else _RESULTS[name](result)


def result_size(name: str) -> int:
    """Bytes of the result's values as C has them."""
    return len(results(name)) if name == "distance" else BY_NAME[name].size


def ends_in_word(name: str) -> tuple[bool, bool]:
    """Whether call and reply end with a single XDR word. A header without arguments ends with the verifier's bytes, one
    without results with its status."""
    word = name not in _RUNS_OF_BYTES
    return word, word or name == "void"


LARGEST = max(len(arguments(name)) for name in BY_NAME)
"""Bytes of the longest arguments."""
