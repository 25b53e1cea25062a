# SPDX-License-Identifier: Apache-2.0
"""Record marks in TCP streams (RFC 5531 section 11).

Four bytes at positions that follow from one another, in the payloads as they are in the capture. Where each is the one
that is expected, in one segment, they are compared together; elsewhere a message's marks are read one after another.
"""

from __future__ import annotations

import polars as pl

from sundial.observe import octets_of
from sundial.observe.headers import ETHERNET
from sundial.verify.decoders.records import LAST, MARK
from sundial.verify.findings import findings
from sundial.verify.sockets.protocol import Files, Streams
from sundial.verify.sockets.stream import PLACES, Stream, payloads


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
    # Few are the ways in which messages are cut into records.
    forms = known.select("expected_records").unique().with_columns(step=_steps(), size=_sizes())
    marks = (
        known.join(forms.explode("step", "size", empty_as_null=True), on="expected_records", how="left")
        .with_columns(mark=pl.col("begin") + pl.col("step"))
        .select(*side, "mark", "size")
    )
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


def _steps() -> pl.Expr:
    """Bytes from where a record begins to each of its marks."""
    return _sizes().list.eval(pl.element().cum_sum().shift(1).fill_null(0) + pl.int_range(pl.len()) * MARK)
