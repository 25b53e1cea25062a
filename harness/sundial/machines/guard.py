# SPDX-License-Identifier: Apache-2.0
"""The guard: a tiny process that outlives the harness by the moment it takes to clean up after it.

libvirt detaches QEMU from its parent, so a harness killed with SIGKILL would leave its machines behind. The guard is
started before any machine, in a session of its own, and holds one end of a pipe. See `reaper` for what it does.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType

from sundial.errors import RunFailed
from sundial.machines import reaper
from sundial.machines.waiting import DeadlineMissed, call_within

START_S = 10.0
STOP_S = 5.0


class Guard:
    """The harness's side. Use as a context manager: leaving it says that the end is a normal one.

    Its process is started at once; `wait_ready` before anything that it must end.
    """

    def __init__(self, token: str) -> None:
        if not token:
            raise ValueError("an empty token would match every process")
        self.token = token
        self._removals: list[str] = []
        self._renames: dict[str, str] = {}
        self._process = self._start()

    def _start(self) -> subprocess.Popen[str]:
        self._is_ready = False
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(reaper.__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            cwd="/",
        )
        with contextlib.suppress(BrokenPipeError):  # `wait_ready` finds out
            _write(process, token=self.token)
        return process

    def wait_ready(self) -> None:
        """Return when it is there; machines may be started from then on. Raises RunFailed.

        Requests sent earlier wait in its pipe, and are carried out if we die.
        """
        output = self._process.stdout
        assert output is not None
        if self._is_ready:
            return
        try:
            ready = call_within(START_S, "the guard process", output.readline)
        except DeadlineMissed as error:
            self._process.kill()
            raise RunFailed(str(error)) from error
        if ready.strip() != "ready":
            raise RunFailed("the guard process did not start")
        self._is_ready = True

    @property
    def pid(self) -> int:
        return self._process.pid

    def remove_on_death(self, path: Path) -> None:
        """Should the harness die, take `path` (file or folder) away."""
        self._removals.append(str(path))
        self._tell(remove=str(path))

    def rename_on_death(self, source: Path, target: Path) -> None:
        """Should the harness die, rename `source`, so that what was finished is kept under its own name."""
        self._renames[str(source)] = str(target)
        self._tell(rename=[str(source), str(target)])

    def forget(self, path: Path) -> None:
        """`path` needs no care any more."""
        self._renames.pop(str(path), None)
        self._removals = [each for each in self._removals if each != str(path)]
        self._tell(forget=str(path))

    def end_processes(self) -> list[int]:
        """SIGKILL for every process that carries the token; the ones that would not go."""
        return reaper.end_all(self.token)

    def stop(self) -> None:
        """Normal end: nothing is cleaned."""
        with contextlib.suppress(BrokenPipeError):
            _write(self._process, stop=True)
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def __enter__(self) -> Guard:
        self.wait_ready()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _tell(self, **command: object) -> None:
        try:
            _write(self._process, **command)
        except BrokenPipeError:
            self._replace()

    def _replace(self) -> None:
        """The guard was killed: another one takes its place and gets all requests again."""
        self.stop()
        self._process = self._start()
        self.wait_ready()
        for path in self._removals:
            _write(self._process, remove=path)
        for source, target in self._renames.items():
            _write(self._process, rename=[source, target])


def _write(process: subprocess.Popen[str], **command: object) -> None:
    channel = process.stdin
    assert channel is not None
    channel.write(json.dumps(command) + "\n")
    channel.flush()
