# SPDX-License-Identifier: Apache-2.0
"""Runs that another room has planned, placed by an engine; their results come by key, from the store.

Where they are made and in which order changes nothing: what the room gets is what it would have made by itself. Runs
under the real clock do not repeat, so they have no keys, and would disturb each other: they are made one by one.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from sundial.errors import HostLacks
from sundial.plan.request import Progress
from sundial.reproduce.worker import Ended, Making, OneByOne, Task
from sundial.sweep.engines import Placing, Pool, engine_of, shown
from sundial.sweep.known import Lacking
from sundial.sweep.making import SweepTask, drop_captures
from sundial.sweep.schedule import Engine, Schedule
from sundial.sweep.store import Kept

RETRIES = 3
"""Of a run that did not reach its end for reasons of the host."""


class Tasks:
    """Makes tasks by an engine."""

    def __init__(self, placing: Placing) -> None:
        self._placing = placing
        self._verifier = placing.identities.verifier()
        self._by_key: dict[str, SweepTask] = {}
        self._had: set[str] = set()
        """Keys of runs that were in the store before."""
        self._engine: Engine[str] | None = None

    @contextlib.contextmanager
    def placed(self, pool: Callable[[Making, int], Pool] | None = None) -> Iterator[Tasks]:
        """With its engine. At the end the store drops captures of runs that it has made and that passed: they are where
        they were wanted.

        Raises HostLacks, Interrupted.
        """
        store = self._placing.store
        store.tidy()
        unreported = replace(self._placing, making=replace(self._placing.making, report=_leave))
        with engine_of(unreported, self._by_key.__getitem__, pool) as self._engine:
            yield self
        for key in set(self._by_key) - self._had:
            kept = store.find(key)
            if kept is not None and kept.result.verdict == "pass":
                drop_captures(kept.run)

    def make(self, tasks: Sequence[tuple[Task, Progress]]) -> Iterator[Ended]:
        """What became of each, in their order. Those of most calls are begun first, lest one is alone at the end.

        Raises BadInput, HostLacks, Interrupted.
        """
        if any(task.request.experiment.clock != "virtual" for task, _ in tasks):
            yield from OneByOne(self._placing.making).make(tasks)
            return
        assert self._engine is not None
        waiting = deque((self._key(task), task) for task, _ in tasks)
        by_calls = sorted(waiting, key=lambda each: -each[1].calls)
        wanted = list(dict.fromkeys(key for key, _ in by_calls))
        self._had |= {key for key in wanted if self._find(key) is not None}
        schedule = Schedule(self._engine, self._find, RETRIES, shown(self._placing.progress))
        for _ in chain(schedule.steps(lambda: wanted), [None]):
            while waiting and (ended := self._ended(schedule, *waiting[0])) is not None:
                waiting.popleft()
                yield ended

    def _key(self, task: Task) -> str:
        found = self._placing.identities.of(task.request.experiment)
        if isinstance(found, Lacking):
            raise HostLacks(f"{found.what}, so that runs have no keys", hint="./sundial doctor says what to do")
        named = SweepTask(
            task.about, task.request, task.out, task.calls, found.key, found.over, self._verifier, keep="all"
        )
        self._by_key[found.key] = named
        return found.key

    def _find(self, key: str) -> Kept | None:
        kept = self._placing.store.find(key)
        return kept if kept is not None and kept.result.verifier == self._verifier and kept.has_captures else None

    def _ended(self, schedule: Schedule[str, Kept], key: str, task: Task) -> Ended | None:
        """None: it is not over."""
        if key in schedule.given_up:
            return Ended("failed", error=schedule.given_up[key])
        kept = schedule.seen.get(key)
        if kept is None:
            return None
        shutil.copytree(kept.run, task.out, copy_function=_linked, symlinks=True)
        self._placing.making.report(task.out)
        result = kept.result
        if kept.differing:
            what = f"made again with other bytes, which are in {kept.run.parent}: {', '.join(kept.differing)}"
            return Ended("failed", error=what)
        error = result.first or "" if result.verdict == "failed" else ""
        return Ended(result.verdict, result.calls, result.mismatches, error)


def _linked(source: Any, target: Any) -> None:
    """A second name of a file, which its writers replace as a whole; a copy on another file system."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _leave(run: Path) -> None:
    """No report: it is written where the run is wanted."""
