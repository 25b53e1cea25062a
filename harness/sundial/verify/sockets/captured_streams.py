# SPDX-License-Identifier: Apache-2.0
"""Calls over TCP that a capture from elsewhere shows: streams are read from message to message, wherever TCP cut them.

What is compared is whether messages are whole and answered. Where a stream does not go on with a message (the capture
begins within one, or lacks bytes), that is one finding, and reading goes on at the next place that is one for certain.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from typing import Any

import polars as pl

from sundial.errors import BadInput
from sundial.verify.findings import Finding, as_table, findings
from sundial.verify.sockets import tcp
from sundial.verify.sockets.flows import TCP
from sundial.verify.sockets.protocol import Files, Message, SocketProtocol, Units
from sundial.verify.sockets.stream import PLACES, NotRecorded, Stream, payloads

CALLS: dict[str, pl.DataType | type[pl.DataType]] = {
    "flow": pl.UInt32,
    "key": pl.Int64,
    "start_ns": pl.Int64,
    "request": pl.Int64,
    "reply_message": pl.Int64,
    "procedure": pl.String,
    "request_payload": pl.Int64,
    "reply_payload": pl.Int64,
    "request_records": pl.List(pl.Int64),
    "reply_records": pl.List(pl.Int64),
    "first_frame": pl.UInt32,
}
"""What is derived of each call: message lengths in bytes, what the transport carries of each, and the fragments of its
records where they are marked.

