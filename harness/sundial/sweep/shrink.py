# SPDX-License-Identifier: Apache-2.0
"""Makes a failing run small: fewer parts, simpler values. Pure over a function that says how a run fails.

A change stays only if the run fails in the same way, by the name of its fault. Runs repeat, so each is tried once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sundial.errors import BadInput
from sundial.sweep.design import Axis, between, quantity

HALVINGS = 7
"""Of the way between a value and the simplest one."""


@dataclass(frozen=True)
class Case:
    """A run: what can be left out of it, by field, and the value of each axis."""

    parts: Mapping[str, tuple[Any, ...]]
    values: tuple[str, ...]


Fault = Callable[[Case], str | None]
"""The name of a case's fault; None where it passes or cannot be made."""


class OutOfProbes(Exception):
    """No more runs may be made."""


class Shrinker:
    """Smaller cases of one fault, found by at most so many runs."""

    def __init__(self, fault: Fault, name: str, axes: Sequence[Axis], most: int) -> None:
        self.probes = 0
        self.most = most
        self._fault = fault
        self._name = name
        self._axes = axes
        self._known: list[tuple[Case, bool]] = []

    def shrink(self, case: Case) -> Case:
        """The smallest case that was found. Without a limit of runs, no single part can be left out of it, and no axis
        can have a simpler value of those that were tried."""
        best = case
        try:
            while True:
                before = best
                for smaller in self._passes(best):
                    best = smaller
                if best == before:
                    return best
        except OutOfProbes:
            return self._last or best

    @property
    def _last(self) -> Case | None:
        """The last case that failed in the same way: each is smaller than those before."""
        return next((case for case, failed in reversed(self._known) if failed), None)

    def _passes(self, case: Case) -> Iterator[Case]:
        """The case after each kind of change."""
        for field in case.parts:
            case = self._without_parts(case, field)
            yield case
        for place in range(len(case.values)):
            case = self._simpler(case, place)
            yield case

    def _fails(self, case: Case) -> bool:
        for known, failed in self._known:
            if known == case:
                return failed
        if self.probes >= self.most:
            raise OutOfProbes
        self.probes += 1
        failed = self._fault(case) == self._name
        self._known.append((case, failed))
        return failed

    def _without_parts(self, case: Case, field: str) -> Case:
        def test(kept: Sequence[Any]) -> bool:
            return self._fails(replace(case, parts={**case.parts, field: tuple(kept)}))

        kept = minimal(case.parts[field], test)
        return replace(case, parts={**case.parts, field: tuple(kept)})

    def _simpler(self, case: Case, place: int) -> Case:
        """The case with the simplest value of one axis with which it fails."""
        axis, value = self._axes[place], case.values[place]

        def test(text: str) -> bool:
            return self._fails(replace(case, values=(*case.values[:place], text, *case.values[place + 1 :])))

        found = next((text for text in simpler(axis, value) if test(text)), None)
        if found is None:
            found = bisected(axis.simple, value, test)
        return replace(case, values=(*case.values[:place], found, *case.values[place + 1 :]))


def minimal(parts: Sequence[Any], fails: Callable[[Sequence[Any]], bool]) -> list[Any]:
    """A subsequence that fails and of which no single part can be left out; `parts` fail. (Delta debugging: larger and
    larger numbers of smaller and smaller pieces are left out.)"""
    kept, pieces = list(parts), 1
    while kept:
        size = -(-len(kept) // pieces)
        for begin in range(0, len(kept), size):
            rest = kept[:begin] + kept[begin + size :]
            if fails(rest):
                kept, pieces = rest, max(1, pieces - 1)
                break
        else:
            if size == 1:
                return kept
            pieces = min(len(kept), pieces * 2)
    return kept


def simpler(axis: Axis, value: str) -> Iterator[str]:
    """Values of an axis that are simpler than this one, the simplest first. One between two of a list has none: those
    of the list were tried before it was found."""
    if axis.values:
        yield from axis.values[: axis.values.index(value)] if value in axis.values else ()
    elif value != axis.simple:
        yield axis.simple


def bisected(simple: str, value: str, fails: Callable[[str], bool]) -> str:
    """The value nearest to the simple one that fails, as far as halving finds it; `value` fails, `simple` does not. One
    of values that are no numbers of one kind stays as it is."""
    low, high = simple, value
    if quantity(simple) is None or quantity(value) is None or simple == value:
        return value
    for _ in range(HALVINGS):
        try:
            middle = between(low, high, 0.5, log=False)
        except BadInput:
            return high
        if middle in (low, high):
            break
        low, high = (low, middle) if fails(middle) else (middle, high)
    return high


def name_of(verdict: str, first: str | None) -> str:
    """The name of a fault: its verdict and its words, without numbers and what was seen."""
    words = re.split(r": (?:expected|seen) ", first or "")[0]
    return f"{verdict}: {re.sub(r'0x[0-9a-f]+|[0-9]+', 'N', words)}"
