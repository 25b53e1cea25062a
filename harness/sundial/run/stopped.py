# SPDX-License-Identifier: Apache-2.0
"""Names a part of a run whose process is stopped (SIGSTOP, a debugger) while machines are prepared.

There are no signs of life yet, and what waits for a stopped QEMU, such as libvirt, may wait for minutes. So the part is
ended, which ends the wait, and named.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from sundial.errors import Interrupted, RunFailed, SundialError
from sundial.machines import reaper
from sundial.run.watch import FABRIC
from sundial.run.watchdog import Signs, Watchdog

LOOK_S = 1.0
STATES = ("T", "t")
"""Of a process that is stopped or traced (proc(5))."""
_GUEST = re.compile(rb"guest=TOKEN-(?:(?:boot|ask)-[0-9a-f]{6}-)?([^,\0]+)")

Stopped = Mapping[int, str]
"""Process number to the part of the run that it is."""


def part_of(command_line: bytes, token: str) -> str | None:
    """The machine whose QEMU a process is (one that is booted or asked in its place counts), or `fabric`."""
    words = command_line.replace(token.encode(), b"TOKEN")
    guest = _GUEST.search(words)
    if guest is not None:
        return guest[1].decode(errors="replace")
    return FABRIC if b"/TOKEN.json\0" in words else None


def stopped_parts(token: str) -> dict[int, str]:
    """The parts of the run with this token that are stopped at this moment."""
    parts = {pid: part_of(reaper.command_line(pid), token) for pid in reaper.processes_of(token)}
    return {pid: part for pid, part in parts.items() if part is not None and _is_stopped(pid)}


class StoppedWatch:
    """Takes the stopped parts now and then; answers the first that has been so for as long as a watchdog allows."""

    def __init__(self) -> None:
        self._dogs: dict[int, Watchdog] = {}

    def look(self, stopped: Stopped, now: float) -> tuple[int, RunFailed] | None:
        self._dogs = {pid: self._dogs.get(pid) or Watchdog() for pid in stopped}
        for pid, dog in self._dogs.items():
            hung = dog.look(Signs(()), now)
            if hung is not None:
                message = f"hung: its process has been stopped for {hung.seconds:.0f} s"
                return pid, RunFailed(message, machine=stopped[pid])
        return None


@contextmanager
def none_stopped(token: str, look: Callable[[str], Stopped] = stopped_parts, look_s: float = LOOK_S) -> Iterator[None]:
    """Ends and names a part of the run with this token that is stopped for long meanwhile. Raises RunFailed."""
    over = threading.Event()
    found: list[RunFailed] = []

    def watch() -> None:
        watched = StoppedWatch()
        while not over.wait(look_s):
            bad = watched.look(look(token), time.monotonic())
            if bad is not None:
                pid, error = bad
                found.append(error)
                handle = reaper.end_process(pid, token)
                if handle is not None:
                    os.close(handle)

    watcher = threading.Thread(target=watch, name="stopped", daemon=True)
    watcher.start()
    try:
        yield
    except SundialError as error:
        if found and not isinstance(error, Interrupted):
            raise found[0] from error
        raise
    finally:
        over.set()
        watcher.join()
    if found:
        raise found[0]


def _is_stopped(pid: int) -> bool:
    found = reaper.stat(pid)
    return found is not None and found[1][0] in STATES
