# SPDX-License-Identifier: Apache-2.0
"""Watches guests' files as they grow: error lines in samples, panics in consoles, and excessive output.

A guest must fill neither the disk nor our memory. So files are read in pieces, and have limits of size, of rate and,
for samples, of the length of a line.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sundial import SAMPLES_LINE_BYTES
from sundial.machines.console import GrowingFile, PanicWatch
from sundial.machines.waiting import WALL, Clock
from sundial.run.loopback import LOOPBACK
from sundial.run.supervisor import GuestExceeded, GuestFailed, MachinePanicked, MachineStopped
from sundial.units import SIZE

SAMPLES_BYTES = 2 << 30
"""Most bytes of samples; the largest shipped sweep writes a quarter of this."""
CONSOLE_BYTES = 64 << 20
LOOPBACK_BYTES = 2 << 30
BYTES_PER_S = 64 << 20
"""Most bytes a second of samples and console; a guest at 125 mips writes samples at 2 MiB/s at most."""
RATE_S = 1.0
"""Least interval of a rate's measurement."""

Fault = MachinePanicked | MachineStopped | GuestFailed | GuestExceeded

WORDS_MOST = 1000
"""Characters of an error line to quote."""
_BEGINNING = 4096
"""Bytes to quote of a line that is too long."""
_ERROR = b'{"type":"error"'
_BINDING = b'{"type":"binding"'
_BATCH = b'{"type":"batch"'
_STEP = b'{"type":"step"'


class SampleWatch(GrowingFile):
    """Reads a growing `samples.jsonl` and finds error lines in it."""

    def __init__(self, machine: str, path: Path) -> None:
        super().__init__(path)
        self._machine = machine
        self._rest = b""
        self.batches = 0
        self.failed_step: str | None = None
        """The first step that ended with another status than 0, in words."""
        self._reported: set[bool] = set()
        self._gave_up: str | None = None
        """What the step that runs says of a server that it has not found."""
        self.line_is_too_long = False
        """True if a file has exceeded its limit."""

    def look(self) -> list[GuestFailed]:
        """The first error line of all, and the first of a client that gave up, where they are new."""
        found = []
        for piece in self.read_new():
            *lines, rest = (self._rest + piece).split(b"\n")
            self.line_is_too_long |= max(map(len, (*lines, rest))) > SAMPLES_LINE_BYTES
            self._rest = rest if len(rest) <= SAMPLES_LINE_BYTES else rest[:_BEGINNING]
            for line in lines:
                error = self._take(line)
                if error is not None and error.gave_up not in self._reported:
                    self._reported.add(error.gave_up)
                    found.append(error)
        return found

    def _take(self, line: bytes) -> GuestFailed | None:
        start = line[:24].replace(b" ", b"")
        self.batches += start.startswith(_BATCH)
        if start.startswith(_STEP):
            failed = _failed_step(line)
            self.failed_step = self.failed_step or (failed and (self._gave_up or failed))
            self._gave_up = None
        if not start.startswith((_ERROR, _BINDING)):
            return None
        failure = _failure(self._machine, line)
        if failure is not None and failure.gave_up:
            self._gave_up = failure.message
        return failure


def _failure(machine: str, line: bytes) -> GuestFailed | None:
    """The failure in a line. A client that found no port ends without another, or goes on with calls that fail."""
    try:
        record = json.loads(line)
        message = record.get("message", "")
        binding = record.get("type") == "binding"
        if binding:
            if record.get("ok") is True:
                return None
            message = f"no answer for the server's port after {record.get('attempts')} requests: {record.get('error')}"
        words = " ".join(f"{record.get('app', 'a program')} failed: {message}".split())
        return GuestFailed(machine, words if len(words) <= WORDS_MOST else f"{words[:WORDS_MOST]} ...", binding)
    except (ValueError, AttributeError, RecursionError):
        return GuestFailed(machine, "a program failed with a malformed error line")


def _failed_step(line: bytes) -> str | None:
    """What a line says of a step that failed."""
    try:
        record = json.loads(line)
        status = record.get("status")
        return None if status == 0 else f"{record.get('app', 'a program')} ended with status {status}"[:WORDS_MOST]
    except (ValueError, AttributeError, RecursionError):
        return None


@dataclass
class Allowance:
    """Limits of a machine's output; a pure function of amounts and times."""

    since: float
    bytes_then: int = 0

    def excess(self, samples: int, console: int, now: float, loopback: int = 0) -> str | None:
        """The exceeded limit in words."""
        limits = (
            ("samples", samples, SAMPLES_BYTES),
            ("its console", console, CONSOLE_BYTES),
            ("the capture of its loopback", loopback, LOOPBACK_BYTES),
        )
        for what, count, most in limits:
            if count > most:
                return f"it wrote more than {SIZE.show(most)} to {what}"
        passed = now - self.since
        if passed < RATE_S:
            return None
        rate = (samples + console - self.bytes_then) / passed
        self.since, self.bytes_then = now, samples + console
        if rate > BYTES_PER_S:
            return f"it writes {rate / (1 << 20):.0f} MiB a second to samples and console; allowed: {BYTES_PER_S >> 20}"
        return None


class GuestFiles:
    """Console and samples of one machine."""

    def __init__(self, machine: str, folder: Path, clock: Clock = WALL) -> None:
        self.machine = machine
        self.console = folder / "console.log"
        self._samples_file = folder / "samples.jsonl"
        self._loopback = folder / LOOPBACK
        self._panics = PanicWatch(self.console)
        self._samples = SampleWatch(machine, self._samples_file)
        self._clock = clock
        self._allowance = Allowance(clock.now())
        self.excess: str | None = None
        """The exceeded limit in words."""

    @property
    def batches(self) -> int:
        """Number of batches of calls in the samples so far."""
        return self._samples.batches

    @property
    def failed_step(self) -> str | None:
        """The first program of the job that failed, and how, where it has said so."""
        return self._samples.failed_step

    @property
    def said_hello(self) -> bool:
        """True once the runner is up: it begins its samples with hello."""
        return self._samples.seen_bytes > 0

    @property
    def seen_bytes(self) -> int:
        """Signs of life, including the guest's alive lines."""
        return self._samples.seen_bytes + self._panics.seen_bytes

    def look(self) -> list[Fault]:
        """New faults."""
        found: list[Fault] = []
        line = self._panics.look()
        if line is not None:
            found.append(MachinePanicked(self.machine, line))
        elif self._panics.stopped is not None:
            found.append(MachineStopped(self.machine, self._panics.stopped))
        found += self._samples.look()
        self.excess = self.excess or self._look_for_excess()
        if self.excess is not None:
            found.append(GuestExceeded(self.machine, self.excess))
        return found

    def _look_for_excess(self) -> str | None:
        if self._samples.line_is_too_long:
            return f"it wrote a line of more than {SIZE.show(SAMPLES_LINE_BYTES)} to samples"
        sizes = _size(self._samples_file), _size(self.console)
        return self._allowance.excess(*sizes, self._clock.now(), _size(self._loopback))


def look_at_all(files: Sequence[GuestFiles], *, may_give_up: bool = False) -> list[Fault]:
    """New faults in the files of all machines, without those of clients that gave up if they may."""
    found = [bad for file in files for bad in file.look()]
    return [bad for bad in found if not (may_give_up and _gave_up(bad))]


def _gave_up(bad: Fault) -> bool:
    return isinstance(bad, GuestFailed) and bad.gave_up


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
