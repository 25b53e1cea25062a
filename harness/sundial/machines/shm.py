# SPDX-License-Identifier: Apache-2.0
"""A look at the shared memory of a virtual run from outside: where everybody is. Layout: harness/clock/sync.h.

The run's folder in /dev/shm has `times`, which is read here, and a file of rings for each machine.
Read without the lock: a value may be a moment old, which is good enough for progress and for noticing a hang.
"""

from __future__ import annotations

import ctypes
import mmap
from dataclasses import dataclass
from pathlib import Path

MAGIC = 0x3130004C41494453
VERSION = 5
MACHINES = 64
NICS = 8
NEVER = (2**64 - 1) // 4
TIMES = "times"
PAGE = 4096
WANTS_LOCK = 1


def _pages(size: int) -> int:
    return -(-size // PAGE) * PAGE


class _Member(ctypes.Structure):
    _fields_ = (
        ("own_ns", ctypes.c_uint64),
        ("bound_ns", ctypes.c_uint64),
        ("tx_done_bound_ns", ctypes.c_uint64),
        ("rx_due_ns", ctypes.c_uint64),
        ("tx_floor_ns", ctypes.c_uint64),
        ("stride_ns", ctypes.c_uint64),
        ("waiting", ctypes.c_uint32),
        ("stopped", ctypes.c_uint32),
        ("finished", ctypes.c_uint32),
        ("joined", ctypes.c_uint32),
        ("_pad", ctypes.c_uint8 * 64),
        ("asleep", ctypes.c_uint32),
        ("lock_state", ctypes.c_uint32),
        ("aborted", ctypes.c_uint32),
        ("gates", ctypes.c_uint64),
        ("_tail", ctypes.c_uint8 * (PAGE - 152)),
    )


class _Word(ctypes.Structure):
    _fields_ = (("value", ctypes.c_uint32), ("_pad", ctypes.c_uint8 * 124))


class _Bell(ctypes.Structure):
    _fields_ = (
        ("lock", _Word),
        ("abort", _Word),
        ("go", _Word * (MACHINES + 1)),
        ("_tail", ctypes.c_uint8 * (_pages(128 * (MACHINES + 3)) - 128 * (MACHINES + 3))),
    )


class _Fixed(ctypes.Structure):
    _fields_ = (
        ("magic", ctypes.c_uint64),
        ("version", ctypes.c_uint32),
        ("machine_count", ctypes.c_uint32),
        ("slot_bytes", ctypes.c_uint32),
        ("ring_slots", ctypes.c_uint32),
        ("end_ns", ctypes.c_uint64),
        ("fabric_next_ns", ctypes.c_uint64),
        ("frames", ctypes.c_uint64),
        ("stop_ns", ctypes.c_uint64),
        ("distance_ns", ctypes.c_uint64 * (MACHINES * MACHINES)),
        ("adapter_frames", ctypes.c_uint32 * (MACHINES * NICS)),
        (
            "_tail",
            ctypes.c_uint8
            * (_pages(56 + 8 * MACHINES**2 + 4 * MACHINES * NICS) - 56 - 8 * MACHINES**2 - 4 * MACHINES * NICS),
        ),
    )


class _Shared(ctypes.Structure):
    _fields_ = (
        ("bell", _Bell),
        ("fixed", _Fixed),
        ("fabric", _Member),
        ("machine", _Member * MACHINES),
    )


@dataclass(frozen=True)
class MemberProgress:
    """One member: a machine, which has handed in everything before `own_ns`, or the fabric.

    `waits`: for another member, or for the lock; a member that has been let go and does not move does not wait.
    """

    own_ns: int
    gates: int
    waits: bool
    finished: bool
    joined: bool


@dataclass(frozen=True)
class SharedProgress:
    """The whole run, machines in the fabric's order."""

    virtual_ns: int
    """Where the slowest machine is; 0 until all have joined."""
    frames: int
    aborted: bool
    machines: tuple[MemberProgress, ...]
    fabric: MemberProgress


def read_progress(folder: Path) -> SharedProgress | None:
    """A look at the run's folder; None where there is none, or one of another make."""
    shared = _look(folder)
    if shared is None:
        return None
    fixed, go = shared.fixed, [bool(word.value) for word in shared.bell.go]
    members = shared.machine[: fixed.machine_count]
    machines = tuple(_member(member, go[index]) for index, member in enumerate(members))
    fabric = _member(shared.fabric, go[MACHINES])
    aborted = any(member.aborted for member in (*members, shared.fabric))
    times = [machine.own_ns for machine in machines if not machine.finished and machine.own_ns < NEVER]
    joined = all(machine.joined for machine in machines)
    return SharedProgress(min(times, default=0) if joined else 0, fixed.frames, aborted, machines, fabric)


def _member(member: _Member, let_go: bool) -> MemberProgress:
    return MemberProgress(
        member.own_ns,
        member.gates,
        (bool(member.waiting) and not let_go) or member.lock_state == WANTS_LOCK,
        bool(member.finished),
        bool(member.joined),
    )


def lookahead_ns(folder: Path) -> int | None:
    """The least time from what one machine sends to what another receives; None where no machine reaches another."""
    shared = _look(folder)
    if shared is None:
        return None
    count, distances = shared.fixed.machine_count, shared.fixed.distance_ns
    between = (distances[MACHINES * a + b] for a in range(count) for b in range(count) if a != b)
    least = min(between, default=NEVER)
    return least if least < NEVER else None


def _look(folder: Path) -> _Shared | None:
    try:
        with (
            (folder / TIMES).open("rb") as file,
            mmap.mmap(file.fileno(), ctypes.sizeof(_Shared), prot=mmap.PROT_READ) as view,
        ):
            shared = _Shared.from_buffer_copy(view)
    except (OSError, ValueError):
        return None
    fixed = shared.fixed
    known = fixed.magic == MAGIC and fixed.version == VERSION and fixed.machine_count <= MACHINES
    return shared if known else None
