# SPDX-License-Identifier: Apache-2.0
"""Memory of a command and everything that it starts, as /proc shows it."""

from __future__ import annotations

import os
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")


class Watch:
    """`look` now and then; `peak_bytes` is the most that was resident at one of these moments.

    What two processes share is counted for each of them, so the sum is never too small.
    """

    def __init__(self) -> None:
        self.peak_bytes = 0

    def look(self) -> None:
        """All descendants of this process."""
        self.peak_bytes = max(self.peak_bytes, sum(_resident(pid) for pid in _descendants(os.getpid())))


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except OSError:
        return 0


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *_descendants(child)]
    except OSError:
        pass
    return found
