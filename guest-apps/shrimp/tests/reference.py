# SPDX-License-Identifier: Apache-2.0
"""The layout as README.md has it, written a second time: values to bytes. Nothing here knows the generator."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)


@dataclass(frozen=True)
class Plain:
    """A number: its name in the .x file, and struct's letter."""

    name: str
    letter: str
    least: int = 0
    most: int = 0
    fixed = True

    @property
    def align(self) -> int:
        return struct.calcsize(self.letter)

    def image(self, value: Any) -> bytes:
        return struct.pack("<" + self.letter, value)

    def values(self) -> st.SearchStrategy[Any]:
        if self.letter in "fd":
            return st.floats(width=32 if self.letter == "f" else 64, allow_nan=False)
        bits = 8 * self.align
        signed = self.letter.islower() and self.letter != "c"
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        return st.integers(self.least or low, self.most or high)


@dataclass(frozen=True)
class Many:
    """`count` elements, or up to so many where `counted`."""

    element: Kind
    count: int
    counted: bool

    @property
    def fixed(self) -> bool:
        return self.element.fixed and not self.counted

    @property
    def align(self) -> int:
        return 8 if self.counted else self.element.align

    def image(self, value: Any) -> bytes:
        return b"".join(self.element.image(each) for each in value)

    def values(self) -> st.SearchStrategy[Any]:
        return st.lists(self.element.values(), min_size=0 if self.counted else self.count, max_size=self.count)


@dataclass(frozen=True)
class Record:
    members: tuple[Kind, ...]
    align = 8

    @property
    def fixed(self) -> bool:
        return all(member.fixed for member in self.members)

    def image(self, value: Any) -> bytes:
        data = b""
        for member, each in zip(self.members, value, strict=True):
            if len(data) % member.align:
                data = padded(data)
            data += member.image(each)
        return padded(data)

    def values(self) -> st.SearchStrategy[Any]:
        return st.tuples(*(member.values() for member in self.members))


Kind = Plain | Many | Record


def encode(kind: Kind, value: Any) -> bytes:
    """One value as it is passed: whole words."""
    if kind.fixed:
        return padded(kind.image(value))
    if isinstance(kind, Many):
        if not kind.element.fixed:
            head = struct.pack("<Q", len(value)) if kind.counted else b""
            return head + b"".join(encode(kind.element, each) for each in value)
        head = struct.pack("<I", len(value)) if kind.element.align <= 4 else struct.pack("<Q", len(value))
        return padded(head + kind.image(value))
    assert isinstance(kind, Record)
    data, run = b"", []
    for member, each in [*zip(kind.members, value, strict=True), (None, None)]:
        if member is not None and member.fixed:
            run.append((member, each))
            continue
        data += Record(tuple(m for m, _ in run)).image([v for _, v in run])
        run = []
        if member is not None:
            data += encode(member, each)
    return data


def passed(*values: tuple[Kind, Any]) -> bytes:
    """All that is below the flag."""
    variable = fixed = b""
    for kind, value in values:
        if kind.fixed:
            fixed += encode(kind, value)
        elif isinstance(kind, Many) and kind.counted and kind.element.fixed:
            variable += padded(kind.image(value))
            fixed += struct.pack("<Q", len(value))
        else:
            data = encode(kind, value)
            variable += data
            fixed += struct.pack("<Q", len(data))
    return variable + fixed


def flag(sequence: int, low: int) -> bytes:
    return struct.pack("<Q", sequence << 16 | low)
