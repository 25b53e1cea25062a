# SPDX-License-Identifier: Apache-2.0
"""Signs of life of a run, read where they can be read without disturbing it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sundial.machines.hypervisor import Machine
from sundial.machines.shm import read_progress
from sundial.run.guestfiles import GuestFiles
from sundial.run.watchdog import Signs, SignsReader

FABRIC = "fabric"


Machines = Mapping[str, Machine]


def processor_s(machines: Machines, names: Iterable[str]) -> float | None:
    """Processor time that these have used; None where that of one cannot be read."""
    used = [machines[name].processor_s() for name in names]
    known = [seconds for seconds in used if seconds is not None]
    return sum(known) if len(known) == len(used) else None


def boot_signs(machines: Machines, files: Sequence[GuestFiles]) -> Signs:
    """Of guests that only boot; `files` are theirs."""
    names = tuple(file.machine for file in files)
    return Signs(tuple(file.seen_bytes for file in files), names, True, processor_s(machines, names))


def virtual_signs(shm: Path, files: Sequence[GuestFiles], machines: Machines) -> SignsReader:
    """From the shared memory; `files` are those of the machines, in the fabric's order."""

    def read() -> Signs:
        progress = read_progress(shm)
        if progress is None:
            return boot_signs(machines, files)
        seen = tuple(file.seen_bytes for file in files)
        pairs = list(zip(files, progress.machines, strict=False))
        late = tuple(file.machine for file, machine in pairs if not machine.joined)
        running = tuple(file.machine for file, machine in pairs if not machine.waits and not machine.finished)
        fabric = () if progress.fabric.waits else (FABRIC,)
        times = tuple(machine.own_ns for machine in progress.machines)
        suspects = late or running or fabric
        moving = (*seen, *times, progress.frames)
        used = processor_s(machines, late) if late else None
        return Signs(moving, suspects, bool(late), used, progress.virtual_ns)

    return read


def real_signs(
    counters: Callable[[], dict[str, Any]],
    files: Sequence[GuestFiles],
    waiting: Callable[[], Sequence[str]],
    machines: Machines,
) -> SignsReader:
    """From the fabric's counters; `waiting` are the machines that have not said done."""

    def read() -> Signs:
        seen = tuple(file.seen_bytes for file in files)
        silent = tuple(file.machine for file in files if not file.said_hello)
        used = processor_s(machines, silent) if silent else None
        return Signs((*seen, _frames(counters())), silent or tuple(waiting()), bool(silent), used)

    return read


def _frames(counters: dict[str, Any]) -> int:
    """All frames that ports have sent."""
    try:
        return sum(
            int(port["tx_frames"]) for segment in counters["segments"].values() for port in segment["ports"].values()
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return 0
