# SPDX-License-Identifier: Apache-2.0
"""Finds and ends the processes of one run, and takes away what it left. Runs alone as the guard's program.

Standard library only, so that `python3 -I -S reaper.py` starts in some milliseconds. A process belongs to a run when
the run's token (random, part of every command line the harness starts) stands in its command line. It is held by a
pidfd before that is checked, so that a number given to another process meanwhile is never signalled.

As a program it reads JSON lines from its standard input, the harness holding the other end:

    {"token": T}                     first line: whose processes
    {"remove": PATH}                 take this file or folder away at the end
    {"rename": [FROM, TO]}           and give this one its last name (TO-2, TO-3 where TO is taken)
    {"forget": PATH}                 neither any more
    {"stop": true}                   normal end: leave without doing anything

End of file without `stop` means that the harness died, by whatever means: then everything above is done.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import IO

GRACE_S = 10.0


def command_line(pid: int) -> bytes:
    """The arguments of a process, each ended by NUL; empty where there is no such process."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def stat(pid: int) -> tuple[str, list[str]] | None:
    """A process's name and the fields behind it of /proc/PID/stat, from its state on; None where there is none."""
    try:
        name, _, fields = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(")")
    except OSError:
        return None
    return name, fields.split()


def start_time(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None where there is none."""
    found = stat(pid)
    return None if found is None else int(found[1][19])


def processor_s(pid: int) -> float | None:
    """Processor time that a process has used, in user and kernel mode; None where there is none."""
    found = stat(pid)
    return None if found is None else (int(found[1][11]) + int(found[1][12])) / os.sysconf("SC_CLK_TCK")


def processes_of(token: str) -> list[int]:
    """All processes with `token` in their command line, but not this one."""
    needle = token.encode()
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [pid for pid in pids if pid != os.getpid() and needle in command_line(pid)]


def end_process(pid: int, token: str) -> int | None:
    """SIGKILL for `pid` if it still is a process of this run; a pidfd that becomes readable when it is gone."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return None
    if token.encode() not in command_line(pid):
        os.close(handle)
        return None
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except OSError:
        os.close(handle)
        return None
    return handle


def wait_gone(handle: int, seconds: float | None = None) -> bool:
    """Wait for the process behind a pidfd to be gone (at most so long), and close the pidfd."""
    waiter = select.poll()
    waiter.register(handle, select.POLLIN)
    gone = bool(waiter.poll(None if seconds is None else int(seconds * 1000)))
    os.close(handle)
    return gone


def end_all(token: str, grace_s: float = GRACE_S) -> list[int]:
    """End every process of the run, also those that appear meanwhile; the ones that did not go in time."""
    end = time.monotonic() + grace_s
    while True:
        handles = [handle for pid in processes_of(token) if (handle := end_process(pid, token)) is not None]
        if not handles:
            return processes_of(token)
        waiter = select.poll()
        for handle in handles:
            waiter.register(handle, select.POLLIN)
        left = len(handles)
        while left > 0 and time.monotonic() < end:
            for handle, _ in waiter.poll(max(1, int((end - time.monotonic()) * 1000))):
                waiter.unregister(handle)
                left -= 1
        for handle in handles:
            os.close(handle)
        if time.monotonic() >= end:
            return processes_of(token)


def remove(path: Path) -> None:
    """Take a file or a folder away; nothing happens where there is none."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def rename_free(source: Path, target: Path) -> Path | None:
    """Give `source` the name `target`, or `target-2`, ... where that is taken; None when there is no `source`."""
    for number in range(1, 1000):
        name = target if number == 1 else target.with_name(f"{target.name}-{number}")
        if os.path.lexists(name):
            continue
        try:
            source.rename(name)
        except FileNotFoundError:
            return None
        except OSError:
            continue
        return name
    return None


def main(commands: IO[str]) -> int:
    """The guard: obey until the other end says stop or dies."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    token = ""
    removals: list[str] = []
    renames: dict[str, str] = {}
    with contextlib.suppress(BrokenPipeError):  # who is dead already needs us the more
        os.write(1, b"ready\n")
    for line in commands:
        command = json.loads(line)
        if "stop" in command:
            return 0
        if "token" in command:
            token = command["token"]
        if "remove" in command:
            removals.append(command["remove"])
        if "rename" in command:
            source, target = command["rename"]
            renames[source] = target
        if "forget" in command:
            renames.pop(command["forget"], None)
            removals = [path for path in removals if path != command["forget"]]
    if token:
        end_all(token)
    for source, target in renames.items():
        rename_free(Path(source), Path(target))
    for path in removals:
        remove(Path(path))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.stdin))
