# SPDX-License-Identifier: Apache-2.0
"""Which runs a sweep has: cells from its axes, and seeds. Pure: the same file gives the same list."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from random import Random
from typing import Any

from sundial.errors import BadInput
from sundial.model.sweep import Sweep, SweepAxis
from sundial.reproduce.matrix import written
from sundial.sweep.sequences import halton, sobol
from sundial.units import RATE, SIZE, TIME, split

SIGNIFICANT = 3
"""Digits of a value between both ends of a range."""
_QUANTITIES = (TIME, RATE, SIZE)

Cell = tuple[str, ...]
"""A value for each axis, as `--set` reads it."""


@dataclass(frozen=True)
class Point:
    """One run."""

    cell: Cell
    seed: int
    first: tuple[str, ...] = ()
    """Settings behind those of all runs and before those of the axes: what a search has left out."""


@dataclass(frozen=True)
class Axis:
    """An axis by its name. `simple`: its simplest value."""

    name: str
    key: str
    values: Cell
    ends: tuple[str, str] | None
    log: bool

    @property
    def simple(self) -> str:
        return self.values[0] if self.values else (self.ends or ("",))[0]

    def at(self, share: float) -> str:
        """The value at a share, from 0 to 1, of the axis."""
        if self.ends is None:
            return self.values[min(int(share * len(self.values)), len(self.values) - 1)]
        return between(*self.ends, share, log=self.log)


def axes_of(sweep: Sweep) -> list[Axis]:
    """All axes. Raises BadInput for ends of a range that are not quantities of one kind."""
    return [_axis(name, axis) for name, axis in sweep.axes.items()]


def _axis(name: str, axis: SweepAxis) -> Axis:
    ends = None
    if axis.start is not None:
        ends = (written(axis.start), written(axis.end))
        try:
            between(*ends, 0.5, log=axis.scale == "log")
        except BadInput as error:
            raise error.within(field=f"axes.{name}") from None
    return Axis(name, axis.key, tuple(map(written, axis.values or ())), ends, axis.scale == "log")


def cells_of(sweep: Sweep, axes: Sequence[Axis]) -> list[Cell]:
    """The cells, each once; of the axis of a threshold, which is bisected, each has the value ''."""
    bisected = sweep.threshold.axis if sweep.threshold is not None else None
    varied = [axis for axis in axes if axis.name != bisected]
    found = [dict(zip((axis.name for axis in varied), cell, strict=True)) for cell in _cells(sweep, varied)]
    return list(dict.fromkeys(tuple(cell.get(axis.name, "") for axis in axes) for cell in found))


def _cells(sweep: Sweep, axes: Sequence[Axis]) -> Iterator[Cell]:
    if sweep.points:
        yield from (_listed(number, point, axes) for number, point in enumerate(sweep.points))
        return
    if sweep.design in ("random", "halton", "sobol"):
        if sweep.count is None:
            raise BadInput("count is missing", field="count", allowed=f"the number of points of design {sweep.design}")
        random = Random(1)
        for number in range(sweep.count):
            if sweep.design == "sobol":
                shares = sobol(number, len(axes))  # with the origin: without it 2^n points are not even
            elif sweep.design == "halton":
                shares = halton(number + 1, len(axes))
            else:
                shares = [random.random() for _ in axes]
            yield tuple(axis.at(share) for axis, share in zip(axes, shares, strict=True))
        return
    if sweep.count is not None:
        raise BadInput(f"design {sweep.design} has no count", field="count", allowed="design: random, halton or sobol")
    ranges = [axis.name for axis in axes if not axis.values]
    if ranges:
        what = f"design {sweep.design} needs values"
        others = "values, or design: random, halton or sobol, or threshold"
        raise BadInput(what, field=f"axes.{ranges[0]}", allowed=others)
    if sweep.design == "zip":
        if len({len(axis.values) for axis in axes}) > 1:
            counts = ", ".join(f"{axis.name} has {len(axis.values)}" for axis in axes)
            raise BadInput(f"zip needs axes of one length: {counts}", field="design", allowed="equal lengths, or grid")
        yield from zip(*(axis.values for axis in axes), strict=True)
        return
    yield from product(*(axis.values for axis in axes))


def _listed(number: int, point: Mapping[str, Any], axes: Sequence[Axis]) -> Cell:
    names = [axis.name for axis in axes]
    if set(point) != set(names):
        raise BadInput(f"has {', '.join(point) or 'nothing'}", field=f"points.{number}", allowed=", ".join(names))
    return tuple(written(point[name]) for name in names)


def settings_of(sweep: Sweep, axes: Sequence[Axis], point: Point) -> list[str]:
    """`KEY=VALUE` of one run, those of all runs first."""
    return [
        *(f"{key}={written(value)}" for key, value in sweep.set.items()),
        *point.first,
        *(f"{axis.key}={value}" for axis, value in zip(axes, point.cell, strict=True)),
    ]


def between(low: str, high: str, share: float, *, log: bool) -> str:
    """The quantity at a share of the way between two, as written. Raises BadInput."""
    first, second = quantity(low), quantity(high)
    if first is None or second is None or first[1] != second[1]:
        raise BadInput(f"{plain(low)} and {plain(high)} are no range", allowed="two quantities of one kind")
    if share <= 0 or share >= 1:
        return low if share <= 0 else high
    one, other = float(first[0]), float(second[0])
    if log and min(one, other) <= 0:
        raise BadInput(f"{plain(low)} to {plain(high)} has no logarithm", allowed="ends above 0, or scale: linear")
    value = one * (other / one) ** share if log else one + (other - one) * share
    exact = Decimal(f"{value:.{SIGNIFICANT}g}")
    for kind in _QUANTITIES:
        if first[1] == kind.noun:
            return written(kind.show(int(exact)))
    if first[1] == "%":
        return written(f"{exact.normalize():f} %")
    whole = all(float(each).is_integer() for each in (one, other))
    return str(int(exact)) if whole else f"{exact.normalize():f}"


def quantity(text: str) -> tuple[Decimal, str] | None:
    """A value as `--set` reads it, in base units, and the kind of quantity; None for what is not one number."""
    number, unit = split(plain(text))
    if number is None:
        return None
    if unit is None or unit == "%":
        return number, unit or ""
    for kind in _QUANTITIES:
        if unit in kind.units:
            return number * kind.units[unit], kind.noun
    return None


def number_of(text: str) -> float | None:
    """The value of an axis as a number in base units (ns, bit/s, bytes; 0.01 for 1 %); None where it is none."""
    found = quantity(text)
    if found is None or not math.isfinite(float(found[0])):
        return None
    return float(found[0]) / 100 if found[1] == "%" else float(found[0])


def plain(text: str) -> str:
    """A value without the quotes of `--set`, as a heading says it."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
