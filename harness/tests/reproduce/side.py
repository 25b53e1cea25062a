# SPDX-License-Identifier: Apache-2.0
"""Runs that only wait or write down what became of them, for workers; importable in their processes."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sundial.errors import HostLacks, RunFailed
from sundial.machines.waiting import wait_until
from sundial.plan.request import Progress, Silence
from sundial.reproduce.worker import Ended, Making, Said, Task
from sundial.reproduce.workers import Lost, Workers
from sundial.run.interrupts import Interrupts

LONG_S = 300.0
"""Longer than any wait of a test: a process that begins such a wait is to be ended."""


@dataclass(frozen=True)
class Words:
    """The words of a run: what it is to do."""

    out: Path
    words: tuple[str, ...]


def run(request: Any, progress: Progress) -> Any:
    interrupts = Interrupts()
    with interrupts.taken():
        progress.say("running")
        for word in request.words:
            what, _, argument = word.partition(" ")
            if what == "until":
                wait_for(Path(argument))
            elif what == "fail":
                raise RunFailed("its kernel panicked", machine="server")
            elif what == "lack":
                raise HostLacks("the host has no memory left", hint="close other programs")
            elif what == "die":
                os._exit(9)
            elif what == "stay":
                _stay(request.out, interrupts)
        request.out.mkdir()


def _stay(out: Path, interrupts: Interrupts) -> None:
    try:
        out.with_suffix(".began").touch()
        time.sleep(LONG_S)
    finally:
        interrupts.cleaning_begins()
        out.with_suffix(".ended").touch()


def wait_for(*paths: Path) -> None:
    wait_until(lambda: all(path.exists() for path in paths), seconds=LONG_S, what=f"{paths}")


def verify(out: Path) -> dict[str, Any]:
    return {"verdict": "pass", "calls": len(out.name), "mismatches": 0}


def report(out: Path) -> None:
    out.with_suffix(".reported").touch()


MAKING = Making(run, verify, report)


def tasks(folder: Path, *words: tuple[str, ...]) -> list[tuple[Task, Progress]]:
    """One run each, `r0` first."""
    made = []
    for number, each in enumerate(words):
        out = folder / f"r{number}"
        request: Any = Words(out, each)
        made.append((Task("", request, out), Silence()))
    return made


def ends(workers: Workers, asked: Sequence[tuple[Task, Progress]], count: int) -> Iterator[tuple[int, Ended | Lost]]:
    """What became of each with its number, so many at a time."""
    waiting, under_way = deque(enumerate(asked)), 0
    while waiting or under_way:
        while waiting and under_way < count:
            number, (task, _) = waiting.popleft()
            workers.begin(number, task)
            under_way += 1
        number, answer = workers.heard()
        if not isinstance(answer, Said):
            under_way -= 1
            yield number, answer


def staying(folder: Path) -> Iterator[Any]:
    """Two runs that do not end by themselves."""
    with Workers(MAKING, 2) as workers:
        yield from ends(workers, tasks(folder, ("stay",), ("stay",)), 2)
