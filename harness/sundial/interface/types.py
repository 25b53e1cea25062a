# SPDX-License-Identifier: Apache-2.0
"""Types of XDR (RFC 4506) and programs of RPC (RFC 5531), as a file in their language defines them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

UNIT = 4
"""Bytes of which everything in XDR is a multiple."""
UNBOUNDED = (1 << 32) - 1


@dataclass(frozen=True)
class Plain:
    """A type of fixed size without parts."""

    name: str
    size: int
    """Bytes on the wire."""


PLAIN = {
    each.name: each
    for each in (
        Plain("int", 4), Plain("unsigned int", 4), Plain("hyper", 8), Plain("unsigned hyper", 8),
        Plain("float", 4), Plain("double", 8), Plain("quadruple", 16), Plain("bool", 4),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Opaque:
    """Bytes: exactly `most` if they are `fixed`, else up to it behind their number."""

    most: int
    fixed: bool


@dataclass(frozen=True)
class String:
    """Text of up to `most` bytes, behind their number."""

    most: int


@dataclass(frozen=True)
class Array:
    """Elements: exactly `most` if they are `fixed`, else up to it behind their number."""

    element: Type
    most: int
    fixed: bool


@dataclass(frozen=True)
class Optional:
    """A value that may be absent: a bool before it."""

    element: Type


@dataclass(frozen=True)
class Named:
    """A type by its name."""

    name: str


@dataclass(frozen=True)
class Enum:
    labels: Mapping[str, int]


@dataclass(frozen=True)
class Field:
    name: str
    type: Type


@dataclass(frozen=True)
class Struct:
    fields: Sequence[Field]


@dataclass(frozen=True)
class Arm:
    """One form of a union, of several values of its discriminant; None: void."""

    values: Sequence[int]
    field: Field | None


@dataclass(frozen=True)
class Union:
    discriminant: Field
    arms: Sequence[Arm]
    default: Arm | None
    """Without values."""

    @property
    def forms(self) -> list[Arm]:
        """All arms."""
        return [*self.arms, *([] if self.default is None else [self.default])]


Type = Plain | Opaque | String | Array | Optional | Named | Enum | Struct | Union


@dataclass(frozen=True)
class Procedure:
    name: str
    number: int
    arguments: Sequence[Field]
    result: Type | None


@dataclass(frozen=True)
class Version:
    name: str
    number: int
    procedures: Sequence[Procedure]


@dataclass(frozen=True)
class Program:
    name: str
    number: int
    versions: Sequence[Version]


@dataclass
class Interface:
    """What a file defines, in its order."""

    constants: dict[str, int] = field(default_factory=dict)
    """Those of `const`."""
    types: dict[str, Type] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    """Of types: where they are defined."""
    programs: list[Program] = field(default_factory=list)
    _least: dict[str, int] = field(default_factory=dict)

    def bare(self, kind: Type) -> Type:
        """A type without the names that typedefs gave it. Raises KeyError for an unknown one."""
        while isinstance(kind, Named):
            kind = self.types[kind.name]
        return kind

    def procedures(self) -> Iterator[tuple[Program, Version, Procedure]]:
        """All, in order."""
        for program in self.programs:
            for version in program.versions:
                for procedure in version.procedures:
                    yield program, version, procedure

    def least(self, kind: Type | None) -> int:
        """Bytes that a value has at least, 0 of void. RecursionError for types that are nested very deeply."""
        if isinstance(kind, Named):
            if kind.name not in self._least:
                self._least[kind.name] = self.least(self.types[kind.name])
            return self._least[kind.name]
        match kind:
            case None:
                return 0
            case Plain():
                return kind.size
            case Opaque():
                return -(-kind.most // UNIT) * UNIT if kind.fixed else UNIT
            case Array():
                return kind.most * self.least(kind.element) if kind.fixed else UNIT
            case Struct():
                return sum(self.least(each.type) for each in kind.fields)
            case Union():
                return UNIT + min(self.least(arm.field.type if arm.field else None) for arm in kind.forms)
        return UNIT


def parts(kind: Type) -> Iterator[Type]:
    """The types inside of a type."""
    match kind:
        case Array() | Optional():
            yield kind.element
        case Struct():
            yield from (each.type for each in kind.fields)
        case Union():
            yield kind.discriminant.type
            yield from (arm.field.type for arm in kind.forms if arm.field)
