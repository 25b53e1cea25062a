# SPDX-License-Identifier: Apache-2.0
"""What makes the runs of a schedule: warm processes of this host, or the workers of a cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol

from sundial.plan.request import Progress
from sundial.reproduce.worker import Ended, Making, Said, Task
from sundial.reproduce.workers import Lost as WorkerLost
from sundial.reproduce.workers import Workers
from sundial.sweep.known import Knowing
from sundial.sweep.making import Put, SweepMaking, SweepTask
from sundial.sweep.place import Place
from sundial.sweep.schedule import Done, Engine, Lost, RunT
from sundial.sweep.schedule import Progress as Counts
from sundial.sweep.store import Store


@dataclass(frozen=True)
class Placing:
    """Where runs are made, and what that takes."""

    making: Making
    place: Place
    slots: int
    """Runs at a time on this host."""
    store: Store
    identities: Knowing
    progress: Progress


class Pool(Protocol):
    """What is asked of `Workers`."""

    def __enter__(self) -> Any: ...

    def __exit__(self, kind: Any, error: Any, trace: Any) -> Any: ...

    def begin(self, number: int, task: Task) -> None: ...

    def heard(self) -> tuple[int, Ended | Said | WorkerLost]: ...


@contextlib.contextmanager
def engine_of(
    placing: Placing, task: Callable[[RunT], SweepTask], pool: Callable[[Making, int], Pool] | None = None
) -> Iterator[Engine[RunT]]:
    """The cluster of the place, else the processes of a pool (default: Workers). Raises HostLacks, Interrupted."""
    making, store, identities = placing.making, placing.store, placing.identities
    if not placing.place.is_here:
        from sundial.sweep.cluster.engine import Needs, connected  # of what is optional

        own = identities.offer(store, 0, "")
        with connected(placing.place, Needs(task, identities.files, store, own, placing.progress.say)) as cluster:
            yield cluster
        return
    put = SweepMaking(making.run, making.verify, making.report, store.folder)
    with (pool or Workers)(put, placing.slots) as workers:
        yield Local(workers, placing.slots, task, store.tidy)


def shown(progress: Progress) -> Callable[[Counts], None]:
    """What shows how far a schedule is."""

    def show(counts: Counts) -> None:
        done = counts.made + counts.had + counts.given_up
        lost = f", {counts.lost} lost" if counts.lost else ""
        text = f"made {counts.made}, had {counts.had}{lost}, of {counts.wanted}"
        progress.share(done / max(1, counts.wanted), text)

    return show


class Local(Generic[RunT]):
    """Warm processes of this host."""

    def __init__(
        self, workers: Pool, slots: int, task: Callable[[RunT], SweepTask], tidy: Callable[[], object]
    ) -> None:
        self.slots = slots
        self._workers = workers
        self._task = task
        self._tidy = tidy
        self._begun: list[tuple[RunT, int]] = []

    def begin(self, run: RunT, attempt: int) -> None:
        self._begun.append((run, attempt))
        self._workers.begin(len(self._begun) - 1, self._task(run))

    def ended(self) -> tuple[RunT, int, Done | Lost]:
        while True:
            number, answer = self._workers.heard()
            if isinstance(answer, Said):
                continue
            if isinstance(answer, WorkerLost):
                self._tidy()
                return *self._begun[number], Lost(f"its worker ended with status {answer.status}")
            assert isinstance(answer, Put)
            return *self._begun[number], Lost(answer.error) if answer.error else Done()
