# SPDX-License-Identifier: Apache-2.0
"""Record marks in TCP streams (RFC 5531 section 11).

Four bytes at positions that follow from one another, in the payloads as they are in the capture. Where each is the one
that is expected, in one segment, they are compared together; elsewhere a message's marks are read one after another.
"""

from __future__ import annotations

import re

import polars as pl

from sundial.observe import octets_of
from sundial.observe.headers import ETHERNET
from sundial.verify.findings import findings
from sundial.verify.sockets.protocol import Files, Message, Streams
from sundial.verify.sockets.stream import PLACES, NotRecorded, Stream, payloads

MARK = 4
LAST = 1 << 31


_CALL = bytes(4) + (2).to_bytes(4)
_REPLY = (1).to_bytes(4)
_MESSAGE = re.compile(b"(?=" + re.escape(_CALL) + b"|" + re.escape(_REPLY) + b"\\x00\\x00\\x00[\\x00\\x01])", re.DOTALL)
"""From the type of a message on (RFC 5531 section 9): a call of version 2; a reply, accepted or denied."""
_CREDENTIAL, _VERIFIER, _AUTHENTIC_MOST = 24, 12, 400
"""From the type of a call or reply on: how long its credential or verifier is; 400 bytes at most (section 8.2)."""
_XID, _HEAD = 4, 24
"""Bytes in front of the type; up to the procedure of a call, which is as much as the shortest reply has."""


def captured_record(stream: Stream, begin: int) -> Message | None:
    """The record at `begin` of a captured stream, if the message in it says that it is a call or a reply.

    Its marks are read as far as the capture goes. Raises NotRecorded.
    """
    fragments: list[int] = []
    head, length, at, last = b"", 0, begin, False
    while not last:
        mark = stream.need(at, MARK)
        if len(mark) < MARK:
            at += MARK
            break
        value = int.from_bytes(mark, "big")
        fragments.append(value & ~LAST)
        length += fragments[-1]
        last = bool(value & LAST)
        if fragments[-1] and len(head) < _HEAD:
            head += stream.read(at + MARK, min(fragments[-1], _HEAD - len(head)))
            if len(head) < min(length, 2 * _XID):
                stream.need(at + MARK, fragments[-1])
                return None
        at += MARK + fragments[-1]
    if last and length == 0:
        return Message(None, begin, at, 0, tuple(fragments))
    kind = int.from_bytes(head[_XID : 2 * _XID], "big")
    if len(head) < 2 * _XID or kind > 1:
        return None
    key, procedure = int.from_bytes(head[:_XID], "big"), head[5 * _XID : _HEAD]
    name = str(int.from_bytes(procedure, "big")) if kind == 0 and len(procedure) == 4 else "unknown"
    return Message(key, begin, at, length, tuple(fragments), bool(kind), name)


def find_record(stream: Stream, begin: int) -> int | None:
    """The first place from `begin` on where a record begins: its mark fits the message in it, the message has a
    credential or verifier as long as one may be, and what is behind it is another one, or not in the capture."""
    for place in stream.search(_MESSAGE, begin + MARK + _XID):
        at = place - MARK - _XID
        value = int.from_bytes(stream.read(at, MARK), "big")
        size = value & ~LAST
        authentic = place + (_CREDENTIAL if stream.read(place, MARK) == bytes(MARK) else _VERIFIER)
        if size < 2 * _XID or (value & LAST and size % 4):
            continue
        if int.from_bytes(stream.read(authentic, 4), "big") > _AUTHENTIC_MOST:
            continue
        try:
            message = captured_record(stream, at)
            if message and message.finish > stream.end and not value & LAST:
                continue
            if message and message.finish < stream.end and not stream.missing(message.finish, message.finish + 1):
                message = captured_record(stream, message.finish)
        except NotRecorded:
            return at
        if message:
            return at
    return None


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


def check_records(streams: Streams) -> pl.DataFrame:
    """Findings about the record marks of messages over TCP."""
    side = ["call", "reply"]
    table = streams.messages.join(
        streams.expected.select(*side, "payload", expected_records="records"), on=side, how="inner"
    ).filter(pl.col("bytes") == pl.col("payload"))
    table = table.join(_read(table, streams), on=side, how="left")
    wrong = pl.col("fragments").is_null() | (pl.col("fragments") != pl.col("expected_records"))
    seen = pl.col("fragments").fill_null("no record mark")
    return findings(table, wrong, "records", pl.col("expected_records"), seen)


