# SPDX-License-Identifier: Apache-2.0
"""A command in a guest in the foreground of a terminal or a pipe: input, signals and the window's size go to it.

    the first SIGINT, SIGTERM or SIGHUP   goes to the command, which has PATIENCE_S to end; its status is the answer
    the second                            the command is given up: the guest kills it
    the time is over                      the command gets SIGTERM, and PATIENCE_S later is given up

Where the guest cannot stream, the first signal ends the wait, and the command goes on.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import termios
import time
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sundial.errors import Interrupted
from sundial.machines.command import Ended, Line, Output, Stream
from sundial.machines.terminal import raw_terminal, write_all

PATIENCE_S = 5.0
TIMED_OUT = 124
"""The status of a command that was ended because its time was over, as of timeout(1)."""
INPUT_BYTES = 48 * 1024
"""Of one line: 64 KiB of base64."""
WINDOW_BYTES = 64 * 1024
"""What a guest takes of a command's input before it has passed on any."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Foreground:
    """What a command has of its caller."""

    input_fd: int | None
    """Where its input comes from; None: it has none."""
    terminal: bool = False
    """It gets a terminal; `input_fd` is one."""
    seconds: float | None = None
    """How long it may take."""


class Passed:
    """Output goes where our own goes, as it comes."""

    def __init__(self, stdout_fd: int, stderr_fd: int) -> None:
        self._ends: dict[Stream, int] = {"stdout": stdout_fd, "stderr": stderr_fd}

    def __call__(self, stream: Stream, data: bytes) -> None:
        write_all(self._ends[stream], data)


def perform(
    path: Path, machine: str, argv: Sequence[str], foreground: Foreground, output: Output, *, streams: bool
) -> Ended:
    """Run `argv` in the guest until it ends. Raises RunFailed, Interrupted."""
    with (
        Line(path, machine, argv[0], streams=streams) as line,
        caught_signals(window=foreground.terminal) as caught,
        contextlib.ExitStack() as stack,
    ):
        if foreground.terminal:
            assert foreground.input_fd is not None
            stack.enter_context(raw_terminal(foreground.input_fd))
        return _Performance(line, argv, foreground, output, caught).make()


class _Performance:
    """The loop: what comes from the guest, the input, signals and the time."""

    def __init__(
        self, line: Line, argv: Sequence[str], foreground: Foreground, output: Output, caught: socket.socket
    ) -> None:
        self._line = line
        self._argv = argv
        self._foreground = foreground
        self._output = output
        self._caught = caught
        self._input = foreground.input_fd
        self._deadline = None if foreground.seconds is None else time.monotonic() + foreground.seconds
        self._give_up: float | None = None
        self._told: signal.Signals | None = None
        self._timed_out = False

    def make(self) -> Ended:
        self._start()
        while True:
            ready = self._wait()
            if self._is_over():
                return Ended(TIMED_OUT, timed_out=True)
            if self._caught in ready:
                for number in self._caught.recv(64):
                    self._handle(signal.Signals(number))
            if self._line.socket in ready:
                end = self._line.hear(self._output)
                if end is not None:
                    return Ended(TIMED_OUT, end.dropped, timed_out=True) if self._timed_out else end
            if self._input in ready:
                self._pass_input_on()

    def _start(self) -> None:
        argv = list(self._argv)
        if not self._line.streams:
            self._line.tell(argv=argv)
            return
        if self._foreground.terminal:
            window = self._window()
            self._line.tell(argv=argv, terminal={"type": os.environ.get("TERM") or "vt100", **window})
        else:
            self._line.tell(argv=argv)
        self._line.input_credit = WINDOW_BYTES
        if self._input is None:
            self._line.tell(input=None)

    def _wait(self) -> list[Any]:
        watched: list[Any] = [self._line.socket, self._caught]
        if self._input is not None and self._line.input_credit > 0:
            watched.append(self._input)
        ends = [end for end in (self._deadline, self._give_up) if end is not None]
        timeout = max(0.0, min(ends) - time.monotonic()) if ends else None
        ready, _, _ = select.select(watched, [], [], timeout)
        return ready

    def _is_over(self) -> bool:
        """Whether the command has not ended in its time, nor after SIGTERM."""
        now = time.monotonic()
        if self._give_up is not None and now >= self._give_up:
            if self._timed_out:
                return True
            raise self._given_up()
        if self._deadline is not None and now >= self._deadline:
            self._deadline = None
            self._timed_out = True
            if not self._line.streams:
                return True
            self._end_with(signal.SIGTERM)
        return False

    def _handle(self, number: signal.Signals) -> None:
        if number == signal.SIGWINCH:
            self._line.tell(window=self._window())
        elif self._told is not None:
            raise self._given_up()
        else:
            self._end_with(number)

    def _end_with(self, number: signal.Signals) -> None:
        self._told = number
        if not self._line.streams:
            raise self._given_up()
        self._line.tell(signal=int(number))
        self._give_up = time.monotonic() + PATIENCE_S

    def _given_up(self) -> Interrupted:
        assert self._told is not None
        what = f"did not end after {self._told.name}: killed" if self._line.streams else "goes on in the guest"
        return Interrupted(f"{self._line.machine}: {self._argv[0]} {what}")

    def _pass_input_on(self) -> None:
        assert self._input is not None
        try:
            data = os.read(self._input, min(INPUT_BYTES, self._line.input_credit))
        except OSError:  # a terminal that is gone
            data = b""
        self._line.input_credit -= len(data)
        self._line.tell(input=b64encode(data).decode() if data else None)
        if not data:
            self._input = None

    def _window(self) -> dict[str, int]:
        assert self._foreground.input_fd is not None
        rows, columns = termios.tcgetwinsize(self._foreground.input_fd)
        return {"rows": rows, "columns": columns}


@contextlib.contextmanager
def caught_signals(*, window: bool = False) -> Iterator[socket.socket]:
    """A socket from which the numbers of signals can be read instead of their usual effect; as it was afterwards."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    numbers = (*_SIGNALS, signal.SIGWINCH) if window else _SIGNALS
    with ours, theirs:
        # SIGINT is ignored in what a shell starts in the background, and stays so.
        before = {number: handler for number in numbers if (handler := signal.getsignal(number)) != signal.SIG_IGN}
        wakeup = signal.set_wakeup_fd(theirs.fileno())
        for number in before:
            signal.signal(number, lambda *_: None)
        try:
            yield ours
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(wakeup)
