# SPDX-License-Identifier: Apache-2.0
"""Runs of a sweep on the workers of a Dask scheduler.

This client places each run on one worker, whose results it takes into its own store. Dask carries calls and says which
workers are there; its queues, retries and caches have no part in what counts.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from sundial.errors import HostLacks, Interrupted, SundialError
from sundial.model.catalog import COMMAND
from sundial.model.experiment import Experiment
from sundial.run.interrupts import Interrupts
from sundial.sweep.cluster import agent
from sundial.sweep.cluster.agent import Answer, Order
from sundial.sweep.cluster.dask import CONNECT_S, distributed, security
from sundial.sweep.cluster.offer import Offer, chosen, others, refusal
from sundial.sweep.cluster.parcel import put_all
from sundial.sweep.cluster.starting import scheduler_at
from sundial.sweep.making import SweepTask
from sundial.sweep.place import Place
from sundial.sweep.schedule import Done, Lost, RunT
from sundial.sweep.store import Store

WAIT_S = 60.0
"""For the first worker, or for one to come back."""
QUEUED_S = 7 * 86400.0
"""The same where a worker is a job in a queue."""
LOOK_S = 1.0
"""Between looks at which workers are there."""

T = TypeVar("T")


@dataclass(frozen=True)
class Needs(Generic[RunT]):
    """What the runs have for their workers."""

    task: Callable[[RunT], SweepTask]
    files: Callable[[Experiment], Mapping[str, Mapping[str, tuple[str, Path]]]]
    """sha256 and path of each file of each image that a run boots."""
    store: Store
    own: Offer
    """This host, as if it were a worker."""
    say: Callable[[str], None]


@dataclass(frozen=True)
class _UnderWay(Generic[RunT]):
    run: RunT
    attempt: int
    address: str
    future: Any


class Cluster(Generic[RunT]):
    """Runs on workers of other processes or hosts."""

    def __init__(self, client: Any, address: str, needs: Needs[RunT], wait_s: float = WAIT_S) -> None:
        self._client = client
        self._address = address
        self._needs = needs
        self._wait_s = wait_s
        self._sweep = secrets.token_hex(8)
        self._offers: dict[str, Offer] = {}
        """Workers that may make runs, by address."""
        self._refused: dict[str, str] = {}
        """Workers that get no run, with the reason."""
        self._has: set[tuple[str, str]] = set()
        """Files of images that a worker has: its address, their digest."""
        self._waiting: deque[tuple[RunT, int]] = deque()
        self._under_way: dict[str, _UnderWay[RunT]] = {}
        self._ended: deque[tuple[RunT, int, Done | Lost]] = deque()
        self._heard: SimpleQueue[str] = SimpleQueue()
        self._looked = -LOOK_S
        self._warned = False

    @property
    def slots(self) -> int:
        """Runs at a time on all workers; waits for the first. Raises HostLacks where none comes."""
        until = time.monotonic() + self._wait_s
        while True:
            self._look()
            if self._offers:
                return sum(offer.slots for offer in self._offers.values())
            if time.monotonic() > until:
                what = "; ".join([f"no worker for these runs is at {self._address}", *self._refused.values()])
                raise HostLacks(what, hint=f"start one: {COMMAND} sweep worker {self._address}")
            time.sleep(LOOK_S / 4)

    def begin(self, run: RunT, attempt: int) -> None:
        """Begin a run as soon as a worker is free that may make it."""
        self._waiting.append((run, attempt))
        self._place()

    def ended(self) -> tuple[RunT, int, Done | Lost]:
        """What becomes of a run next."""
        while not self._ended:
            if not self._under_way and self.slots:
                self._place()
            with contextlib.suppress(Empty):
                self._take([self._heard.get(timeout=LOOK_S / 4)])
            self._look()
            self._place()
        return self._ended.popleft()

    def close(self) -> None:
        """End what is under way, as Ctrl-C does."""
        busy = {each.address for each in self._under_way.values()} & set(self._offers)
        if busy:
            with contextlib.suppress(Exception):  # what is gone has ended its runs
                self._client.run(agent.stop, self._sweep, workers=list(busy), on_error="ignore")

    # ---- Workers ----

    def _look(self) -> None:
        """See which workers have come and gone. Raises HostLacks where the scheduler is gone."""
        if time.monotonic() - self._looked < LOOK_S:
            return
        # Not `scheduler_info`: a periodic call that asks for no workers may answer it, and it is silent about failures.
        identity = self._asked(lambda: self._client.sync(self._client.scheduler.identity, n_workers=-1))
        there = set(identity["workers"])
        for address in there - set(self._offers) - set(self._refused):
            self._meet(address)
        for address in set(self._offers) - there:
            self._leave(address, "its worker is gone")
        self._refused = {address: why for address, why in self._refused.items() if address in there}
        self._looked = time.monotonic()

    def _meet(self, address: str) -> None:
        found = self._call(agent.offered, address)
        if isinstance(found, OSError):
            return  # gone before it was asked
        if isinstance(found, Offer):
            name, why = found.name, refusal(self._needs.own, found)
        else:
            name, why = address, f"it was not started by {COMMAND} sweep worker"
        if why is None:
            self._offers[address] = found
        else:
            self._refuse(address, f"worker {name} is not used: {why}")

    def _put_aside(self, address: str, why: str) -> None:
        """Give a worker no more runs."""
        self._refuse(address, f"worker {self._offers[address].name} is not used any more: {why}")
        self._leave(address, why)

    def _refuse(self, address: str, words: str) -> None:
        self._refused[address] = words
        self._needs.say(words)

    def _leave(self, address: str, why: str) -> None:
        """Without this worker from now on: its runs are lost."""
        offer = self._offers.pop(address)
        self._has = {each for each in self._has if each[0] != address}
        for key, each in list(self._under_way.items()):
            if each.address == address:
                del self._under_way[key]
                each.future.release()
                self._ended.append((each.run, each.attempt, Lost(f"{offer.name}: {why}")))

    # ---- Runs ----

    def _place(self) -> None:
        busy = Counter(each.address for each in self._under_way.values())
        for _ in range(len(self._waiting)):
            run, attempt = self._waiting.popleft()
            task = self._needs.task(run)
            kept = self._needs.store.find(task.key)
            offers: Mapping[str, Offer] = self._offers
            if kept is not None:
                offers = others(self._offers, kept.result.host)
                self._warn(offers, kept.result.host)
            address = chosen(offers, busy)
            if address is None or not self._begun(address, run, attempt, task, fresh=kept is not None):
                self._waiting.append((run, attempt))
            else:
                busy[address] += 1

    def _begun(self, address: str, run: RunT, attempt: int, task: SweepTask, *, fresh: bool) -> bool:
        files = self._needs.files(task.request.experiment)
        if not self._sent(address, files):
            return False
        wanted = {image: {name: each[0] for name, each in named.items()} for image, named in files.items()}
        order = Order(task, wanted, self._needs.store.id, self._sweep, fresh)
        key = f"{task.key}-{secrets.token_hex(4)}"
        future = self._asked(
            lambda: self._client.submit(
                agent.make, order, key=key, workers=[address], allow_other_workers=False, pure=False, retries=0
            )
        )
        self._under_way[key] = _UnderWay(run, attempt, address, future)
        future.add_done_callback(lambda done: self._heard.put(done.key))
        return True

    def _sent(self, address: str, files: Mapping[str, Mapping[str, tuple[str, Path]]]) -> bool:
        """Give a worker the files that it lacks; False if it is gone."""
        paths = dict(each for named in files.values() for each in named.values())
        unknown = [sha256 for sha256 in paths if (address, sha256) not in self._has]
        if unknown:
            answer = lacking = self._call(agent.lacking, address, unknown)
            for sha256 in [] if isinstance(answer, Exception) else lacking:
                self._needs.say(f"giving {paths[sha256].name} to {self._offers[address].name}")
                answer = self._call(agent.receive, address, {sha256: paths[sha256].read_bytes()})
                if isinstance(answer, Exception):
                    break
            if isinstance(answer, Exception):
                self._put_aside(address, f"it did not take an image: {answer}")
                return False
            self._has |= {(address, sha256) for sha256 in unknown}
        return True

    def _warn(self, offers: Mapping[str, Offer], host: Mapping[str, Any]) -> None:
        alone = offers and all(each.name == host.get("worker") for each in offers.values())
        if alone and not self._warned:
            self._warned = True
            self._needs.say("there is one worker: it makes again what it has made")

    def _take(self, keys: list[str]) -> None:
        """Take the results of runs that are over."""
        with contextlib.suppress(Empty):
            while True:
                keys.append(self._heard.get_nowait())
        over = {key: self._under_way[key] for key in keys if key in self._under_way}
        done = [each.future for each in over.values() if each.future.status == "finished"]
        answers = dict(zip([each.key for each in done], self._asked(lambda: self._client.gather(done)), strict=True))
        for key, each in over.items():
            if key not in self._under_way:
                continue  # its worker was put aside for the one before
            if key in answers:
                self._settle(key, each, answers[key])
            else:
                del self._under_way[key]
                why = f"its call ended: {each.future.status}"
                if each.future.status == "error":
                    why = f"its call failed: {each.future.exception()}"
                self._ended.append((each.run, each.attempt, Lost(why)))
            each.future.release()

    def _settle(self, key: str, each: _UnderWay[RunT], answer: Answer) -> None:
        error = answer.error
        if isinstance(error, HostLacks) and each.address in self._offers:
            self._put_aside(each.address, error.message)
            return
        del self._under_way[key]
        if error is not None and not isinstance(error, Interrupted | HostLacks):
            raise error
        lost = answer.lost or (error.message if error is not None else "")
        if not lost and answer.parcel is not None:
            put_all(answer.parcel, self._needs.task(each.run).key, self._needs.store)
        self._ended.append((each.run, each.attempt, Lost(lost) if lost else Done()))

    # ---- Calls ----

    def _call(self, function: Callable[..., Any], address: str, *arguments: Any) -> Any:
        """What a worker answers, or its exception; an OSError if it is gone. Raises HostLacks without a scheduler."""
        found = self._asked(
            lambda: self._client.run(function, *arguments, workers=[address], on_error="return", nanny=False)
        )
        return found.get(address, OSError("it is gone"))

    def _asked(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except SundialError:
            raise
        except Exception as error:  # each layer of Dask has its own for a connection that is gone
            hint = "start it and its workers, and give the same command again: what was made is kept"
            raise HostLacks(f"the scheduler at {self._address} is gone: {error}", hint=hint) from error


@contextlib.contextmanager
def connected(place: Place, needs: Needs[RunT]) -> Iterator[Cluster[RunT]]:
    """The cluster of a scheduler, which is started where the place says so. Raises HostLacks, Interrupted."""
    interrupts = Interrupts()
    with interrupts.taken(), scheduler_at(place) as (scheduler, address):
        try:
            client = distributed().Client(
                scheduler, security=security(place.certs), timeout=CONNECT_S, set_as_default=False
            )
        except OSError as error:
            hint = f"start it: {COMMAND} sweep scheduler {address}"
            raise HostLacks(f"no scheduler answers at {address}: {error}", hint=hint) from error
        queued = place.started is not None and place.started.kind != "ssh"
        cluster = Cluster(client, address, needs, QUEUED_S if queued else WAIT_S)
        try:
            yield cluster
        finally:
            interrupts.cleaning_begins()
            cluster.close()
            client.close(timeout=CONNECT_S)
