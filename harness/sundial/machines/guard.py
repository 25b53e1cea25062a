# SPDX-License-Identifier: Apache-2.0
"""The guard: a tiny process that outlives the harness by the moment it takes to clean up after it.

libvirt detaches QEMU from its parent, so a harness killed with SIGKILL would leave its machines behind. The guard is
started before any machine, in a session of its own, and holds one end of a pipe. See `reaper` for what it does.
"""

from __future__ import annotations

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
    """The harness's side. Use as a context manager: leaving it says that the end is a normal one."""

    def __init__(self, token: str) -> None:
        if not token:
            raise ValueError("an empty token would match every process")
        self.token = token
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(reaper.__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            cwd="/",
        )
        output = self._process.stdout
        assert output is not None
        try:
            ready = call_within(START_S, "the guard process", output.readline)
        except DeadlineMissed as error:
            self._process.kill()
            raise RunFailed(str(error)) from error
        if ready.strip() != "ready":
            raise RunFailed("the guard process did not start")
        self._tell(token=token)

    @property
    def pid(self) -> int:
        return self._process.pid

    def remove_on_death(self, path: Path) -> None:
        """Should the harness die, take `path` (file or folder) away."""
        self._tell(remove=str(path))

    def rename_on_death(self, source: Path, target: Path) -> None:
        """Should the harness die, rename `source`, so that what was finished is kept under its own name."""
        self._tell(rename=[str(source), str(target)])

    def forget(self, path: Path) -> None:
        """`path` needs no care any more."""
        self._tell(forget=str(path))

    def end_processes(self) -> list[int]:
        """SIGKILL for every process that carries the token; the ones that would not go."""
        return reaper.end_all(self.token)

    def stop(self) -> None:
        """Normal end: nothing is cleaned."""
        if self._process.poll() is None:
            self._tell(stop=True)
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def __enter__(self) -> Guard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _tell(self, **command: object) -> None:
        channel = self._process.stdin
        assert channel is not None
        try:
            channel.write(json.dumps(command) + "\n")
            channel.flush()
        except BrokenPipeError as error:
            raise RunFailed("the guard process died; nothing would clean up after a killed harness") from error
