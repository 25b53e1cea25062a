# SPDX-License-Identifier: Apache-2.0
"""What this host has to confine QEMU with, and the user that QEMU is where root starts it."""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

CHECK_S = 10.0
NOBODY = 65534
FIRST_USER = 0x53440000
"""Users from here on do not exist on a usual host; a session takes one of 65,536."""


@dataclass(frozen=True)
class Holds:
    """What holds on this host."""

    landlock: int
    """Version of the kernel's interface; 0: none."""
    network: bool
    """QEMU sees no network."""
    user: bool
    """QEMU is not root."""


def holds(program: Path) -> Holds:
    """Ask harness/confine. All absent where it cannot be asked."""
    try:
        done = subprocess.run([program, "--check"], capture_output=True, text=True, timeout=CHECK_S, check=False)
        found = {word: int(value) for word, value in (line.split() for line in done.stdout.splitlines())}
    except (OSError, ValueError, subprocess.TimeoutExpired):
        found = {}
    return Holds(found.get("landlock", 0), bool(found.get("network")), bool(found.get("user")))


def throwaway_user(uid_map: str, number: int | None = None) -> int | None:
    """A user to whom nothing on this host belongs, else user 65534; None where `/proc/self/uid_map` has neither."""
    wanted = FIRST_USER + (secrets.randbelow(1 << 16) if number is None else number)
    for user in (wanted, NOBODY):
        for line in uid_map.splitlines():
            inside, _, count = map(int, line.split())
            if inside <= user < inside + count:
                return user
    return None


def qemu_user(program: Path) -> int | None:
    """The user QEMU is to be, for one session; None: the harness's own, which is not root or cannot be given up."""
    if os.geteuid() != 0 or not holds(program).user:
        return None
    return throwaway_user(Path("/proc/self/uid_map").read_text())


def hand_over(paths: Iterable[Path], user: int | None) -> None:
    """Make files and folders the user's, where there is one and they are there; nothing beneath folders."""
    if user is None:
        return
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            os.chown(path, user, user, follow_symlinks=False)


def take_back(folder: Path, user: int | None) -> None:
    """Make a folder and all beneath it root's again."""
    if user is not None:
        hand_over((folder, *folder.rglob("*")), os.geteuid())
