# SPDX-License-Identifier: Apache-2.0
"""Which cores guests run on, and that other work of the host waits for them: hints, which change speed only."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

VCPU = "/TCG"
"""How QEMU's names for the threads that run a guest end: `ALL CPUs/TCG`, `CPU 0/TCG`."""


def assign(pids: Sequence[int], cores: Iterable[int], first: int = 0) -> dict[int, int]:
    """The core of each process; none has one when there are fewer cores than processes."""
    ordered = sorted(cores)
    if len(pids) > len(ordered):
        return {}
    return {pid: ordered[(first + place) % len(ordered)] for place, pid in enumerate(pids)}


RUNTIME = Path("/proc/sys/kernel/sched_rt_runtime_us")
"""What the kernel leaves real-time threads of each period; -1: all of it."""


def settle(pids: Sequence[int], *, alone: bool, proc: Path = Path("/proc")) -> None:
    """Keep the guest's CPU of each of these QEMUs on one core where no other run is made beside this one, else on those
    that this process may use: a hint, which changes speed only.

    Guests that call each other run in turns, and the host's scheduler then moves them to one core, where each finds its
    caches full of the other. But of two runs at once the guests at work would be on the same core half of the time,
    and the other core idle: two took 1.6 times as long.
    """
    everywhere = os.sched_getaffinity(0)
    bound = assign(pids, everywhere, first=os.getpid()) if alone else {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for thread, name in _threads(pid, proc):
                if name.endswith(VCPU):
                    os.sched_setaffinity(thread, {bound[pid]} if pid in bound else everywhere)


def hurry(guests: Iterable[int], fabric: int, proc: Path = Path("/proc")) -> None:
    """Run guests (their CPUs and QEMU main loops) and fabric before other work of the host, where it allows that.

    Each waits for the others many thousand times a second, so that one that the scheduler lets wait holds up all. The
    same priority for all: what has the lock of their shared memory must not be kept from its core by one that spins
    for it. Monitors and the harness stay as they are.
    """
    if not keeps_time_for_others():
        return
    with contextlib.suppress(OSError):
        _in_real_time(fabric)  # first: guests must not keep it from its core
        for pid in guests:
            for thread, name in _threads(pid, proc):
                if thread == pid or name.endswith(VCPU):
                    _in_real_time(thread)


def may_hurry() -> bool:
    """Whether the host allows real-time scheduling to this user."""
    allowed: list[bool] = []

    def attempt() -> None:
        with contextlib.suppress(OSError):
            _in_real_time(0)
            allowed.append(True)

    # A thread's own scheduling ends with it.
    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    return bool(allowed) and keeps_time_for_others()


def keeps_time_for_others(runtime: Path = RUNTIME) -> bool:
    """Whether threads in real time leave a part of each core to the others, so that what hangs can be ended."""
    try:
        return int(runtime.read_text()) >= 0
    except (OSError, ValueError):
        return False


def _threads(pid: int, proc: Path) -> Iterator[tuple[int, str]]:
    """The threads of a process, with their names. Raises OSError."""
    for thread in (proc / str(pid) / "task").iterdir():
        yield int(thread.name), (thread / "comm").read_text().rstrip()


def _in_real_time(thread: int) -> None:
    os.sched_setscheduler(
        thread, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(os.sched_get_priority_min(os.SCHED_RR))
    )
