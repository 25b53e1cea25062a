# SPDX-License-Identifier: Apache-2.0
"""What every benchmark is given, and how two things are compared: in turns, so that the host's moods hit both."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from benchmarks.figure import Unmeasured
from benchmarks.quiet import Meter
from sundial.errors import SundialError
from sundial.model.catalog import ROOT

T = TypeVar("T")

REPEATS, QUICK_REPEATS = 5, 2
STORE = ROOT / ".sundial" / "bench"
"""What is worth keeping between benchmarks: the compiled generator, the run that verification is measured on."""


def say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


class Cannot(Exception):
    """This cannot be measured here; the message says why."""


@dataclass
class Turns(Generic[T]):
    """What came of measuring variants in turns: values in order of repeats, or the reason why there are none."""

    found: dict[str, list[T]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    free: list[float | None] = field(default_factory=list)
    """Of each turn: wall seconds for a virtual second of two guests that run free; None where they cannot."""

    def unmeasured(self, subject: str) -> Iterator[Unmeasured]:
        return (Unmeasured(subject, name, why) for name, why in self.failed.items())


@dataclass(frozen=True)
class Context:
    """How much to do, and where."""

    quick: bool
    folder: Path
    """For files of this benchmark; short name, empty, removed afterwards."""
    meter: Meter | None = None
    """Of how quiet the host is; None where nothing depends on it."""

    @property
    def repeats(self) -> int:
        return QUICK_REPEATS if self.quick else REPEATS

    def say(self, text: str) -> None:
        say(text)

    def pick(self, quick: int, full: int) -> int:
        return quick if self.quick else full

    def in_turns(self, variants: Mapping[str, Callable[[], T]], repeats: int | None = None) -> Turns[T]:
        """Every variant once, then every variant again, and so on: A B A B. One that fails is left out from then on.

        Guests that run free take their turn first.
        """
        turns: Turns[T] = Turns()
        count = self.repeats if repeats is None else repeats
        for turn in range(count):
            if self.meter is not None:
                turns.free.append(self.meter.look())
            for name, measure in variants.items():
                if name in turns.failed:
                    continue
                self.say(f"{name} ({turn + 1} of {count})")
                try:
                    turns.found.setdefault(name, []).append(measure())
                except (Cannot, SundialError) as error:
                    self.say(f"{name}: {error}")
                    turns.failed[name] = str(error)
                    turns.found.pop(name, None)
        return turns
