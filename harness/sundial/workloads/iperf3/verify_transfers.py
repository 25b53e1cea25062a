# SPDX-License-Identifier: Apache-2.0
"""The frames of iperf3's tests: each belongs to a connection or flow of a test that its client tells of.

A test has a control connection and a data connection for each stream, which begin with the test's cookie; over UDP the
streams are flows that client and server open with a word. The bytes of each connection follow one another without a
gap. A client sends the same block again and again, so that the first tells all others; a datagram is a block that
begins with its time and its number (`iperf_udp.c`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sundial.verify.frames import refused
from sundial.verify.sockets import tcp
from sundial.verify.sockets.payloads import payloads
from sundial.verify.sockets.protocol import Bytes, Files
from sundial.verify.sockets.stream import Joined, join
from sundial.workloads.iperf3.verify_control import COOKIE

DATAGRAM_HEAD = 12
"""Seconds, microseconds and number, four bytes each."""
UDP_HELLO, UDP_ANSWER = b"9876", b"6789"
"""The words with which client and server open a flow."""
_NUMBER_AT = 8
_TELLS = 32
"""So many bytes of a block that is drawn at random are nowhere else in it."""


@dataclass(frozen=True)
class Connections:
    """TCP to the server's port: `segments` from `tcp.sent_segments`, `frames` with flow, conn, pos and data."""

    frames: pl.DataFrame
    segments: pl.DataFrame
    files: Files

    def length(self, conn: int, reply: bool, view: str = "sent") -> int:
        """Bytes of one direction, from the first, as far as they were seen without a gap; `sent` has those of frames
        that the sender's adapter gave up."""
        reached = self._spans(conn, reply, view)
        gap = reached.filter(pl.col("pos") > pl.col("before"))
        return int((gap["before"].head(1) if gap.height else reached["stop"].sort().tail(1)).sum())

    def behind_gaps(self, conn: int, reply: bool) -> int:
        """Bytes of one direction that were sent behind the first gap."""
        reached = self._spans(conn, reply, "sent")
        fresh = (pl.col("stop") - pl.max_horizontal("pos", "before")).clip(0)
        return int(reached.select(fresh.sum()).item()) - self.length(conn, reply)

    def _spans(self, conn: int, reply: bool, view: str) -> pl.DataFrame:
        """Of segments with data, in order: pos, stop, and `before`: the last stop of those before."""
        seen = pl.col("view") == view
        if view == "sent":
            seen |= given_up(self.frames)
        table = self.frames.filter(pl.col("conn") == conn, pl.col("reply") == reply, seen, pl.col("data") > 0)
        spans = table.select("pos", stop=pl.col("pos") + pl.col("data")).unique().sort("pos", "stop")
        return spans.with_columns(before=pl.col("stop").cum_max().shift(1).fill_null(0))

    def opened_again(self, conn: int) -> int:
        """How many SYN and FIN without data a client sent again: TCP_INFO counts them as well."""
        sent = self.frames.filter(
            pl.col("conn") == conn,
            ~pl.col("reply"),
            pl.col("view") == "sent",
            pl.col("data") == 0,
            pl.col("tcp_flags") & (tcp.SYN | tcp.FIN) != 0,
        )
        return sent.height - sent.select("pos", "tcp_flags").n_unique()

    def read(self, conn: int, reply: bool, count: int) -> bytes:
        """The first `count` bytes of one direction."""
        rows = self.segments.filter(
            pl.col("conn") == conn, pl.col("reply") == reply, pl.col("fresh") > 0, pl.col("pos") < count
        ).sort("pos", "row")
        whole = takewhile(lambda part: part.gap is None, _joined(rows, self.files))
        return b"".join(part.new for part in whole)[:count]

    def changed(self, conn: int, count: int) -> Iterator[tuple[int, tuple[int, int, int]]]:
        """Segments that sent any of the first `count` bytes of a direction again, and otherwise: row, and what
        `Joined.changed` has."""
        rows = self.segments.filter(pl.col("conn") == conn, pl.col("pos") < count)
        for part in rows.partition_by("reply"):
            for each in _joined(part.sort("pos", "time_ns", "row"), self.files):
                if each.changed is not None and each.changed[0] < count:
                    yield each.row, each.changed


def check_blocks(connections: Connections, conn: int, size: int) -> Iterator[tuple[int, int]]:
    """Row and place of each segment of a data connection that is not the block that is sent again and again.

    A write that the socket takes in part only ends a block early, and the next begins from its first byte.
    """
    rows = connections.segments.filter(
        pl.col("conn") == conn, ~pl.col("reply"), pl.col("pos") + pl.col("data") > COOKIE
    ).sort("pos", "row")
    begins = np.unique(np.array(_begins(_stream(rows, connections.files)), dtype=np.int64))
    if not len(begins):
        return
    ends = np.append(begins[1:], max(rows["stop"].to_list()))
    longest = int(np.argmax(np.minimum(ends - begins, size)))
    known = min(int(ends[longest] - begins[longest]), size)
    block = np.frombuffer(_range(_stream(rows, connections.files), int(begins[longest]), known), np.uint8)
    for piece, row, pos in zip(payloads(rows, connections.files), rows["row"], rows["pos"], strict=True):
        wrong = _difference(np.frombuffer(piece, np.uint8), pos, begins, block)
        if wrong is not None:
            yield row, wrong


def _joined(rows: pl.DataFrame, files: Files) -> Iterator[Joined]:
    return join(zip(rows["row"], rows["pos"], payloads(rows, files), strict=True))


