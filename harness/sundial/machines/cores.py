# SPDX-License-Identifier: Apache-2.0
"""A core of its own for each guest's CPU, where there are enough."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

VCPU = "/TCG"
"""How QEMU's names for the threads that run a guest end: `ALL CPUs/TCG`, `CPU 0/TCG`."""


def assign(pids: Sequence[int], cores: Iterable[int], first: int = 0) -> dict[int, int]:
    """The core of each process; none has one when there are fewer cores than processes."""
    ordered = sorted(cores)
    if len(pids) > len(ordered):
        return {}
    return {pid: ordered[(first + place) % len(ordered)] for place, pid in enumerate(pids)}


def settle(pids: Sequence[int], proc: Path = Path("/proc")) -> None:
    """Keep the guest's CPU of each of these QEMUs on one core: a hint, which changes speed only.

    Guests that call each other run in turns, and the host's scheduler then moves them to one core, where each finds its
    caches full of the other.
    """
    # Runs at once on one host begin at different cores.
    for pid, core in assign(pids, os.sched_getaffinity(0), first=os.getpid()).items():
        with contextlib.suppress(OSError):
            for thread in (proc / str(pid) / "task").iterdir():
                if (thread / "comm").read_text().rstrip().endswith(VCPU):
                    os.sched_setaffinity(int(thread.name), {core})
