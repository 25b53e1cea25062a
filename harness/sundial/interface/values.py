# SPDX-License-Identifier: Apache-2.0
"""Values of XDR in bytes (RFC 4506): each byte of a message has its place in a value, or is a fault.

A value is read as its leaves, in the order of the wire: numbers, presence, discriminants and lengths in decimal, all
else as `x` and its bytes in hexadecimal. Programs that `sundial rpc new` writes print theirs in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sundial.interface.types import (
    PLAIN,
    UNIT,
    Array,
    Enum,
    Field,
    Interface,
    Opaque,
    Optional,
    Plain,
    String,
    Struct,
    Type,
    Union,
)

_SIGNED = {"int", "hyper"}
_BITS = {"float", "double", "quadruple"}
_BOOL = PLAIN["bool"]
_PATH_MOST = 180


@dataclass(frozen=True)
class Leaf:
    """A part of a value without parts of its own."""

    path: str
    text: str
    begin: int
    end: int
    """Of its bytes in the message, with what pads them."""


class Fault(ValueError):
    """Bytes that are not a value of their type."""

    def __init__(self, path: str, at: int, what: str, expected: str) -> None:
        super().__init__(f"{path}, byte {at}: {what}")
        self.path, self.at, self.what, self.expected = path, at, what, expected


@dataclass
class _Reader:
    interface: Interface
    data: bytes
    at: int
    leaves: list[Leaf]

    def take(self, path: str, count: int) -> bytes:
        found = self.data[self.at : self.at + count]
        if len(found) < count:
            raise Fault(path, self.at, f"{len(self.data) - self.at} bytes left", f"{count} bytes")
        self.at += count
        return found

    def leaf(self, path: str, text: str, begin: int) -> None:
        self.leaves.append(Leaf(path, text, begin, self.at))

    def number(self, path: str, *, signed: bool = False) -> int:
        begin = self.at
        value = int.from_bytes(self.take(path, UNIT), signed=signed)
        self.leaf(path, str(value), begin)
        return value

    def flag(self, path: str) -> bool:
        begin, value = self.at, self.number(path)
        if value > 1:
            raise Fault(path, begin, f"bool {value}", "0 or 1")
        return bool(value)

    def count(self, path: str, most: int) -> int:
        begin, value = self.at, int.from_bytes(self.take(path, UNIT))
        if value > most:
            raise Fault(path, begin, f"length {value}", f"up to {most}")
        return value

    def octets(self, path: str, count: int, begin: int) -> None:
        value = self.take(path, count)
        at, pad = self.at, self.take(path, -count % UNIT)
        if any(pad):
            raise Fault(path, at, f"padding {pad.hex()}", "zeros")
        self.leaf(path, f"x{value.hex()}", begin)

    def plain(self, kind: Plain, path: str) -> None:
        if kind == _BOOL:
            self.flag(path)
            return
        begin, value = self.at, self.take(path, kind.size)
        bits = kind.name in _BITS
        self.leaf(path, f"x{value.hex()}" if bits else str(int.from_bytes(value, signed=kind.name in _SIGNED)), begin)

    def enum(self, kind: Enum, path: str) -> None:
        begin, value = self.at, self.number(path, signed=True)
        if value not in kind.labels.values():
            raise Fault(path, begin, f"enum {value}", ", ".join(map(str, sorted(set(kind.labels.values())))))

    def elements(self, kind: Array, path: str) -> Iterator[tuple[Type, str]]:
        number = kind.most
        if not kind.fixed:
            begin, number = self.at, self.count(path, kind.most)
            self.leaf(f"{path} length", str(number), begin)
        least = self.interface.least(kind.element)
        if number * least > len(self.data) - self.at:
            raise Fault(path, self.at, f"{len(self.data) - self.at} bytes left", f"{number} * {least} bytes")
        for place in range(number):
            yield kind.element, f"{path}[{place}]"

    def union(self, kind: Union, path: str) -> Iterator[tuple[Type, str]]:
        begin = self.at
        yield kind.discriminant.type, joined(path, kind.discriminant.name)
        value = int(self.leaves[-1].text)
        arm = next((each for each in kind.arms if value in each.values), kind.default)
        if arm is None:
            cases = ", ".join(str(case) for each in kind.arms for case in each.values)
            raise Fault(joined(path, kind.discriminant.name), begin, f"discriminant {value}", cases)
        if arm.field is not None:
            yield arm.field.type, joined(path, arm.field.name)

    def parts(self, kind: Type, path: str) -> Iterator[tuple[Type, str]]:
        """Reads what a type has itself, and answers what it has inside, each to be read before the next."""
        kind = self.interface.bare(kind)
        match kind:
            case Plain():
                self.plain(kind, path)
            case Enum():
                self.enum(kind, path)
            case Opaque():
                begin = self.at
                self.octets(path, kind.most if kind.fixed else self.count(path, kind.most), begin)
            case String():
                begin = self.at
                self.octets(path, self.count(path, kind.most), begin)
            case Optional():
                if self.flag(f"{path} present"):
                    yield kind.element, path
            case Array():
                yield from self.elements(kind, path)
            case Struct():
                yield from ((each.type, joined(path, each.name)) for each in kind.fields)
            case Union():
                yield from self.union(kind, path)


def joined(path: str, name: str) -> str:
    """The path of a member. The middle of a very long one is left out: lists are as deep as they are long."""
    if len(path) > _PATH_MOST:
        path = f"{path[: _PATH_MOST // 3]}...{path[-_PATH_MOST // 3 :]}"
    return f"{path}.{name}" if path else name


def read(
    interface: Interface, fields: Sequence[Field], data: bytes, begin: int = 0, *, head: bool = False
) -> list[Leaf]:
    """The leaves of some values in sequence, from `begin` on. All bytes must be theirs, unless they are only the `head`
    of a message. Raises Fault."""
    reader = _Reader(interface, data, begin, [])
    for each in fields:
        # Lists are as deep as they are long: no recursion.
        waiting = [reader.parts(each.type, each.name)]
        while waiting:
            part = next(waiting[-1], None)
            if part is None:
                waiting.pop()
            else:
                waiting.append(reader.parts(*part))
    if reader.at < len(data) and not head:
        raise Fault("end", reader.at, f"{len(data) - reader.at} bytes more", "the end of the message")
    return reader.leaves
