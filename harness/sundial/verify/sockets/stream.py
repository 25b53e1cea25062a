# SPDX-License-Identifier: Apache-2.0
"""The bytes of TCP streams, put together from captured segments."""

from __future__ import annotations

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
