# SPDX-License-Identifier: Apache-2.0
"""Record marks in TCP streams (RFC 5531 section 11).

tshark reports the fragments of a record with the frame in which they end. It does not report a record whose last
fragment is empty as a message, nor the reply to it, so that what it leaves out is read from the marks themselves: four
bytes at positions that follow from one another, in the payloads that tshark extracts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from pathlib import Path

import polars as pl

from sundial.observe.tshark import dissect
from sundial.verify.findings import findings

MARK = 4
LAST = 1 << 31
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


def walk(stream: Stream, begin: int) -> tuple[tuple[int, ...], int] | None:
    """Fragment lengths of the record at `begin` and where it ends; None where a mark is not in the stream."""
    fragments: list[int] = []
    while True:
        mark = stream.read(begin, MARK)
        if len(mark) < MARK:
            return None
        value = int.from_bytes(mark, "big")
        fragments.append(value & ~LAST)
        begin += MARK + fragments[-1]
        if value & LAST:
            return tuple(fragments), begin


def payloads(files: Sequence[tuple[Path, str]], frames: pl.DataFrame) -> dict[int, bytes]:
    """TCP payload of each of `frames` (row, capture, frame), by row."""
    found: dict[int, bytes] = {}
    for path, name in files:
        rows = dict(frames.filter(pl.col("capture") == name).select("frame", "row").iter_rows())
        numbers = sorted(rows)
        for first in range(0, len(numbers), FRAMES_AT_ONCE):
            part = numbers[first : first + FRAMES_AT_ONCE]
            wanted = f"frame.number in {{{', '.join(map(str, part))}}}"
            table = dissect(path, ["frame.number", "tcp.payload"], display_filter=wanted, whole=True)
            for number, payload in table.iter_rows():
                found[rows[int(number)]] = bytes.fromhex(payload or "")
    return found


def check_records(
    sent: pl.DataFrame,
    wanted: pl.DataFrame,
    segments: pl.DataFrame,
    places: pl.DataFrame,
    files: Sequence[tuple[Path, str]],
) -> pl.DataFrame:
    """Findings about the record marks of Sun RPC messages over TCP.

    `sent`: from `tcp.messages`; `segments`: from `tcp.sent_segments`; `places`: from `tcp.starts`.
    """
    side = ["call", "reply"]
    table = (
        sent.join(
            wanted.filter(pl.col("protocol") == "sunrpc").select(*side, "payload", expected_records="records"),
            on=side,
            how="inner",
        )
        .filter(pl.col("bytes") == pl.col("payload"))
        .with_columns(told=_told())
    )
    unsaid = table.filter(pl.col("told").is_null())
    read = _read(unsaid, segments, places, files)
    table = table.join(read, on=side, how="left").with_columns(told=pl.coalesce("told", "read"))
    wrong = pl.col("told").is_null() | (pl.col("told") != pl.col("expected_records"))
    return findings(table, wrong, "records", pl.col("expected_records"), pl.col("told").fill_null("no record mark"))


def _told() -> pl.Expr:
    """Fragment lengths as tshark gave them, null where it did not give a whole record."""
    whole = pl.col("lasts").str.ends_with("1") & (pl.col("lasts").str.count_matches("1") == 1)
    return pl.when(whole).then("records")


def _read(
    unsaid: pl.DataFrame, segments: pl.DataFrame, places: pl.DataFrame, files: Sequence[tuple[Path, str]]
) -> pl.DataFrame:
    """The same from the marks, for the messages in `unsaid`: call, reply, read."""
    side = ["call", "reply"]
    schema = {"call": pl.UInt32, "reply": pl.Boolean, "read": pl.String}
    if unsaid.is_empty():
        return pl.DataFrame(schema=schema)
    known = places.select(*side, "begin").join(unsaid.select(*side, "expected_records"), on=side, how="inner")
    marks = known.select(*side, mark=_marks()).explode("mark", empty_as_null=True)
    pieces = segments.filter(pl.col("fresh") > 0).select(*side, "row", "capture", "frame", "pos", "stop")
    near = pieces.join(marks, on=side, how="inner").filter(
        pl.col("pos") < pl.col("mark") + MARK, pl.col("stop") > pl.col("mark")
    )
    data = payloads(files, near.select("row", "capture", "frame").unique())
    streams: dict[tuple[int, bool], set[tuple[int, bytes]]] = {}
    for call, reply, row, pos in near.select(*side, "row", "pos").iter_rows():
        streams.setdefault((call, reply), set()).add((pos, data.get(row, b"")))
    rows = []
    for call, reply, begin in known.select(*side, "begin").iter_rows():
        found = walk(Stream(streams.get((call, reply), ())), begin)
        rows.append((call, reply, ",".join(map(str, found[0])) if found else None))
    return pl.DataFrame(rows, schema=schema, orient="row")


def _marks() -> pl.Expr:
    """Stream positions of the marks of a record that begins at `begin`."""
    lengths = pl.col("expected_records").str.split(",").cast(pl.List(pl.Int64))
    steps = lengths.list.eval(pl.element().cum_sum().shift(1).fill_null(0) + pl.int_range(pl.len()) * MARK)
    return steps + pl.col("begin")
