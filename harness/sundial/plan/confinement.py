# SPDX-License-Identifier: Apache-2.0
"""The permissions of one machine's QEMU, for `harness/confine`. Pure: paths in, text out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = tuple(map(Path, ("/usr", "/lib", "/lib64", "/bin")))
"""Folders of QEMU, its libraries and its firmware."""
SYSTEM = tuple(
    map(
        Path,
        (
            "/etc",
            "/proc/self",
            "/proc/cpuinfo",
            "/proc/meminfo",
            "/proc/stat",
            "/proc/sys",
            "/sys/devices/system",
            "/dev/urandom",
            "/dev/random",
            "/dev/zero",
        ),
    )
)
NOWHERE = Path("/dev/null")
KVM = Path("/dev/kvm")
FILE_BYTES_MOST = 4 << 30
"""Most bytes of a console or of samples, far above what a run writes: stops a guest before the disk is full."""


@dataclass(frozen=True)
class Confinement:
    """The program in place of the emulator, and the file that it reads."""

    program: Path
    policy: Path


@dataclass(frozen=True)
class Allowed:
    """Permissions of a machine beyond those of every QEMU."""

    emulator: Path
    read: Sequence[Path]
    write: Sequence[Path]
    kvm: bool = False
    user: int | None = None
    """User and group to change to; None: unchanged."""


def policy_text(allowed: Allowed) -> str:
    """The text of the file. Raises ValueError for a path that it cannot have."""
    lines = [f"emulator {allowed.emulator}"]
    lines += [f"program {path}" for path in (*PROGRAMS, allowed.emulator)]
    lines += [f"read {path}" for path in (*SYSTEM, *allowed.read)]
    lines += [f"write {path}" for path in allowed.write]
    lines += [f"device {path}" for path in ((NOWHERE, KVM) if allowed.kvm else (NOWHERE,))]
    lines.append(f"file_bytes {FILE_BYTES_MOST}")
    if allowed.user is not None:
        lines.append(f"user {allowed.user} {allowed.user}")
    for line in lines:
        if "\n" in line or not line.isprintable():
            raise ValueError(f"a path that cannot be written into a policy: {line!r}")
    return "\n".join(lines) + "\n"
