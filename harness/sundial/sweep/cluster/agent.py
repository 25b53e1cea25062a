# SPDX-License-Identifier: Apache-2.0
"""Makes runs on a worker's host for a cluster: what the client calls there, in the worker's process.

Each run is made by a warm process of `reproduce`, which ends its machines when this process dies.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sundial.errors import SundialError
from sundial.reproduce.worker import Making, Said
from sundial.reproduce.workers import Lost, Workers
from sundial.sweep.cluster.blobs import Blobs, Wanted
from sundial.sweep.cluster.offer import Offer
from sundial.sweep.cluster.parcel import Parcel, packed
from sundial.sweep.making import Put, SweepMaking, SweepTask
from sundial.sweep.store import Store


@dataclass(frozen=True)
class Order:
    """A run that a client wants."""

    task: SweepTask
    images: Wanted
    """Empty: those that this host has built."""
    store: str
    """Identity of the client's store."""
    sweep: str
    """Identity of the command that asks."""
    fresh: bool
    """The run is made although this host has its result."""


@dataclass(frozen=True)
class Answer:
    """What became of a run."""

    lost: str = ""
    """Why it did not reach its end for reasons of the host."""
    error: SundialError | None = None
    """What ends the sweep, or the worker's part in it."""
    parcel: Parcel | None = None
    """None: the client's store has it."""


class Agent:
    """Runs on one host, so many at a time."""

    def __init__(self, making: Making, store: Path, images: Path, offer: Callable[[Store], Offer]) -> None:
        """Raises OSError."""
        self._store = Store(store)
        self._store.tidy()
        self.blobs = Blobs(images)
        self.offer = offer(self._store)
        put = SweepMaking(making.run, making.verify, making.report, self._store.folder)
        self._idle = [Workers(put, 1) for _ in range(self.offer.slots)]
        self._busy: dict[int, tuple[str, Workers]] = {}
        self._lock = threading.Lock()
        self._free = threading.Semaphore(self.offer.slots)  # a run of a scheduler that is gone may still end

    def make(self, order: Order) -> Answer:
        """Make a run, or answer what this host has of it. Called in a thread of its own for each run."""
        key = order.task.key
        try:
            if order.fresh or not self._has(order.task):
                answer = self._made(order)
                if answer is not None:
                    return answer
            parcel = None if order.store == self._store.id else packed(self._store.place(key))
        except SundialError as error:
            return Answer(error=error)
        except OSError as error:
            return Answer(lost=f"{self.offer.name}: {error}")
        return Answer(parcel=parcel)

    def _made(self, order: Order) -> Answer | None:
        """None: the run is in the store."""
        request = order.task.request
        if order.images:
            request = replace(request, images=self.blobs.images(order.images))
        task = replace(order.task, request=request, worker=self.offer.name)
        with self._worker(order.sweep) as worker:
            worker.begin(0, task)
            while isinstance(heard := worker.heard()[1], Said):
                pass
        if isinstance(heard, Lost):
            self._store.tidy()
            return Answer(lost=f"{self.offer.name}: its process ended with status {heard.status}")
        assert isinstance(heard, Put)
        return Answer(lost=f"{self.offer.name}: {heard.error}") if heard.error else None

    def _has(self, task: SweepTask) -> bool:
        kept = self._store.find(task.key)
        if kept is None or kept.result.verifier != task.verifier:
            return False
        wants = task.keep == "all" or (task.keep == "failed" and kept.result.verdict != "pass")
        return kept.has_captures or not wants

    def stop(self, sweep: str | None) -> None:
        """End the runs of one command, or all, as Ctrl-C does."""
        with self._lock:
            for asked, worker in self._busy.values():
                if sweep in (None, asked):
                    worker.interrupt()

    def close(self) -> None:
        """End all processes."""
        self.stop(None)
        with self._lock:
            workers = [*self._idle, *(worker for _, worker in self._busy.values())]
        for worker in workers:
            worker.__exit__(None, None, None)

    @contextlib.contextmanager
    def _worker(self, sweep: str) -> Iterator[Workers]:
        with self._free:
            with self._lock:
                worker = self._idle.pop()
                self._busy[id(worker)] = sweep, worker
            try:
                yield worker
            finally:
                with self._lock:
                    del self._busy[id(worker)]
                    self._idle.append(worker)


_agents: list[Agent] = []
"""The agent of this process, if it is a worker's."""


def serve(agent: Agent) -> None:
    """The functions below are about this agent from now on."""
    _agents[:] = [agent]


def offered() -> Offer | None:
    """What this worker is; None: not one of Sundial's."""
    return _agents[0].offer if _agents else None


def lacking(digests: Iterable[str]) -> list[str]:
    """Files of images that this worker does not have."""
    return _agents[0].blobs.lacking(digests)


def receive(files: Mapping[str, bytes]) -> None:
    """Keep files of images. Raises ValueError for one that is not what its digest says."""
    for sha256, content in files.items():
        _agents[0].blobs.put(sha256, content)


def make(order: Order) -> Answer:
    """Make a run on this worker."""
    return _agents[0].make(order)


def stop(sweep: str) -> None:
    """End the runs of a command on this worker."""
    _agents[0].stop(sweep)
