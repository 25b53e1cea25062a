# SPDX-License-Identifier: Apache-2.0
"""Twelve remote functions over types from nothing to an object (santos18), which kinds of workload offer alike.

Functions 2 to 11 return their argument. The paper does not print its values: these are ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import dist
from string import ascii_lowercase

ELEMENTS = 200
"""Of an array."""

Value = bool | int | float | str | tuple["Value", ...] | None


@dataclass(frozen=True)
class Person:
    """The argument of function 11."""

    name: str
    age: int
    weight: float


@dataclass(frozen=True)
class Function:
    """One of the twelve."""

    number: int
    """The paper's, from 1."""
    name: str
    """The word in scenarios, and `procedure` in samples."""
    size: int
    """Bytes of the argument's values alone, by the C types that the paper names: what `size` in samples says."""
    arguments: tuple[Value | Person, ...]
    """A tuple stands for an array, in whatever container a system passes it."""
    result: Value | Person
    contains: bool = False
    """An argument is an array."""


def _echo(number: int, name: str, size: int, value: Value | Person) -> Function:
    return Function(number, name, size, (value,), value, contains=isinstance(value, tuple))


def _text(length: int) -> str:
    return "".join(ascii_lowercase[place % len(ascii_lowercase)] for place in range(length))


_POINTS = (0.0, 0.5, 1.0), (3.0, 2.5, 1.0)

FUNCTIONS: tuple[Function, ...] = (
    Function(1, "void", 0, (), None),
    _echo(2, "boolean", 1, True),
    _echo(3, "int", 4, 123456789),
    _echo(4, "long", 8, 1234567890123456789),
    *(_echo(number, f"string_{length}", length, _text(length)) for number, length in ((5, 32), (6, 512), (7, 1024))),
    _echo(8, "int_array", 4 * ELEMENTS, tuple(range(ELEMENTS))),
    _echo(9, "float_array", 4 * ELEMENTS, tuple(place / 2 for place in range(ELEMENTS))),
    _echo(10, "string_array", 6 * ELEMENTS, ("abcdef",) * ELEMENTS),
    _echo(11, "person", 17, Person("Nine char", 30, 70.5)),
    Function(12, "distance", 24, _POINTS, dist(*_POINTS), contains=True),
)
BY_NAME = {each.name: each for each in FUNCTIONS}
NAMES = tuple(BY_NAME)