def _read(messages: pl.DataFrame, streams: Streams) -> pl.DataFrame:
    """Fragment lengths from the marks of `messages`: call, reply, fragments."""
    side = ["call", "reply"]
    known = streams.places.select(*side, "begin").join(messages.select(*side, "expected_records"), on=side, how="inner")
    marks = known.select(*side, mark=_marks(), size=_sizes()).explode("mark", "size", empty_as_null=True)
    marks = marks.with_columns(last=pl.col("mark") == pl.col("mark").max().over(side))
    pieces = streams.segments.filter(pl.col("fresh") > 0).select(
        *side, "row", "capture", "frame", "pos", "stop", *PLACES
    )
    near = pieces.join(marks, on=side, how="inner").filter(
        pl.col("pos") < pl.col("mark") + MARK, pl.col("stop") > pl.col("mark")
    )
    others = known.join(_as_expected(near, marks, streams.files), on=side, how="anti")
    theirs = pieces.join(others, on=side, how="semi")
    data = payloads(streams.files, theirs.select("row", "capture", "frame", *PLACES).unique())
    pieces_of: dict[tuple[int, bool], set[tuple[int, bytes]]] = {}
    for call, reply, row, pos in theirs.select(*side, "row", "pos").iter_rows():
        pieces_of.setdefault((call, reply), set()).add((pos, data.get(row, b"")))
    rows = []
    for call, reply, begin, expected in others.select(*side, "begin", "expected_records").iter_rows():
        rows.append((call, reply, _seen(Stream(pieces_of.get((call, reply), ())), begin, expected)))
    schema = {"call": pl.UInt32, "reply": pl.Boolean, "fragments": pl.String}
    right = known.join(others, on=side, how="anti").select(*side, fragments="expected_records")
    return pl.concat([right, pl.DataFrame(rows, schema=schema, orient="row")])


def _seen(stream: Stream, begin: int, expected: str) -> str | None:
    """Fragment lengths of the record that should begin at `begin`. That a stream's positions are wrong is said
    elsewhere: a record is right too where the message begins with it."""
    found = [walk(stream, place) for place in (begin, stream.begin)]
    texts = [",".join(map(str, record[0])) for record in found if record]
    return expected if expected in texts else next(iter(texts), None)


def _as_expected(near: pl.DataFrame, marks: pl.DataFrame, files: Files) -> pl.DataFrame:
    """call and reply of messages each of whose marks is whole in each segment that has any of it, and the right one."""
    side = ["call", "reply"]
    at = pl.col("mark") - pl.col("pos") + ETHERNET + pl.col("ip_header").cast(pl.Int64) + pl.col("tcp_header")
    whole = (pl.col("pos") <= pl.col("mark")) & (pl.col("stop") >= pl.col("mark") + MARK)
    parts = []
    for part in near.with_columns(at=at, whole=whole).partition_by("capture"):
        octets = octets_of(part, files)
        seen = octets.number(part["at"].fill_null(-MARK).to_numpy(), MARK)
        there = octets.has((part["at"] + MARK).fill_null(1 << 32).to_numpy())
        expected = part.select(pl.col("size") + pl.when("last").then(LAST).otherwise(0)).to_series().to_numpy()
        parts.append(part.select(*side, "mark", right=pl.col("whole") & pl.Series((seen == expected) & there)))
    if not parts:
        return marks.select(side).clear()
    right = pl.concat(parts).group_by(*side, "mark").agg(pl.col("right").all())
    return (
        marks.join(right, on=[*side, "mark"], how="left")
        .group_by(side)
        .agg(pl.col("right").fill_null(False).all())
        .filter("right")
        .select(side)
    )


def _sizes() -> pl.Expr:
    """Lengths of the fragments of a record."""
    return pl.col("expected_records").str.split(",").cast(pl.List(pl.Int64))


def _marks() -> pl.Expr:
    """Stream positions of the marks of a record that begins at `begin`."""
    steps = _sizes().list.eval(pl.element().cum_sum().shift(1).fill_null(0) + pl.int_range(pl.len()) * MARK)
    return steps + pl.col("begin")
