# SPDX-License-Identifier: Apache-2.0
"""A process that makes one run after another, for `workers`.

What is to be done comes over a pipe as pickles, and what became of it goes back. When the other end is closed, because
it is over or its process is dead, the run that is being made is ended as by Ctrl-C, and so is the worker.
"""

from __future__ import annotations

import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Protocol

from sundial.errors import RunFailed
from sundial.plan.request import Progress, RunRequest, RunResult


@dataclass(frozen=True)
class Task:
    """One run to make."""

    about: str
    request: RunRequest
    out: Path
    calls: int = 0
    """About how many it makes."""


@dataclass(frozen=True)
class Ended:
    """What became of one run."""

    verdict: str
    """pass, fail, or failed: the run itself did not end."""
    calls: int = 0
    mismatches: int = 0
    error: str = ""
    """Of a run that failed."""


@dataclass(frozen=True)
class Making:
    """What other rooms do for one run."""

    run: Callable[[RunRequest, Progress], RunResult]
    verify: Callable[[Path], Mapping[str, Any]]
    report: Callable[[Path], object]

    def make(self, task: Task, progress: Progress) -> Ended:
        """Run, verify, report. A run that fails is an answer; raises BadInput, HostLacks, Interrupted."""
        progress.say(task.about)
        try:
            self.run(task.request, progress)
        except RunFailed as error:
            if (task.out / "run.json").is_file():
                self.report(task.out)
            return Ended("failed", error=error.message)
        verdict = self.verify(task.out)
        self.report(task.out)
        return Ended(str(verdict["verdict"]), int(verdict.get("calls") or 0), int(verdict.get("mismatches") or 0))


class Maker(Protocol):
    """Makes tasks."""

    def make(self, tasks: Sequence[tuple[Task, Progress]]) -> Iterator[Ended]:
        """What became of each, in their order. Raises BadInput, HostLacks, Interrupted."""


Makers = Callable[[Progress], AbstractContextManager[Maker]]
"""A maker for as long as it is needed."""


@dataclass(frozen=True)
class OneByOne:
    """Makes tasks in this process."""

    making: Making

    def make(self, tasks: Sequence[tuple[Task, Progress]]) -> Iterator[Ended]:
        """What became of each, in their order. Raises BadInput, HostLacks, Interrupted."""
        return (self.making.make(task, progress) for task, progress in tasks)


@dataclass(frozen=True)
class Said:
    """A step of a run begins."""

    text: str


class _Told:
    """Progress that goes to the other end. How far a step is would be lost among the steps of the other runs."""

    def __init__(self, channel: Connection) -> None:
        self._channel = channel

    def say(self, text: str) -> None:
        self._channel.send(Said(text))

    def share(self, done: float, text: str) -> None:
        return


class _Main:
    """The main thread: which is interrupted while it makes a run, and at no other moment."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._busy = False

    @contextmanager
    def busy(self) -> Iterator[None]:
        with self._lock:
            self._busy = True
        yield
        with self._lock:
            self._busy = False

    def interrupt(self) -> None:
        with self._lock:
            if self._busy:
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def work(channel: Connection) -> None:
    """First how runs are made, then one task after another, until the other end is closed."""
    tasks: SimpleQueue[Any] = SimpleQueue()
    main_thread = _Main()
    threading.Thread(target=_receive, args=(channel, tasks, main_thread), daemon=True).start()
    making = tasks.get()
    while isinstance(task := tasks.get(), Task):
        with main_thread.busy():
            channel.send(_answer(making, task, channel))


def _answer(making: Making, task: Task, channel: Connection) -> Ended | Exception:
    try:
        return making.make(task, _Told(channel))
    except Exception as error:
        # A traceback does not travel.
        error.add_note("".join(traceback.format_exception(error)))
        return error


def _receive(channel: Connection, tasks: SimpleQueue[Any], main_thread: _Main) -> None:
    try:
        with suppress(OSError, EOFError):
            while True:
                tasks.put(channel.recv())
    finally:
        tasks.put(None)
        main_thread.interrupt()


def main(descriptor: int) -> None:
    """Ends without words: who could hear them is gone."""
    with suppress(KeyboardInterrupt, BrokenPipeError):
        work(Connection(descriptor))