def _stream(rows: pl.DataFrame, files: Files) -> Iterator[tuple[int, bytes]]:
    """A stream from the cookie's end on: position and bytes, none twice."""
    for part in _joined(rows, files):
        known = max(0, COOKIE - part.pos)
        if known < len(part.new):
            yield part.pos + known, part.new[known:]


def _begins(stream: Iterator[tuple[int, bytes]]) -> list[int]:
    """Where the first bytes of a stream come again."""
    found: list[int] = []
    held, mark, here, searched = b"", b"", COOKIE, 0
    for pos, piece in stream:
        if pos != here:  # not over a gap
            found += [here - len(held) + short for short in _short(held, mark)]
            held, searched = b"", 0
        at, held, here = pos - len(held), held + piece, pos + len(piece)
        if len(held) < _TELLS:
            continue
        mark = mark or held[:_TELLS]
        place = held.find(mark, searched)
        while place >= 0:
            found += [*(at + short for short in _short(held[:place], mark)), at + place]
            place = held.find(mark, place + 1)
        searched = min(len(held), 2 * _TELLS) - _TELLS + 1
        held = held[-2 * _TELLS :]
    return found + [here - len(held) + short for short in _short(held, mark)]


def _short(held: bytes, mark: bytes) -> list[int]:
    """Where blocks begin at the end of `held` that end before all of `mark`."""
    places: list[int] = []
    end = len(held)
    while True:
        lengths = range(min(len(mark) - 1, end), 0, -1)
        length = next((length for length in lengths if held[end - length : end] == mark[:length]), 0)
        if length == 0:
            return places[::-1]
        end -= length
        places.append(end)


def _range(stream: Iterator[tuple[int, bytes]], begin: int, count: int) -> bytes:
    """`count` bytes from `begin`."""
    parts = [piece[max(0, begin - pos) : max(0, begin + count - pos)] for pos, piece in stream]
    return b"".join(parts)


def _difference(seen: Bytes, pos: int, begins: NDArray[np.int64], block: Bytes) -> int | None:
    """The place of the first byte of a segment that no block has there."""
    here = max(pos, COOKIE)
    while here < pos + len(seen):
        number = int(np.searchsorted(begins, here, side="right")) - 1
        until = min(int(begins[number + 1]) if number + 1 < len(begins) else pos + len(seen), pos + len(seen))
        at = here - int(begins[number]) if number >= 0 else len(block)
        part, right = seen[here - pos : until - pos], block[at : at + until - here]
        different = np.flatnonzero(part[: len(right)] != right)
        if len(different) or len(right) < len(part):
            return here + (int(different[0]) if len(different) else len(right))
        here = until
    return None


def check_datagrams(sent: pl.DataFrame, files: Files, size: int) -> Iterator[tuple[int, str, str, str]]:
    """Row, field, expected and seen of each datagram of a stream that is not the next one; `sent` in their order."""
    if sent.is_empty():
        return
    number, first, before, head = 0, b"", b"", DATAGRAM_HEAD
    for row, piece in zip(sent["row"], payloads(sent, files), strict=True):
        number += 1
        first = first or piece[head:]
        said = int.from_bytes(piece[_NUMBER_AT:head], "big")
        if len(piece) != size:
            yield row, "datagram.bytes", str(size), str(len(piece))
        elif said != number:
            yield row, "datagram.number", str(number), str(said)
            number = said
        elif piece[head:] != first:
            yield row, "datagram.payload", "that of the first", "another"
        elif piece[:_NUMBER_AT] < before:
            yield row, "datagram.time", f"{before.hex()} or later", piece[:_NUMBER_AT].hex()
        before = piece[:_NUMBER_AT]


def least_lost(arrived: Iterable[bytes], times: Iterable[int], read_ns: int) -> int:
    """The least that a server may count as lost of a stream whose datagrams arrived so, of which it has read those that
    had by `read_ns`: as `iperf_udp_recv` counts, the numbers that are left out, less what comes behind a later one."""
    highest, lost, least = 0, 0, None
    for piece, at_ns in zip(arrived, times, strict=True):
        if len(piece) < DATAGRAM_HEAD:
            continue
        if at_ns > read_ns:
            least = lost if least is None else min(least, lost)
        number = int.from_bytes(piece[_NUMBER_AT:DATAGRAM_HEAD], "big")
        if number > highest:
            lost += number - 1 - highest
            highest = number
        else:
            lost = max(0, lost - 1)
    return lost if least is None else min(least, lost)


def given_up(frames: pl.DataFrame) -> pl.Expr:
    """Frames that the adapter of their sender dropped, so that they were never on its wire."""
    ports = frames.filter(pl.col("view") == "sent").select("flow", "reply", fate_adapter="interface").unique()
    own = frames.filter(refused()).join(ports, on=["flow", "reply", "fate_adapter"], how="semi")
    return pl.col("row").is_in(own["row"].implode())


def open_connections(frames: pl.DataFrame, files: Files) -> Connections:
    """`frames` of TCP with flow, reply and view."""
    conns = tcp.connections(frames)
    placed = tcp.positions(frames, conns).with_columns(data=pl.col("tcp_length").cast(pl.Int64))
    return Connections(placed, tcp.sent_segments(placed), files)


def local_ports(result: Mapping[str, Any]) -> list[int]:
    """Of the client's streams, as its result lists them."""
    connected: Sequence[Mapping[str, Any]] = (result.get("start") or {}).get("connected") or []
    return [int(each.get("local_port") or 0) for each in connected]
