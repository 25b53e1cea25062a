# SPDX-License-Identifier: Apache-2.0
"""The bytes of TCP streams, put together from captured segments."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import polars as pl

from sundial.observe.tshark import PIPE_BYTES, dissect

FRAMES_AT_ONCE = 500
_OVERLAP = 4


class Stream:
    """One direction of a connection from pieces (position, bytes), in any order and possibly overlapping."""

    def __init__(self, pieces: Iterable[tuple[int, bytes]]) -> None:
        self._pieces = sorted((piece for piece in pieces if piece[1]), key=lambda piece: piece[0])
        self._begins = [pos for pos, _ in self._pieces]

    def read(self, begin: int, count: int) -> bytes:
        """Up to `count` bytes from `begin`; fewer where a piece is missing."""
        out = b""
        place = max(0, bisect_right(self._begins, begin) - 1)
        # Retransmissions may have been cut another way: an earlier piece can reach further than the nearest.
        for pos, data in self._pieces[max(0, place - _OVERLAP) :]:
            here = begin + len(out)
            if pos > here or len(out) == count:
                break
            out += data[max(0, here - pos) :][: count - len(out)] if here < pos + len(data) else b""
        return out


def payloads(files: Sequence[tuple[Path, str]], frames: pl.DataFrame) -> dict[int, bytes]:
    """TCP payload of each of `frames` (row, capture, frame), by row."""
    found: dict[int, bytes] = {}
    for path, name in files:
        rows = dict(frames.filter(pl.col("capture") == name).select("frame", "row").iter_rows())
        numbers = sorted(rows)
        for first in range(0, len(numbers), FRAMES_AT_ONCE):
            part = numbers[first : first + FRAMES_AT_ONCE]
            listed = f"frame.number in {{{', '.join(map(str, part))}}}"
            fields = ["frame.number", "tcp.payload"]
            with path.open("rb") as file:
                capture = iter(partial(file.read, PIPE_BYTES), b"")
                for table in dissect(capture, fields, name=path, display_filter=listed, whole=True):
                    for number, payload in table.iter_rows():
                        found[rows[int(number)]] = bytes.fromhex(payload or "")
    return found
