# SPDX-License-Identifier: Apache-2.0
"""Signs of life of a run, read where they can be read without disturbing it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sundial.machines.shm import read_progress
from sundial.run.guestfiles import GuestFiles
from sundial.run.watchdog import Signs, SignsReader

FABRIC = "fabric"


def virtual_signs(shm: Path, files: Sequence[GuestFiles]) -> SignsReader:
    """From the shared memory; `files` are those of the machines, in the fabric's order."""

    def read() -> Signs:
        seen = tuple(file.seen_bytes for file in files)
        progress = read_progress(shm)
        if progress is None:
            return Signs(seen, booting=True)
        pairs = list(zip(files, progress.machines, strict=False))
        late = tuple(file.machine for file, machine in pairs if not machine.joined)
        running = tuple(file.machine for file, machine in pairs if not machine.waits and not machine.finished)
        fabric = () if progress.fabric.waits else (FABRIC,)
        times = tuple(machine.own_ns for machine in progress.machines)
        suspects = late or running or fabric
        return Signs((*seen, *times, progress.frames), suspects, bool(late), progress.virtual_ns)

    return read


def real_signs(
    counters: Callable[[], dict[str, Any]], files: Sequence[GuestFiles], waiting: Callable[[], Sequence[str]]
) -> SignsReader:
    """From the fabric's counters; `waiting` are the machines that have not said done."""

    def read() -> Signs:
        seen = tuple(file.seen_bytes for file in files)
        silent = tuple(file.machine for file in files if not file.said_hello)
        return Signs((*seen, _frames(counters())), silent or tuple(waiting()), bool(silent))

    return read


def _frames(counters: dict[str, Any]) -> int:
    """All frames that ports have sent."""
    try:
        return sum(
            int(port["tx_frames"]) for segment in counters["segments"].values() for port in segment["ports"].values()
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return 0
