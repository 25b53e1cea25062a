# SPDX-License-Identifier: Apache-2.0
"""The twelve remote functions: what is passed and what must come back. The harness writes the same down by itself."""

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

ELEMENTS = 200
LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Person:
    """The argument of function 11."""

    def __init__(self, name: str, age: int, weight: float) -> None:
        self.name, self.age, self.weight = name, age, weight

    def __eq__(self, other: object) -> bool:
        return all(getattr(other, field, None) == value for field, value in vars(self).items())

    __hash__ = None  # type: ignore[assignment]


class Function(NamedTuple):
    """One of the twelve."""

    number: int
    name: str
    size: int
    """Bytes of the values as C has them: the column `size` of samples."""
    arguments: tuple[Any, ...]
    """Arrays are lists here; `in_container` makes them what a program was asked for."""
    result: Any

    @property
    def has_container(self) -> bool:
        """Whether an argument is an array."""
        return any(isinstance(value, list) for value in self.arguments)

    def in_container(self, container: Callable[[Iterable[Any]], Any]) -> tuple[Any, ...]:
        """The arguments with `list` or `tuple` for each array."""
        return tuple(container(value) if isinstance(value, list) else value for value in self.arguments)


def _string(length: int) -> str:
    return (LETTERS * (length // len(LETTERS) + 1))[:length]


def distance(one: Iterable[float], other: Iterable[float]) -> float:
    """Euclidean, of two points; what function 12 computes."""
    return math.sqrt(sum((a - b) * (a - b) for a, b in zip(one, other, strict=True)))


def _echo(number: int, name: str, size: int, value: Any) -> Function:
    return Function(number, name, size, (value,), value)


_ONE, _OTHER = [0.0, 0.5, 1.0], [3.0, 2.5, 1.0]

FUNCTIONS = (
    Function(1, "void", 0, (), None),
    _echo(2, "boolean", 1, True),
    _echo(3, "int", 4, 123456789),
    _echo(4, "long", 8, 1234567890123456789),
    _echo(5, "string_32", 32, _string(32)),
    _echo(6, "string_512", 512, _string(512)),
    _echo(7, "string_1024", 1024, _string(1024)),
    _echo(8, "int_array", 4 * ELEMENTS, list(range(ELEMENTS))),
    _echo(9, "float_array", 4 * ELEMENTS, [index / 2 for index in range(ELEMENTS)]),
    _echo(10, "string_array", 6 * ELEMENTS, ["abcdef"] * ELEMENTS),
    _echo(11, "person", 17, Person("Nine char", 30, 70.5)),
    Function(12, "distance", 24, (_ONE, _OTHER), distance(_ONE, _OTHER)),
)
BY_NAME = {function.name: function for function in FUNCTIONS}
NAMES = tuple(BY_NAME)
