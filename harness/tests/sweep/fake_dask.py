# SPDX-License-Identifier: Apache-2.0
"""A scheduler and its workers in this process: calls as Dask's client has them, with workers that come and go."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from sundial.sweep.cluster import agent
from sundial.sweep.cluster.agent import Agent, Order
from sundial.sweep.making import SweepMaking
from tests.sweep.bench import InProcess
from tests.sweep.fake_cluster import offering
from tests.sweep.side import MAKING


class Fake(Agent):
    """Makes runs in this process."""

    def __init__(self, folder: Path, name: str, **offered: Any) -> None:
        super().__init__(MAKING, folder / "store", folder / "images", offering(name, **offered))
        self._put = SweepMaking(MAKING.run, MAKING.verify, MAKING.report, self._store.folder)

    @contextlib.contextmanager
    def _worker(self, sweep: str) -> Iterator[Any]:
        with InProcess(self._put, 1) as pool:
            yield pool


class Future:
    """A call that is over at the end of a step, unless its worker is gone."""

    def __init__(self, key: str, order: Order, address: str) -> None:
        self.key, self.order, self.address = key, order, address
        self.status, self.answer = "pending", None
        self.callbacks: list[Callable[[Future], object]] = []

    def add_done_callback(self, callback: Callable[[Future], object]) -> None:
        self.callbacks.append(callback)

    def release(self) -> None:
        self.status = "cancelled"

    def exception(self) -> str:
        return "no exception"


class Client:
    """Each look at the workers is a step: calls end in any order, and what `happens` says comes to pass."""

    def __init__(self, workers: dict[str, Agent], seed: int = 1, happens: Callable[[Client], object] = bool) -> None:
        self.workers = workers
        self.is_up = True
        self.received: list[str] = []
        self.begun: list[tuple[str, str]] = []
        """Key and address of each run."""
        self._happens = happens
        self._random = Random(seed)
        self._calls: list[Future] = []

    @property
    def scheduler(self) -> Client:
        return self

    def sync(self, function: Callable[..., Any], **options: Any) -> Any:
        return function(**options)

    def identity(self, n_workers: int) -> dict[str, Any]:
        assert n_workers == -1, "Dask names a few, or none"
        self._happens(self)
        if not self.is_up:
            raise OSError("connection refused")
        self._random.shuffle(self._calls)
        for call in self._calls[: self._random.randrange(len(self._calls) + 1)]:
            self._calls.remove(call)
            if call.address in self.workers and call.status == "pending":
                agent.serve(self.workers[call.address])
                call.answer, call.status = agent.make(call.order), "finished"  # type: ignore[assignment]
                for callback in call.callbacks:
                    callback(call)
        return {"workers": dict.fromkeys(self.workers)}

    def run(self, function: Any, *arguments: Any, workers: list[str], **options: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for address in filter(self.workers.__contains__, workers):
            agent.serve(self.workers[address])
            self.received += [address] * (function is agent.receive)
            try:
                found[address] = function(*arguments)
            except Exception as error:
                found[address] = error
        return found

    def submit(self, function: Any, order: Order, *, key: str, workers: list[str], **options: Any) -> Future:
        assert function is agent.make
        self.begun.append((order.task.key, workers[0]))
        self._calls.append(Future(key, order, workers[0]))
        return self._calls[-1]

    def gather(self, futures: list[Future]) -> list[Any]:
        return [each.answer for each in futures]
