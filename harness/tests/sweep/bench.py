# SPDX-License-Identifier: Apache-2.0
"""Sweeps with the runs of `side`, and a pool that makes them in this process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from sundial.model.source import Origin, Source
from sundial.plan.request import Silence
from sundial.reproduce.worker import Ended, Making, Task
from sundial.reproduce.workers import Lost
from sundial.sweep.perform import Request, Sweeping
from sundial.sweep.read import sweep_of
from tests.sweep import side
from tests.sweep.side import Known


class Died(BaseException):
    """A worker's death."""


def _die() -> None:
    raise Died


class InProcess:
    """The last run that began ends first. A run that dies leaves what a killed process leaves."""

    def __init__(self, making: Making, count: int) -> None:
        self._making = making
        self._count = count
        self._begun: list[tuple[int, Task]] = []

    def __enter__(self) -> InProcess:
        self._before, side.die = side.die, _die
        return self

    def __exit__(self, *error: object) -> None:
        side.die = self._before

    def begin(self, number: int, task: Task) -> None:
        assert len(self._begun) < self._count
        self._begun.append((number, task))

    def heard(self) -> tuple[int, Ended | Lost]:
        number, task = self._begun.pop()
        try:
            return number, self._making.make(task, Silence())
        except Died:
            return number, Lost(9)


def sweeping(
    folder: Path, data: dict[str, Any], known: Known | None = None, kind: type[Sweeping] = Sweeping, **changes: Any
) -> Sweeping:
    """A sweep in a folder, with a store beside it."""
    source = Source("mine", "mine.yaml", {"name": "mine", "scenario": "loss", **data}, {(): Origin("mine.yaml", 1)})
    sweep, plain = sweep_of(source)
    request = Request(sweep, plain, folder, None, folder / "store", 2, "embedded", None, ("./sundial", "sweep", "mine"))
    return kind(replace(request, **changes), known or Known(), lambda text: None)
