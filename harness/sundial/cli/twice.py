# SPDX-License-Identifier: Apache-2.0
"""`run --twice`: the first difference of two runs, the second of which may be beside busy loops."""

from __future__ import annotations

import contextlib
import struct
import subprocess
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

_PACKET = 6
"""Type of an Enhanced Packet Block of pcapng."""
_CHUNK = 1 << 20


def compared(run: Path) -> list[str]:
    """Names of a run's files whose bytes must repeat: captures, counters, records and outputs."""
    patterns = (
        "wire/**/*.pcapng",
        "wire/counters.json",
        "nodes/*/samples.jsonl",
        "nodes/*/programs/*",
        "samples.parquet",
    )
    found = {file.relative_to(run).as_posix() for pattern in patterns for file in run.glob(pattern) if file.is_file()}
    return sorted(found)


def first_difference(one: Path, other: Path) -> str | None:
    """The first difference of two runs in words: of captures, then of other files. None: their bytes are equal."""
    names = sorted({*compared(one), *compared(other)}, key=lambda name: (not name.endswith(".pcapng"), name))
    for name in names:
        files = [run / name for run in (one, other)]
        missing = [file for file in files if not file.is_file()]
        if missing:
            return f"{missing[0]}: does not exist"
        place = _different_byte(*files)
        if place is None:
            continue
        if name.endswith(".pcapng"):
            return f"{name}: frame {_frame_at(files[0], place)}"
        return f"{name}: byte {place}"
    return None


def _different_byte(one: Path, other: Path) -> int | None:
    """Offset of the first byte that differs."""
    place = 0
    with one.open("rb") as mine, other.open("rb") as theirs:
        while True:
            left, right = mine.read(_CHUNK), theirs.read(_CHUNK)
            if left != right:
                pairs = enumerate(zip_longest(left, right))
                return place + next(number for number, (first, second) in pairs if first != second)
            if not left:
                return None
            place += len(left)


def _frame_at(capture: Path, place: int) -> int:
    """Number of the frame whose block has a byte of a capture, or of the last one before it."""
    frames = at = 0
    with capture.open("rb") as file:
        while at <= place and len(head := file.read(8)) == 8:
            kind, length = struct.unpack("<II", head)
            frames += kind == _PACKET
            at += max(length, 12)
            file.seek(at)
    return frames


@contextlib.contextmanager
def hogs(count: int) -> Iterator[None]:
    """`count` processes that take processor time meanwhile."""
    loops = [subprocess.Popen([sys.executable, "-I", "-S", "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
        for loop in loops:
            loop.wait()
