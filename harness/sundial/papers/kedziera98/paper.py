# SPDX-License-Identifier: Apache-2.0
"""The paper's data: single numbers of its text, and its machines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import model_validator

from sundial.errors import BadInput
from sundial.model.fields import Strict
from sundial.reproduce.paper import Paper, Scale


class Value(Strict):
    """One number that the text prints."""

    id: str
    statement: str
    """About it."""
    figure: int | None = None
    """That it is said of; None: of no figure."""
    quantity: str
    number: float | tuple[float, float]
    unit: str
    kind: Literal["above", "to", "range"]
    """How the text says it: more than the number, up to it, or from the first to the second."""

    @model_validator(mode="after")
    def _two_for_a_range(self) -> Self:
        if isinstance(self.number, tuple) != (self.kind == "range"):
            raise BadInput("a range has two numbers, everything else has one")
        return self

    @property
    def one(self) -> float:
        """Of a value that is not a range."""
        assert not isinstance(self.number, tuple)
        return self.number

    @property
    def both(self) -> tuple[float, float]:
        """Of a range."""
        assert isinstance(self.number, tuple)
        return self.number

    @property
    def text(self) -> str:
        """As the page says it."""
        if isinstance(self.number, tuple):
            return f"{self.number[0]:g} to {self.number[1]:g} {self.unit}"
        return f"{'above' if self.kind == 'above' else 'to'} {self.number:g} {self.unit}"


class Machines(Strict):
    """Processors and systems, as the paper names them."""

    sun: str
    solaris_pc: str
    linux_pc: str


class Band(Strict):
    """Sizes as a scenario has them, and the calls for each of them."""

    sizes: tuple[int | str, ...]
    calls: int


class Extent(Strict):
    """Sizes, calls and series of the curves."""

    bands: tuple[Band, ...]
    """Of figures 1, 2 and 4."""
    selected: tuple[Band, ...]
    """Of figure 3 and of raw sockets; the paper does not say which sizes it took."""
    series: int
    fit_calls: int
    seconds: int
    """Of a stream."""
    cells: bool = True
    """Cells are captured, too."""
    search: bool = True
    """Speeds of machines are searched for; else they are taken as they were found."""
    deadline: str = "1 h"


class Kedziera98(Paper):
    """A paper without tables."""

    machines: Machines
    scales: Mapping[Scale, Extent]
    values: tuple[Value, ...]

    def value(self, name: str) -> Value:
        """By its id."""
        return {value.id: value for value in self.values}[name]