`reply_message` and `reply_payload` are null where the capture shows no reply.
"""
_PLACES = {"conn": pl.UInt32, "reply": pl.Boolean, "call": pl.UInt32, "begin": pl.Int64, "finish": pl.Int64}
_SEEK = 1000
"""Segments of one direction in which the first message is looked for."""
_NEVER = 1 << 62
_WRAP, _HALF = 1 << 32, 1 << 31


@dataclass(frozen=True)
class Gap:
    """Bytes of a stream that are not part of a message that is read, and what they are; empty: no fault."""

    begin: int
    finish: int
    what: str


def read(stream: Stream, protocol: Units, opened: bool, name: str) -> Iterator[Message | Gap]:
    """The messages of a stream and what is between them. `opened`: it is captured from its first byte on; `name`: of
    its sender. Raises NotRecorded."""
    at = 0 if opened else stream.begin
    if not opened and stream.begin < stream.end:
        first = protocol.find(stream, at)
        begin = stream.end if first is None else first
        if begin > at:
            # A probe of an idle connection repeats the last byte that was acknowledged (RFC 9293 section 3.8.4).
            probe = begin == at + 1
            yield Gap(at, begin, "" if probe else f"begins within a {protocol.unit} of {name}: {begin - at} bytes")
        at = begin
    elif stream.begin < 0:
        yield Gap(stream.begin, 0, "")
    while at < stream.end:
        message = protocol.parse(stream, at)
        if message is not None and message.key is not None:
            yield message
            at = message.finish
            continue
        if message is not None:
            yield Gap(at, message.finish, f"record without bytes of {name} at byte {at}")
            at = message.finish
            continue
        found = protocol.find(stream, at + 1)
        finish = stream.end if found is None else found
        lost = stream.missing(at, finish)
        if lost:
            what = f"{lost} bytes of {name} from byte {at} on are not in the capture"
        elif found is None and finish - at < 8:
            what = f"ends within a {protocol.unit} of {name}: {finish - at} bytes"
        else:
            what = f"{finish - at} bytes of {name} from byte {at} on that are not a {protocol.unit}"
        yield Gap(at, finish, what)
        at = finish


@dataclass
class Found:
    """`places` (conn, reply, call, begin, finish): where messages are; `explained`: rows of frames that a finding
    names, or that hold nothing; `replies`: how many there are."""

    calls: pl.DataFrame
    places: pl.DataFrame
    findings: pl.DataFrame
    explained: list[int]
    replies: int


@dataclass
class _Side:
    """One direction of a connection."""

    segments: list[tuple[int, int, int, int, int]]
    """Position, time, row, frame and length of each, in this order."""
    stream: Stream
    messages: list[Message] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)

    @cached_property
    def longest(self) -> int:
        """Bytes of the longest segment."""
        return max((segment[-1] for segment in self.segments), default=0)

    def rows(self, begin: int, finish: int) -> list[int]:
        """Frames with bytes of the stretch."""
        some = self.segments[bisect_right(self.segments, (begin - self.longest,)) :]
        return [row for pos, _, row, _, size in takewhile(lambda each: each[0] < finish, some) if pos + size > begin]

    def began(self, begin: int) -> tuple[int, int]:
        """When the byte there was sent last, and in which frame."""
        _, at, _, frame, _ = self.segments[bisect_right(self.segments, (begin, _NEVER)) - 1]
        return at, frame


def calls_of(frames: pl.DataFrame, protocol: SocketProtocol, files: Files) -> Found:
    """Calls of frames with `flow`. Raises BadInput where the capture has cut off what must be read."""
    conns = tcp.connections(frames, from_midstream=True)
    located = tcp.positions(frames, conns).filter(pl.col("view") == "sent")
    segments = located.filter(pl.col("tcp_length") > 0, pl.col("pos").is_not_null())
    opened = set(
        located.filter(pl.col("tcp_flags") & tcp.SYN != 0).select("conn", "reply").drop_nulls().unique().iter_rows()
    )
    data = payloads(files, segments.select("row", "capture", "frame", *PLACES))
    made = _Made(protocol.unit)
    for (conn,), part in segments.sort("conn", "row").group_by("conn", maintain_order=True):
        sides = {}
        for reply in (False, True):
            own = part.filter(pl.col("reply") == reply)
            sides[reply] = _side(own, data, protocol, (conn, reply) in opened, files)
        made.add(int(conn), int(part["flow"][0]), sides)
    return Found(
        pl.DataFrame(made.calls, schema=CALLS, orient="row"),
        pl.DataFrame(made.places, schema=_PLACES, orient="row"),
        as_table(made.findings),
        made.explained,
        made.replies,
    )


def _side(
    segments: pl.DataFrame, data: Mapping[int, bytes], protocol: SocketProtocol, opened: bool, files: Files
) -> _Side:
    rows = sorted(segments.select("pos", "time_ns", "row", "frame", "tcp_length").iter_rows())
    pieces = ((pos, data.get(row, b"")) for pos, _, row, _, _ in rows)
    side = _Side(rows, Stream(pieces, ((pos, pos + size) for pos, *_, size in rows)))
    if not rows:
        return side
    sender = f"{segments['source'][0]}:{segments['source_port'][0]}"
    try:
        for each in read(side.stream, protocol, opened, sender):
            if isinstance(each, Message):
                side.messages.append(each)
            else:
                side.gaps.append(each)
    except NotRecorded:
        cut = segments.filter(pl.col("captured_length") < pl.col("frame_length")).sort("frame")
        raise BadInput(
            f"is cut to {cut['captured_length'][0]} bytes, before a message that must be read",
            file=str(files[0][0]), allowed="a capture of whole frames", field=f"frame {cut['frame'][0]}",
        ) from None  # fmt: skip
    return side


class _Made:
    """Rows of the tables of `Found`, connection by connection."""

    def __init__(self, unit: str) -> None:
        self.unit = unit
        self.calls: list[tuple[Any, ...]] = []
        self.places: list[tuple[Any, ...]] = []
        self.findings: list[Finding] = []
        self.explained: list[int] = []
        self.replies = 0

    def add(self, conn: int, flow: int, sides: Mapping[bool, _Side]) -> None:
        answers = {way: defaultdict[int | None, deque[Message]](deque) for way in sides}
        asks: list[tuple[bool, Message]] = []
        for way, side in sides.items():
            for message in side.messages:
                if way if message.reply is None else message.reply:
                    answers[way][message.key].append(message)
                    self.replies += 1
                else:
                    asks.append((way, message))
        for way, message in asks:
            waiting = answers[not way][message.key]
            self._call(conn, flow, sides, way, message, waiting.popleft() if waiting else None)
        for way, side in sides.items():
            for gap in side.gaps:
                rows = side.rows(gap.begin, gap.finish)
                self.explained += rows
                if gap.what:
                    # Of bytes that are not there, the frames around them.
                    near = rows or side.rows(gap.begin - 1, gap.finish + 1)
                    self._find(None, "stream", f"whole {self.unit}s", gap.what, near)
            # What is not read of the other direction may have asked.
            unread = any(gap.what for gap in sides[not way].gaps)
            for message in (each for waiting in answers[way].values() for each in waiting):
                rows = side.rows(message.begin, message.finish)
                self.explained += rows
                if not unread:
                    self._find(None, "reply without a call", "none", f"xid 0x{message.key:08x}", rows)

    def _call(
        self, conn: int, flow: int, sides: Mapping[bool, _Side], way: bool, asked: Message, answer: Message | None
    ) -> None:
        number = len(self.calls)
        start_ns, frame = sides[way].began(asked.begin)
        places = {way: asked} | ({not way: answer} if answer else {})
        whole = True
        for side, message in places.items():
            self.places.append((conn, side, number, message.begin, message.finish))
            lost = sides[side].stream.missing(message.begin, message.finish)
            if lost:
                size = message.finish - message.begin
                leg = "request" if message is asked else "reply"
                rows = sides[side].rows(message.begin, message.finish)
                self._find(number, f"{leg}.bytes", str(size), str(size - lost), rows)
                whole = False
        if answer is None and whole and not any(gap.what for gap in sides[not way].gaps):
            self._find(number, "reply.received", "1 complete", "none", [])
        # By direction: what the server of the connection asks back is answered by its client.
        out, back = places.get(False), places.get(True)
        self.calls.append(
            (
                flow,
                asked.key,
                start_ns,
                out.length if out else 0,
                back.length if back else None,
                asked.procedure,
                out.finish - out.begin if out else 0,
                back.finish - back.begin if back else None,
                list(out.fragments) if out else [],
                list(back.fragments) if back else [],
                frame,
            )
        )

    def _find(self, call: int | None, name: str, expected: str, seen: str, rows: Iterable[int]) -> None:
        self.findings.append(Finding(call, name, expected, seen, list(rows)))


def check_sizes(frames: pl.DataFrame, mtu: int | None) -> pl.DataFrame:
    """A finding for each direction of a connection with segments that are longer than its receiver's MSS allows: they
    were cut behind the place of the capture. `mtu`: of the wire, where it is known."""
    conns = tcp.connections(frames, from_midstream=True)
    segments = tcp.positions(frames, conns).filter(pl.col("view") == "sent", pl.col("tcp_length") > 0)
    offered = pl.when("reply").then("client_mss").otherwise("server_mss")
    limit = pl.min_horizontal(offered.cast(pl.Int64), pl.lit(None if mtu is None else mtu - _HEADERS, pl.Int64))
    size = pl.col("tcp_length").cast(pl.Int64)
    longer = (
        segments.join(conns.select("conn", "client_mss", "server_mss"), on="conn", how="left")
        .with_columns(limit=limit, size=size)
        .filter(pl.col("size") > pl.col("limit"))
        .group_by("conn", "reply", "source", "source_port", "limit")
        .agg(pl.len(), pl.col("size").max(), rows=pl.col("row").sort())
        .sort("conn", "reply")
        .with_columns(call=pl.lit(None, pl.UInt32))
    )
    seen = "{} of up to {} bytes from {}:{}: segmentation offload (the adapter cuts or joins them)"
    return findings(
        longer,
        pl.lit(True),
        pl.lit("segments"),
        pl.format("at most {} bytes", "limit"),
        pl.format(seen, "len", "size", "source", "source_port"),
    )


_HEADERS = 40
"""Of IP and TCP without options."""


def conversations(frames: pl.DataFrame, protocol: Units, files: Files) -> pl.DataFrame:
    """Connections whose beginning holds a message of the protocol: source, source_port, target, target_port of what
    goes to the server, and `asked`: whether there is a request."""
    ends = ["source", "source_port", "target", "target_port"]
    carried = frames.filter(pl.col("protocol") == TCP, pl.col("source").is_not_null())
    held = carried.filter(pl.col("tcp_length") > 0)
    held = held.filter(pl.int_range(pl.len()).over(ends) < _SEEK)
    data = payloads(files, held.select("row", "capture", "frame", *PLACES))
    syn = carried.filter(pl.col("tcp_flags") & (tcp.SYN | tcp.ACK) == tcp.SYN)
    opened = set(syn.select(ends).unique().iter_rows())
    found: dict[frozenset[Any], tuple[tuple[Any, ...], bool]] = {}
    for way, part in held.group_by(ends, maintain_order=True):
        seqs = part.select("tcp_seq", "row").rows()
        stream = Stream(((seq - seqs[0][0] + _HALF) % _WRAP - _HALF, data.get(row, b"")) for seq, row in seqs)
        asked, pair = _asks(stream, protocol), frozenset((way[:2], way[2:]))
        if asked is None or found.get(pair, (way, False))[1]:
            continue
        # What opens a connection is the client, though both may ask.
        back = (*way[2:], *way[:2])
        found[pair] = (way if way in opened or (asked and back not in opened) else back), asked
    schema = {name: frames.schema[name] for name in ends} | {"asked": pl.Boolean()}
    return pl.DataFrame([(*way, asked) for way, asked in found.values()], schema=schema, orient="row")


def _asks(stream: Stream, protocol: Units) -> bool | None:
    """Whether there is a message in it that is not a reply; None: there is no message."""
    at, found = protocol.find(stream, stream.begin), None
    while at is not None and not found:
        try:
            message = protocol.parse(stream, at)
        except NotRecorded:
            break
        if message is None:
            break
        found = not message.reply
        at = protocol.find(stream, message.finish)
    return found
