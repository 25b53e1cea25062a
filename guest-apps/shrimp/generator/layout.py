# SPDX-License-Identifier: Apache-2.0
"""Types and where their parts are in memory.

A member follows the one before it where its alignment allows that without a gap, else it is at the next multiple of 8;
structures begin and end at multiples of 8. So each gap is the rest of a word, and the stores of 8 bytes that pass a
value of fixed size make an image of it that the other side uses as it is there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

WORD = 8
PAGE = 4096
PAIR_PAGES = 255
"""VMMC_PAIR_PAGES, the most of a buffer: an export's but its control page."""
ROOM = PAIR_PAGES * PAGE - WORD
"""For arguments or results: a buffer without its flag."""
NESTED = 50
"""Types inside of one another at most; each is some calls deep here."""


def words_of(size: int) -> int:
    return -(-size // WORD)


def rounded(size: int) -> int:
    return words_of(size) * WORD


@dataclass(frozen=True)
class Scalar:
    c: str
    size: int
    label: str
    labels: tuple[tuple[str, int], ...] = ()
    """An enum's, with their values, sorted."""

    @property
    def align(self) -> int:
        return self.size

    fixed = True
    dense = True
    depth = 0

    @property
    def used(self) -> int:
        return self.size

    @property
    def most(self) -> int:
        """Bytes of the longest image."""
        return rounded(self.size)


@dataclass(frozen=True)
class Array:
    """T name[N]"""

    element: Type
    count: int

    @property
    def size(self) -> int:
        return self.element.size * self.count

    @property
    def align(self) -> int:
        return self.element.align

    @property
    def fixed(self) -> bool:
        return self.element.fixed

    @property
    def dense(self) -> bool:
        return self.element.dense and (self.count == 1 or self.element.used == self.element.size)

    @property
    def used(self) -> int:
        return self.element.size * (self.count - 1) + self.element.used

    @property
    def most(self) -> int:
        return rounded(self.size) if self.fixed else self.count * self.element.most

    @cached_property
    def depth(self) -> int:
        return self.element.depth + 1

    @property
    def label(self) -> str:
        return f"{self.element.label}[{self.count}]"


@dataclass(frozen=True)
class Vector:
    """T name<N>, a string, or opaque data: a length and the used elements."""

    element: Type
    bound: int
    c: str
    """The structure's name, where it is inside of something."""
    form: str

    align = WORD
    fixed = False
    dense = False

    @property
    def items_at(self) -> int:
        return max(4, self.element.align)

    @property
    def size(self) -> int:
        return rounded(self.items_at + self.bound * self.element.size)

    @property
    def used(self) -> int:
        return self.size

    @property
    def most(self) -> int:
        if self.element.fixed:
            return self.size
        return WORD + self.bound * self.element.most

    @cached_property
    def depth(self) -> int:
        return self.element.depth + 1

    @property
    def label(self) -> str:
        return f"{self.form}<{self.bound}>"


@dataclass(frozen=True)
class Member:
    name: str
    type: Type
    at: int
    gap: bool
    """Whether there is one before it."""

    @property
    def end(self) -> int:
        return self.at + self.type.used


@dataclass(frozen=True)
class Struct:
    c: str
    members: tuple[Member, ...]
    size: int

    align = WORD

    @property
    def fixed(self) -> bool:
        return all(member.type.fixed for member in self.members)

    @property
    def dense(self) -> bool:
        """Without a gap but at its end."""
        return all(m.type.dense and not m.gap for m in self.members)

    @property
    def used(self) -> int:
        return self.members[-1].end

    @property
    def most(self) -> int:
        if self.fixed:
            return self.size
        return sum(run[0].type.most if not run[0].type.fixed else rounded(extent(run)) for run in self.runs())

    def runs(self) -> list[list[Member]]:
        """Members of variable size alone, those of fixed size together with their neighbours."""
        runs: list[list[Member]] = []
        for member in self.members:
            if runs and member.type.fixed and runs[-1][-1].type.fixed:
                runs[-1].append(member)
            else:
                runs.append([member])
        return runs

    @cached_property
    def depth(self) -> int:
        return 1 + max(member.type.depth for member in self.members)

    @property
    def label(self) -> str:
        return self.c


Type = Scalar | Array | Vector | Struct


def extent(run: list[Member]) -> int:
    return run[-1].at + run[-1].type.size - run[0].at


def structure(name: str, fields: list[tuple[str, Type]]) -> Struct:
    members: list[Member] = []
    end = used = 0
    for label, kind in fields:
        at = end if end % kind.align == 0 else rounded(end)
        members.append(Member(label, kind, at, at != used))
        end, used = at + kind.size, at + kind.used
    return Struct(name, tuple(members), rounded(end))


def in_place(kind: Type) -> bool:
    """Whether a parameter is used as it is in the buffer."""
    return kind.fixed or (isinstance(kind, Vector) and kind.element.fixed)


def most_passed(kind: Type) -> int:
    """Bytes of a parameter at most, without the word that says how much it is."""
    return rounded(kind.bound * kind.element.size) if isinstance(kind, Vector) and in_place(kind) else kind.most


@dataclass(frozen=True)
class Parameter:
    name: str
    direction: str
    type: Type


@dataclass(frozen=True)
class Procedure:
    name: str
    number: int
    parameters: tuple[Parameter, ...]

    @property
    def constant(self) -> str:
        """Its number's name: its own, unless that is the name of the client's stub."""
        return self.name if self.name != self.stub else f"{self.name}_shrimp_number"

    @property
    def stub(self) -> str:
        return self.name.lower()

    def passed(self, back: bool) -> list[tuple[str, Type]]:
        """What the call has (or, back, the reply), by the names that stubs give it."""
        if not back:
            return [(p.name, p.type) for p in self.parameters if p.direction != "out"]
        return [
            (p.name if p.direction == "out" else f"{p.name}_out", p.type)
            for p in self.parameters
            if p.direction != "in"
        ]

    def most(self, back: bool) -> int:
        """Bytes below the flag at most."""
        return sum(most_passed(kind) + (0 if kind.fixed else WORD) for _, kind in self.passed(back))


@dataclass
class Program:
    name: str = ""
    number: int = 0
    version: int = 0
    constants: dict[str, int] = field(default_factory=dict)
    enums: dict[str, dict[str, int]] = field(default_factory=dict)
    structures: dict[str, Struct | Vector] = field(default_factory=dict)
    """What is a structure in C, in the order of the file."""
    procedures: list[Procedure] = field(default_factory=list)

    @property
    def pages(self) -> int:
        most = max((p.most(back) for p in self.procedures for back in (False, True)), default=0)
        return -(-(most + WORD) // PAGE)
