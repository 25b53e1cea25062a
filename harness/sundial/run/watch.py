# SPDX-License-Identifier: Apache-2.0
"""Signs of life of a run, read without disturbing it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sundial.machines.hypervisor import Machine
from sundial.machines.shm import read_progress
from sundial.run.guestfiles import GuestFiles
from sundial.run.supervisor import Hung
from sundial.run.watchdog import Signs, SignsReader, Watchdog

FABRIC = "fabric"


Machines = Mapping[str, Machine]


def processor_s(machines: Iterable[Machine]) -> tuple[float, ...] | None:
    """Processor time that each of these has used; None for one whose time is not readable."""
    used = [machine.processor_s() for machine in machines]
    known = tuple(seconds for seconds in used if seconds is not None)
    return known if len(known) == len(used) else None


def guest_signs(machines: Machines, files: Sequence[GuestFiles]) -> Signs:
    """Signs of life of single guests; `files` are theirs. Actions of others, such as calls, are not signs of life."""
    names = tuple(file.machine for file in files)
    return Signs(tuple(file.seen_bytes for file in files), names, True, processor_s(machines[name] for name in names))


def virtual_signs(shm: Path, files: Sequence[GuestFiles], machines: Machines) -> SignsReader:
    """From the shared memory; `files` are those of the machines, in the fabric's order."""

    def read() -> Signs:
        progress = read_progress(shm)
        if progress is None:
            return guest_signs(machines, files)
        pairs = list(zip(files, progress.machines, strict=False))
        late = [file for file, machine in pairs if not machine.joined]
        if late:
            return guest_signs(machines, late)
        seen = tuple(file.seen_bytes for file in files)
        running = tuple(file.machine for file, machine in pairs if not machine.waits and not machine.finished)
        fabric = () if progress.fabric.waits else (FABRIC,)
        times = tuple(machine.own_ns for machine in progress.machines)
        return Signs((*seen, *times, progress.frames), running or fabric, virtual_ns=progress.virtual_ns)

    return read


def real_signs(
    counters: Callable[[], dict[str, Any]],
    files: Sequence[GuestFiles],
    waiting: Callable[[], Sequence[str]],
    machines: Machines,
) -> SignsReader:
    """From the fabric's counters; `waiting` are the machines that have not said done.

    Guests that are alive may wait for as long as the deadline allows: a timeout, a program that sleeps, `linger`.
    """

    def read() -> Signs:
        silent = [file for file in files if not file.said_hello]
        if silent:
            return guest_signs(machines, silent)
        counted = counters()
        if not counted:
            # No frame travels, so all machines wait for it.
            return Signs((), (FABRIC,))
        return Signs((*(file.seen_bytes for file in files), _frames(counted)), tuple(waiting()))

    return read


class GuestWatch:
    """Watches each guest separately, under the real clock, where idle guests write alive lines too."""

    def __init__(self, machines: Machines, files: Sequence[GuestFiles]) -> None:
        self._machines = machines
        self._files = {file.machine: file for file in files}
        self._watched = {file.machine: (file, Watchdog()) for file in files}

    def look(self, now: float) -> Hung | None:
        """The first machine that hangs."""
        found = [dog.look(guest_signs(self._machines, [file]), now) for file, dog in self._watched.values()]
        return next((hung for hung in found if hung is not None), None)

    def renew(self, machine: str) -> None:
        """Watch a machine that has been started, perhaps again."""
        if machine in self._files:
            self._watched[machine] = self._files[machine], Watchdog()

    def forget(self, machine: str) -> None:
        """Stop watching an ended machine."""
        self._watched.pop(machine, None)


def _frames(counters: dict[str, Any]) -> int:
    """Number of frames that ports have sent."""
    try:
        return sum(
            int(port["tx_frames"]) for segment in counters["segments"].values() for port in segment["ports"].values()
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return 0
