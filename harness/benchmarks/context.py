# SPDX-License-Identifier: Apache-2.0
"""What every benchmark is given, and how two things are compared: in turns, so that the host's moods hit both."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from sundial.model.catalog import ROOT

T = TypeVar("T")

REPEATS, QUICK_REPEATS = 5, 2
STORE = ROOT / ".sundial" / "bench"
"""What is worth keeping between benchmarks: the compiled generator, the run that verification is measured on."""


class Cannot(Exception):
    """This cannot be measured here; the message says why."""


@dataclass(frozen=True)
class Context:
    """How much to do, and where."""

    quick: bool
    folder: Path
    """For files of this benchmark; short name, empty, removed afterwards."""

    @property
    def repeats(self) -> int:
        return QUICK_REPEATS if self.quick else REPEATS

    def say(self, text: str) -> None:
        print(f"bench: {text}", file=sys.stderr, flush=True)

    def pick(self, quick: int, full: int) -> int:
        return quick if self.quick else full

    def in_turns(self, variants: Mapping[str, Callable[[], T]], repeats: int | None = None) -> dict[str, list[T]]:
        """Every variant once, then every variant again, and so on: A B A B. Answers by variant, in order of repeats."""
        found: dict[str, list[T]] = {name: [] for name in variants}
        count = self.repeats if repeats is None else repeats
        for turn in range(count):
            for name, measure in variants.items():
                self.say(f"{name} ({turn + 1} of {count})")
                found[name].append(measure())
        return found
