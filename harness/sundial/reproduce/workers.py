# SPDX-License-Identifier: Apache-2.0
"""Runs side by side, each in a process of its own: libvirt's embedded driver and Python itself do one thing at a time.

Which of them makes a run, and when, changes nothing in it: time is virtual. Results come in the order of the tasks.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from types import TracebackType

from sundial.errors import RunFailed
from sundial.plan.request import Progress
from sundial.reproduce.worker import Ended, Making, Said, Task
from sundial.run.directory import in_the_making
from sundial.run.interrupts import Interrupts

PACKAGES = Path(__file__).resolve().parents[2]
END_S = 60.0
"""For a worker to take its machines down."""
LOOK_S = 0.2
RETRIES = 3
"""Of a run whose worker has died."""
MOST = 8
"""By default: a worker that verifies weighs some hundred MB."""


def jobs_of_this_host() -> int:
    """As many as there are cores for: two machines that call each other compute in turns."""
    return max(1, min(MOST, len(os.sched_getaffinity(0))))


@dataclass(frozen=True)
class Lost:
    """A worker died while it made a run."""

    status: int
    """Of its process; a signal is negative."""


@dataclass(frozen=True)
class _Worker:
    process: subprocess.Popen[bytes]
    channel: Connection


class Workers:
    """So many processes, started when they are needed. Interrupted, they end their runs as a user's Ctrl-C does."""

    def __init__(self, making: Making, count: int) -> None:
        self._making = making
        self._count = count
        self._workers: list[_Worker] = []
        self._under_way: dict[Connection, int] = {}
        self._interrupts = Interrupts()
        self._taken = contextlib.ExitStack()

    def __enter__(self) -> Workers:
        self._taken.enter_context(self._interrupts.taken())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._interrupts.cleaning_begins()
        with self._taken:
            self._end()

    def make(self, tasks: Sequence[tuple[Task, Progress]]) -> Iterator[Ended]:
        """What became of each, in their order. Those of most calls are begun first, lest one is alone at the end.

        A run whose worker has died is begun again, RETRIES times. Raises what a worker raised: BadInput, HostLacks;
        Interrupted; RunFailed where its workers died each time.
        """
        waiting = sorted(enumerate(tasks), key=lambda each: (each[1][0].calls, -each[0]))
        ended: dict[int, Ended] = {}
        died: Counter[int] = Counter()
        for place in range(len(tasks)):
            while place not in ended:
                self._begin_all(waiting)
                number, answer = self.heard()
                if isinstance(answer, Said):
                    tasks[number][1].say(answer.text)
                elif isinstance(answer, Lost):
                    died[number] += 1
                    task, progress = tasks[number]
                    if died[number] > RETRIES:
                        what = f"processes that made {task.out.name} have ended {died[number]} times"
                        raise RunFailed(f"{what}, the last with status {answer.status}")
                    progress.say(f"its process has ended with status {answer.status}; it is begun again")
                    _clear(task.out)
                    waiting.append((number, tasks[number]))
                else:
                    ended[number] = answer
            self._begin_all(waiting)  # before the caller takes its time over this one
            yield ended.pop(place)

    def _begin_all(self, waiting: list[tuple[int, tuple[Task, Progress]]]) -> None:
        while waiting and self.free:
            number, (task, _) = waiting.pop()
            self.begin(number, task)

    @property
    def free(self) -> int:
        """How many more runs can begin."""
        return self._count - len(self._under_way)

    def begin(self, number: int, task: Task) -> None:
        """Begin a run; there must be a free worker."""
        channels = (each.channel for each in self._workers)
        channel = next((each for each in channels if each not in self._under_way), None) or self._start().channel
        self._under_way[channel] = number
        with contextlib.suppress(BrokenPipeError):  # `heard` says so
            channel.send(task)

    def heard(self) -> tuple[int, Ended | Said | Lost]:
        """What is heard next of any run under way, with its number. Waits for it. Raises what a worker raised."""
        channel = wait(list(self._under_way))[0]
        assert isinstance(channel, Connection)
        number = self._under_way[channel]
        try:
            answer = channel.recv()
        except (OSError, EOFError):
            answer = Lost(self._dismiss(channel))
        if not isinstance(answer, Said):
            del self._under_way[channel]
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, Ended | Said | Lost)
        return number, answer

    def interrupt(self) -> None:
        """End the runs under way as Ctrl-C does; may be called in any thread."""
        self._signal(signal.SIGINT)

    def _dismiss(self, channel: Connection) -> int:
        """The status of a worker that has died; another one takes its place."""
        (worker,) = (each for each in self._workers if each.channel is channel)
        self._workers.remove(worker)
        channel.close()
        return worker.process.wait()

    def _start(self) -> _Worker:
        ours, theirs = Pipe()
        descriptor = theirs.fileno()
        path = os.pathsep.join(filter(None, (str(PACKAGES), os.environ.get("PYTHONPATH"))))
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", f"from sundial.reproduce.worker import main; main({descriptor})"],
            stdin=subprocess.DEVNULL,
            pass_fds=[descriptor],
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,  # Ctrl-C reaches us, and we tell them
        )
        theirs.close()
        worker = _Worker(process, ours)
        self._workers.append(worker)
        ours.send(self._making)
        return worker

    def _end(self) -> None:
        for worker in self._workers:
            worker.channel.close()
        hurried = False
        until = time.monotonic() + END_S
        for worker in self._workers:
            while worker.process.poll() is None:
                if self._interrupts.hurry and not hurried:
                    hurried = True
                    self._signal(signal.SIGINT)
                if time.monotonic() > until:
                    self._signal(signal.SIGKILL)  # its guard takes the machines down
                with contextlib.suppress(subprocess.TimeoutExpired):
                    worker.process.wait(LOOK_S)

    def _signal(self, number: signal.Signals) -> None:
        for worker in self._workers:
            if worker.process.poll() is None:
                worker.process.send_signal(number)


def _clear(out: Path) -> None:
    """Remove what a dead worker has left of a run, once its guard has taken the machines down."""
    partial = out.with_name(f".{out.name}.partial")
    until = time.monotonic() + END_S
    while partial in in_the_making(out.parent) and time.monotonic() < until:
        time.sleep(LOOK_S)
    for folder in (partial, out):
        shutil.rmtree(folder, ignore_errors=True)
