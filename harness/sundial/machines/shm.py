# SPDX-License-Identifier: Apache-2.0
"""A look at the shared memory of a virtual run from outside: where everybody is. Layout: harness/clock/sync.h.

Read without the lock: a value may be a moment old, which is good enough for progress and for noticing a hang.
"""

from __future__ import annotations

import ctypes
import mmap
from dataclasses import dataclass
from pathlib import Path

MAGIC = 0x3130004C41494453
VERSION = 1
MACHINES = 16
NICS = 8
NEVER = (2**64 - 1) // 4


class _Member(ctypes.Structure):
    _fields_ = (
        ("own_ns", ctypes.c_uint64),
        ("bound_ns", ctypes.c_uint64),
        ("tx_done_bound_ns", ctypes.c_uint64),
        ("rx_due_ns", ctypes.c_uint64),
        ("tx_floor_ns", ctypes.c_uint64),
        ("waiting", ctypes.c_uint32),
        ("stopped", ctypes.c_uint32),
        ("finished", ctypes.c_uint32),
        ("joined", ctypes.c_uint32),
        ("_pad", ctypes.c_uint8 * 72),
        ("go", ctypes.c_uint32),
        ("asleep", ctypes.c_uint32),
        ("gates", ctypes.c_uint64),
        ("_tail", ctypes.c_uint8 * 112),
    )


class _Shared(ctypes.Structure):
    _fields_ = (
        ("magic", ctypes.c_uint64),
        ("version", ctypes.c_uint32),
        ("machine_count", ctypes.c_uint32),
        ("ring_slots", ctypes.c_uint32),
        ("slot_bytes", ctypes.c_uint32),
        ("bytes", ctypes.c_uint64),
        ("abort", ctypes.c_uint32),
        ("lock", ctypes.c_uint32),
        ("end_ns", ctypes.c_uint64),
        ("fabric_next_ns", ctypes.c_uint64),
        ("frames", ctypes.c_uint64),
        ("reserved", ctypes.c_uint64 * 8),
        ("distance_ns", ctypes.c_uint64 * (MACHINES * MACHINES)),
        ("adapter_frames", ctypes.c_uint32 * (MACHINES * NICS)),
        ("machine", _Member * MACHINES),
        ("fabric", _Member),
    )


@dataclass(frozen=True)
class MemberProgress:
    """One member: a machine, which has handed in everything before `own_ns`, or the fabric.

    `waits`: for another member; a member that has been let go and does not move does not wait.
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


def read_progress(path: Path) -> SharedProgress | None:
    """A look at the file; None where there is none, or one of another make."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), ctypes.sizeof(_Shared), prot=mmap.PROT_READ) as view:
            shared = _Shared.from_buffer_copy(view)
    except (OSError, ValueError):
        return None
    if shared.magic != MAGIC or shared.version != VERSION or shared.machine_count > MACHINES:
        return None
    machines = tuple(_member(member) for member in shared.machine[: shared.machine_count])
    times = [machine.own_ns for machine in machines if not machine.finished and machine.own_ns < NEVER]
    joined = all(machine.joined for machine in machines)
    return SharedProgress(
        min(times, default=0) if joined else 0, shared.frames, bool(shared.abort), machines, _member(shared.fabric)
    )


def _member(member: _Member) -> MemberProgress:
    return MemberProgress(
        member.own_ns,
        member.gates,
        bool(member.waiting) and not member.go,
        bool(member.finished),
        bool(member.joined),
    )
