# SPDX-License-Identifier: Apache-2.0
"""Runs side by side, each in a process of its own: libvirt's embedded driver and Python itself do one thing at a time.

Which of them makes a run, and when, changes nothing in it: time is virtual.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from types import TracebackType

from sundial.reproduce.worker import Ended, Making, Said, Task
from sundial.run.interrupts import Interrupts

PACKAGES = Path(__file__).resolve().parents[2]
END_S = 60.0
"""For a worker to take its machines down."""
LOOK_S = 0.2
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
