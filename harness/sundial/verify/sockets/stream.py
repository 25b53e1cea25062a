# SPDX-License-Identifier: Apache-2.0
"""The bytes of TCP streams, put together from captured segments."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from sundial.observe import octets_of
from sundial.observe.headers import ETHERNET
from sundial.observe.tshark import PIPE_BYTES, dissect

PLACES = ("octets_begin", "captured_length", "ip_header", "tcp_header", "tcp_length")
"""Columns of the table of frames that tell where a payload is."""
_AT_ONCE = 10_000


class NotRecorded(Exception):
    """Bytes that were asked for were on the wire, and the capture has cut them off."""


class Stream:
    """One direction of a connection from pieces (position, bytes), in any order and possibly overlapping.

    `shown`: begin and end of what was on the wire, where a capture has not recorded it all.
    """

    def __init__(self, pieces: Iterable[tuple[int, bytes]], shown: Iterable[tuple[int, int]] = ()) -> None:
        self._runs: list[bytearray] = []
        self._begins: list[int] = []
        for pos, data in sorted((piece for piece in pieces if piece[1]), key=lambda piece: piece[0]):
            end = self._begins[-1] + len(self._runs[-1]) if self._runs else pos - 1
            if pos > end:
                self._begins.append(pos)
                self._runs.append(bytearray(data))
            else:
                self._runs[-1] += data[end - pos :]
        known = zip(self._begins, map(len, self._runs), strict=True)
        self._shown: list[tuple[int, int]] = []
        for begin, end in sorted([*((begin, begin + size) for begin, size in known), *shown]):
            if self._shown and begin <= self._shown[-1][1]:
                self._shown[-1] = (self._shown[-1][0], max(self._shown[-1][1], end))
            else:
                self._shown.append((begin, end))

    @property
    def begin(self) -> int:
        """The first byte that was on the wire; 0 where there was none."""
        return self._shown[0][0] if self._shown else 0

    @property
    def end(self) -> int:
        """Behind the last one."""
        return self._shown[-1][1] if self._shown else 0

    def read(self, begin: int, count: int) -> bytes:
        """Up to `count` bytes from `begin`; fewer where a piece is missing."""
        place = bisect_right(self._begins, begin) - 1
        if place < 0:
            return b""
        at = begin - self._begins[place]
        return bytes(self._runs[place][at : at + count])

    def need(self, begin: int, count: int) -> bytes:
        """The same. Raises NotRecorded where the next byte is one that the capture has cut off."""
        data = self.read(begin, count)
        at = begin + len(data)
        if len(data) < count and not self.missing(at, at + 1):
            raise NotRecorded
        return data

    def missing(self, begin: int, end: int) -> int:
        """Bytes from `begin` to `end` that were not on the wire."""
        place = max(0, bisect_right(self._shown, (begin, begin)) - 1)
        there = 0
        while place < len(self._shown) and self._shown[place][0] < end:
            low, high = self._shown[place]
            there += max(0, min(high, end) - max(low, begin))
            place += 1
        return end - begin - there

    def search(self, pattern: re.Pattern[bytes], begin: int) -> Iterator[int]:
        """Where the pattern is, from `begin` on."""
        for place in range(max(0, bisect_right(self._begins, begin) - 1), len(self._runs)):
            first = self._begins[place]
            for found in pattern.finditer(self._runs[place], max(0, begin - first)):
                yield first + found.start()


@dataclass(frozen=True)
class Joined:
    """What one segment brings to its stream."""

    row: int
    pos: int
    """Of `new` in the stream."""
    new: bytes
    """Bytes that no segment before it had."""
    gap: int | None = None
    """The byte that no segment has, where the stream is not whole up to `pos`."""
    changed: tuple[int, int, int] | None = None
    """The first byte that had been sent before, and otherwise: place, then and now."""


def join(segments: Iterable[tuple[int, int, bytes]]) -> Iterator[Joined]:
    """One direction of a connection, segment after segment: row, position and bytes, by ascending positions.

    Only what later segments may have again is held, so that a stream may be longer than memory.
    """
    end, tail = 0, b""
    for row, pos, piece in segments:
        at = max(pos, 0)
        piece = piece[at - pos :]
        if at > end:
            yield Joined(row, at, piece, gap=end)
            end, tail = at + len(piece), piece
            continue
        tail = tail[len(tail) - (end - at) :]
        both = zip(tail, piece, strict=False)
        other = (place for place, (then, now) in enumerate(both) if then != now)
        place = None if tail.startswith(piece[: len(tail)]) else next(other)
        changed = None if place is None else (at + place, tail[place], piece[place])
        new = piece[len(tail) :]
        yield Joined(row, end, new, changed=changed)
        end, tail = end + len(new), tail + new


def payloads(files: Sequence[tuple[Path, str]], frames: pl.DataFrame) -> dict[int, bytes]:
    """TCP payload of each of `frames` (row, capture, frame and `PLACES`), by row.

    It is read where it is in the file. tshark is asked where our own reader finds no TCP: on other links than Ethernet.
    """
    near = pl.col("tcp_header").is_not_null() & pl.col("ip_header").is_not_null()
    found = _read(files, frames.filter(near))
    for path, name in files:
        others = frames.filter(~near, pl.col("capture") == name)
        if others.height:
            found |= _dissected(path, dict(others.select("frame", "row").iter_rows()))
    return found


def _read(files: Sequence[tuple[Path, str]], frames: pl.DataFrame) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    for part in frames.sort("octets_begin").partition_by("capture", maintain_order=True):
        for some in part.iter_slices(_AT_ONCE):
            begin = ETHERNET + (some["ip_header"].cast(pl.Int64) + some["tcp_header"].cast(pl.Int64)).to_numpy()
            octets = octets_of(some, files)
            flat, sizes = octets.flat(begin, begin + some["tcp_length"].cast(pl.Int64).fill_null(0).to_numpy())
            octets.forget()
            ends = np.cumsum(sizes)
            places = zip((ends - sizes).tolist(), ends.tolist(), strict=True)
            data = flat.tobytes()
            found |= {row: data[at:to] for row, (at, to) in zip(some["row"].to_list(), places, strict=True)}
    return found


def _dissected(path: Path, rows: dict[int, int]) -> dict[int, bytes]:
    """The same as tshark tells, of `rows` by frame number."""
    found: dict[int, bytes] = {}
    with path.open("rb") as file:
        capture = iter(partial(file.read, PIPE_BYTES), b"")
        fields = ["frame.number", "tcp.payload"]
        for table in dissect(capture, fields, name=path, display_filter="tcp.len > 0", whole=True):
            for number, payload in table.iter_rows():
                if int(number) in rows:
                    found[rows[int(number)]] = bytes.fromhex(payload or "")
    return found
