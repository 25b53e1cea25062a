# SPDX-License-Identifier: Apache-2.0
"""What guests write while they run, looked at as it grows: error lines in samples, panics in consoles."""

from __future__ import annotations

import json
from pathlib import Path

from sundial.machines.console import GrowingFile, PanicWatch
from sundial.run.supervisor import GuestFailed, MachinePanicked

_ERROR = b'{"type":"error"'
_BATCH = b'{"type":"batch"'
_ALIVE = b'{"type":"alive"'


class SampleWatch(GrowingFile):
    """Reads a growing `samples.jsonl` and finds error lines in it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._rest = b""
        self.batches = 0
        self.told_bytes = 0

    def look(self) -> str | None:
        """Read what is new; the first error in it."""
        new = self.read_new()
        if new is None:
            return None
        *lines, self._rest = (self._rest + new).split(b"\n")
        first = None
        for line in lines:
            start = line[:24].replace(b" ", b"")
            self.batches += start.startswith(_BATCH)
            self.told_bytes += 0 if start.startswith(_ALIVE) else len(line) + 1
            if first is None and start.startswith(_ERROR):
                first = _words(line)
        return first


def _words(line: bytes) -> str:
    try:
        record = json.loads(line)
        return " ".join(f"{record.get('app', 'a program')} failed: {record.get('message', '')}".split())
    except (ValueError, AttributeError):
        return "a program failed with an error line that cannot be read"


class GuestFiles:
    """Console and samples of one machine."""

    def __init__(self, machine: str, folder: Path) -> None:
        self.machine = machine
        self.console = folder / "console.log"
        self._panics = PanicWatch(self.console)
        self._samples = SampleWatch(folder / "samples.jsonl")

    @property
    def batches(self) -> int:
        """How many batches of calls the samples hold so far."""
        return self._samples.batches

    @property
    def said_hello(self) -> bool:
        """The runner is up: it begins its samples with hello."""
        return self._samples.seen_bytes > 0

    @property
    def seen_bytes(self) -> int:
        """Signs of life, the guest's word that it is alive among them."""
        return self._samples.seen_bytes + self._panics.seen_bytes

    @property
    def told_bytes(self) -> int:
        """Signs of work: the same without that word, in whole lines of samples."""
        return self._samples.told_bytes + self._panics.seen_bytes

    def look(self) -> list[MachinePanicked | GuestFailed]:
        """What is new and bad."""
        found: list[MachinePanicked | GuestFailed] = []
        line = self._panics.look()
        if line is not None:
            found.append(MachinePanicked(self.machine, line))
        error = self._samples.look()
        if error is not None:
            found.append(GuestFailed(self.machine, error))
        return found
