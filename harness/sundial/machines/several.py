# SPDX-License-Identifier: Apache-2.0
"""One command in several guests at once, without input. Signals and the time are as in `foreground`."""

from __future__ import annotations

import contextlib
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sundial.errors import Interrupted, RunFailed
from sundial.machines import foreground
from sundial.machines.command import Ended, Line, Output, Stream
from sundial.machines.foreground import TIMED_OUT, caught_signals

LINE_BYTES = 64 * 1024
"""Most bytes that wait for the end of their line."""


@dataclass(frozen=True)
class Callee:
    """A machine: the socket on which it takes commands, and whether it streams."""

    path: Path
    streams: bool


class Prefixed:
    """Output line by line, each with its machine in front; what a machine did not end with a line end gets one."""

    def __init__(self, prefix: bytes, write: Callable[[Stream, bytes], None]) -> None:
        self._prefix = prefix
        self._write = write
        self._waiting: dict[Stream, bytes] = {"stdout": b"", "stderr": b""}

    def __call__(self, stream: Stream, data: bytes) -> None:
        whole, end, rest = (self._waiting[stream] + data).rpartition(b"\n")
        if len(rest) > LINE_BYTES:
            whole, end, rest = whole + end + rest, b"\n", b""
        self._waiting[stream] = rest
        if end:
            self._write(stream, b"".join(self._prefix + line + b"\n" for line in whole.split(b"\n")))

    def end(self) -> None:
        """Write what waits for the end of its line."""
        for stream, rest in self._waiting.items():
            if rest:
                self._write(stream, self._prefix + rest + b"\n")
        self._waiting = {"stdout": b"", "stderr": b""}


def perform_all(
    callees: Mapping[str, Callee], argv: Sequence[str], seconds: float | None, outputs: Mapping[str, Output]
) -> dict[str, Ended | RunFailed]:
    """Run `argv` in all of them until each has ended; a machine that does not answer has its error instead.

    Raises Interrupted at the second signal, or if a command does not end after the first.
    """
    with caught_signals() as caught, contextlib.ExitStack() as stack:
        return _All(callees, argv, seconds, outputs, caught, stack).make()


class _All:
    """The loop over all machines."""

    def __init__(
        self,
        callees: Mapping[str, Callee],
        argv: Sequence[str],
        seconds: float | None,
        outputs: Mapping[str, Output],
        caught: Any,
        stack: contextlib.ExitStack,
    ) -> None:
        self._argv = list(argv)
        self._outputs = outputs
        self._caught = caught
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._give_up: float | None = None
        self._received: signal.Signals | None = None
        self._timed_out = False
        self._ends: dict[str, Ended | RunFailed] = {}
        self._lines: dict[str, Line] = {}
        for name, callee in callees.items():
            try:
                line = stack.enter_context(Line(callee.path, name, argv[0], streams=callee.streams))
                self._lines[name] = line
                line.tell(argv=self._argv)
                if callee.streams:
                    line.tell(input=None)
            except RunFailed as error:
                self._end(name, error)

    def make(self) -> dict[str, Ended | RunFailed]:
        while self._lines:
            sockets = {line.socket: name for name, line in self._lines.items()}
            ends = [end for end in (self._deadline, self._give_up) if end is not None]
            timeout = max(0.0, min(ends) - time.monotonic()) if ends else None
            ready, _, _ = select.select([*sockets, self._caught], [], [], timeout)
            self._look_at_the_time()
            if self._caught in ready:
                for number in self._caught.recv(64):
                    self._handle(signal.Signals(number))
            for socket in ready:
                if socket is not self._caught and (name := sockets[socket]) in self._lines:
                    self._hear(name)
        return self._ends

    def _hear(self, name: str) -> None:
        try:
            end = self._lines[name].hear(self._outputs[name])
        except RunFailed as error:
            self._end(name, error)
            return
        if end is not None:
            self._end(name, Ended(TIMED_OUT, end.dropped, timed_out=True) if self._timed_out else end)

    def _end(self, name: str, how: Ended | RunFailed) -> None:
        self._ends[name] = how
        self._lines.pop(name, None)

    def _look_at_the_time(self) -> None:
        now = time.monotonic()
        if self._give_up is not None and now >= self._give_up:
            if not self._timed_out:
                raise self._interrupted()
            for name in list(self._lines):
                self._end(name, Ended(TIMED_OUT, timed_out=True))
        elif self._deadline is not None and now >= self._deadline:
            self._deadline, self._timed_out = None, True
            self._signal(signal.SIGTERM)

    def _handle(self, number: signal.Signals) -> None:
        if self._received is not None:
            raise self._interrupted()
        self._received = number
        self._signal(number)

    def _signal(self, number: signal.Signals) -> None:
        """To every command; one of a guest that cannot stream is left alone."""
        self._give_up = time.monotonic() + foreground.PATIENCE_S
        for name, line in list(self._lines.items()):
            if not line.streams:
                end: Ended | RunFailed = Ended(TIMED_OUT, timed_out=True)
                self._end(name, end if self._timed_out else RunFailed(f"{self._argv[0]} goes on", machine=name))
                continue
            try:
                line.tell(signal=int(number))
            except RunFailed as error:
                self._end(name, error)

    def _interrupted(self) -> Interrupted:
        return Interrupted(f"{', '.join(self._lines)}: {self._argv[0]} did not end after the signal: killed")
