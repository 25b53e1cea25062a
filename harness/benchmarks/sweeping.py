# SPDX-License-Identifier: Apache-2.0
"""Sweeps of very many runs: the client's schedule with simulated workers, and Dask with calls that do nothing.

Simulated are the runs, the workers and time; the schedule, the points and the store's answers are those of a sweep.
`python -m benchmarks.sweeping N` is one simulation in a process of its own, whose memory is what it prints.
"""

from __future__ import annotations

import heapq
import json
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.context import Cannot, Context
from benchmarks.figure import Figure, Outcome, at_most
from sundial.errors import HostLacks
from sundial.sweep.design import Point
from sundial.sweep.plans import Fixed
from sundial.sweep.schedule import Done, Lost, Schedule, drawn

HARNESS = Path(__file__).resolve().parents[1]
SUBJECT = "sweep of {runs:,} runs on {hosts} hosts of {slots} slots, simulated"
HOSTS, SLOTS = 100, 32
RUN_S = (2.54, 2.84)
"""Processor seconds of a small run that a warm worker makes and verifies: 84 calls, on two cores of 2020."""
PLACING_S = 0.003
"""Of the client, which places one run after another: a call by Dask."""
DEATHS = 0.05
"""Of a worker's host in an hour."""
CHECK = 0.02
QUICK, FULL = 10_000, 100_000
CALLS, THREADS, START_S = 2_000, 4, 120.0
_SCHEDULER = "from sundial.sweep.cluster.serve import schedule; schedule({!r}, None, print)"
_WORKER = """
import asyncio
from sundial.sweep.cluster.dask import distributed

async def work():
    async with distributed().Worker({!r}, nthreads=4, memory_limit=0, dashboard=False) as worker:
        await worker.finished()

asyncio.run(work())
"""
TASK_MS, TASK_KB, PLACED_MS = at_most(1.0), at_most(4.0), at_most(5.0)


@dataclass(frozen=True)
class Simulated:
    """What came of one simulation."""

    processor_s: float
    """Of the schedule."""
    memory_bytes: int
    """At its most, beyond what the process had with its modules."""
    wall_s: float
    """Virtual."""
    in_use: float
    """Share of the slots' time that runs took."""
    lost: int


class Workers:
    """An engine with time of its own. A run is lost where its host dies meanwhile."""

    def __init__(self, slots: int, seed: int) -> None:
        self.slots = slots
        self.store: set[Point] = set()
        self.now_s = 0.0
        self.busy_s = 0.0
        self._client_s = 0.0
        """When the client can place the next run."""
        self._random = Random(seed)
        self._ends: list[tuple[float, int, Point, int]] = []
        self._begun = 0

    def begin(self, run: Point, attempt: int) -> None:
        self._client_s = max(self._client_s, self.now_s) + PLACING_S
        taken_s = self._random.uniform(*RUN_S)
        self.busy_s += taken_s
        self._begun += 1
        heapq.heappush(self._ends, (self._client_s + taken_s, self._begun, run, attempt))

    def ended(self) -> tuple[Point, int, Done | Lost]:
        self.now_s, _, run, attempt = heapq.heappop(self._ends)
        if self._random.random() < DEATHS * RUN_S[0] / 3600:
            return run, attempt, Lost("its worker is gone")
        self.store.add(run)
        return run, attempt, Done()


def simulate(runs: int, hosts: int = HOSTS, slots: int = SLOTS) -> Simulated:
    """A sweep of so many runs, with those that are made again."""
    before, began_s = _memory(), time.process_time()
    engine = Workers(hosts * slots, 1)
    points = Fixed([Point((str(number // 50),), number % 50) for number in range(runs)])

    def schedule() -> Schedule[Point, Point]:
        return Schedule(engine, lambda run: run if run in engine.store else None, 3, lambda counts: None)

    first, second = schedule(), schedule()
    first.perform(lambda: points.wanted({}))
    keys = {f"{Random(str(point)).getrandbits(256):064x}": point for point in first.seen}
    again = [keys[key] for key in drawn(list(keys), CHECK)]
    second.perform(lambda: again, had=False)
    assert len(first.seen) == runs, "a run was lost"
    wall_s = engine.now_s
    lost = first.progress.lost + second.progress.lost
    spent_s = time.process_time() - began_s
    return Simulated(spent_s, _memory() - before, wall_s, engine.busy_s / wall_s / engine.slots, lost)


def measure(context: Context) -> Iterator[Outcome]:
    """The simulation, then Dask."""
    runs = QUICK if context.quick else FULL
    subject = SUBJECT.format(runs=runs, hosts=HOSTS, slots=SLOTS)
    command = [sys.executable, "-m", "benchmarks.sweeping", str(runs)]
    found = [json.loads(subprocess.check_output(command, cwd=HARNESS)) for _ in range(context.repeats)]
    each = [Simulated(**one) for one in found]
    yield Figure(subject, "schedule, a run", "ms", tuple(1e3 * one.processor_s / runs for one in each), TASK_MS)
    yield Figure(subject, "memory, a run", "kB", tuple(one.memory_bytes / 1e3 / runs for one in each), TASK_KB)
    yield Figure(subject, "virtual time", "s", (each[0].wall_s,), anywhere=True)
    yield Figure(subject, "slots in use", "%", (100 * each[0].in_use,), anywhere=True)
    yield from measure_dask(context)


def measure_dask(context: Context) -> Iterator[Outcome]:
    """Calls that do nothing, by one worker, so many under way as it has threads."""
    from sundial.sweep.cluster.dask import distributed

    try:
        dask: Any = distributed()
    except HostLacks as lacks:
        raise Cannot(f"{lacks.message}: {lacks.hint}") from lacks
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
    scheduler = _started(_SCHEDULER.format(address))
    worker = _started(_WORKER.format(address))
    calls = CALLS // 10 if context.quick else CALLS
    subject = "a call by Dask that does nothing, placed on one worker"
    try:
        with dask.Client(address, set_as_default=False, timeout=START_S) as client:
            client.wait_for_workers(1, timeout=START_S)
            (place,) = client.sync(client.scheduler.identity, n_workers=-1)["workers"]
            client_s, scheduler_s = time.process_time(), _processor_s(scheduler.pid)
            for number in range(0, calls, THREADS):
                some = range(number, number + THREADS)
                client.gather([client.submit(abs, n, key=f"call-{n}", workers=[place], pure=False) for n in some])
            client_s, scheduler_s = time.process_time() - client_s, _processor_s(scheduler.pid) - scheduler_s
            pages = int(Path(f"/proc/{scheduler.pid}/statm").read_text().split()[1])
    finally:
        for process in (worker, scheduler):
            process.terminate()
            process.wait()
    yield Figure(subject, "client", "ms", (1e3 * client_s / calls,), PLACED_MS)
    yield Figure(subject, "scheduler", "ms", (1e3 * scheduler_s / calls,), PLACED_MS)
    yield Figure(subject, f"scheduler's memory after {calls:,} calls", "MB", (pages * resource.getpagesize() / 1e6,))


def _started(program: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", program], cwd=HARNESS, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def _processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory() -> int:
    """Bytes of this process at their most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    print(json.dumps(asdict(simulate(int(sys.argv[1])))))
