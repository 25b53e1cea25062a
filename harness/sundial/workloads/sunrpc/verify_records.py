# SPDX-License-Identifier: Apache-2.0
"""Record marks in TCP streams (RFC 5531 section 11).

tshark reports the fragments of a record with the frame in which they end. It does not report a record whose last
fragment is empty as a message, nor the reply to it, so that what it leaves out is read from the marks themselves: four
bytes at positions that follow from one another, in the payloads as they are in the capture.
"""

from __future__ import annotations

import re

import polars as pl

from sundial.verify.findings import findings
from sundial.verify.sockets.protocol import Message, Streams
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
    table = (
        streams.messages.join(
            streams.expected.select(*side, "payload", expected_records="records"), on=side, how="inner"
        )
        .filter(pl.col("bytes") == pl.col("payload"))
        .with_columns(fragments=_dissected())
    )
    read = _read(table.filter(pl.col("fragments").is_null()), streams)
    table = table.join(read, on=side, how="left").with_columns(fragments=pl.coalesce("fragments", "read"))
    wrong = pl.col("fragments").is_null() | (pl.col("fragments") != pl.col("expected_records"))
    seen = pl.col("fragments").fill_null("no record mark")
    return findings(table, wrong, "records", pl.col("expected_records"), seen)


def _dissected() -> pl.Expr:
    """Fragment lengths as tshark gave them, null where it did not give a whole record."""
    whole = pl.col("lasts").str.ends_with("1") & (pl.col("lasts").str.count_matches("1") == 1)
    return pl.when(whole).then("records")


def _read(unsaid: pl.DataFrame, streams: Streams) -> pl.DataFrame:
    """The same from the marks, for the messages in `unsaid`: call, reply, read."""
    side = ["call", "reply"]
    schema = {"call": pl.UInt32, "reply": pl.Boolean, "read": pl.String}
    if unsaid.is_empty():
        return pl.DataFrame(schema=schema)
    known = streams.places.select(*side, "begin").join(unsaid.select(*side, "expected_records"), on=side, how="inner")
    marks = known.select(*side, mark=_marks()).explode("mark", empty_as_null=True)
    pieces = streams.segments.filter(pl.col("fresh") > 0).select(
        *side, "row", "capture", "frame", "pos", "stop", *PLACES
    )
    near = pieces.join(marks, on=side, how="inner").filter(
        pl.col("pos") < pl.col("mark") + MARK, pl.col("stop") > pl.col("mark")
    )
    data = payloads(streams.files, near.select("row", "capture", "frame", *PLACES).unique())
    pieces_of: dict[tuple[int, bool], set[tuple[int, bytes]]] = {}
    for call, reply, row, pos in near.select(*side, "row", "pos").iter_rows():
        pieces_of.setdefault((call, reply), set()).add((pos, data.get(row, b"")))
    rows = []
    for call, reply, begin in known.select(*side, "begin").iter_rows():
        record = walk(Stream(pieces_of.get((call, reply), ())), begin)
        rows.append((call, reply, ",".join(map(str, record[0])) if record else None))
    return pl.DataFrame(rows, schema=schema, orient="row")


def _marks() -> pl.Expr:
    """Stream positions of the marks of a record that begins at `begin`."""
    lengths = pl.col("expected_records").str.split(",").cast(pl.List(pl.Int64))
    steps = lengths.list.eval(pl.element().cum_sum().shift(1).fill_null(0) + pl.int_range(pl.len()) * MARK)
    return steps + pl.col("begin")
