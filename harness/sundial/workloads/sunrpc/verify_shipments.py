# SPDX-License-Identifier: Apache-2.0
"""One-way calls over TCP, which the library collects and sends together.

Their records share writes, and so segments, with those beside them. So a batch is verified as a whole: one record for
each call, in their order, each with its xid, its fragments and its place in the stream, and one for the call with a
reply that ended the batch; and the segments of them all. That the others were not answered follows from the stream of
the other direction, which must hold that last reply and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from sundial.expect import Call
from sundial.expect.tcp import most_segments, segment_size, tcp_segments
from sundial.verify.decoders.records import MARK
from sundial.verify.findings import Finding, as_table, none
from sundial.verify.sockets.protocol import Setting, Streams
from sundial.verify.sockets.stream import PLACES, Stream, payloads
from sundial.workloads.sunrpc.expect import Options, ends_in_word, record_buffer, shipped_records
from sundial.workloads.sunrpc.verify_records import walk

SHIPPED: dict[str, type[pl.DataType]] = {
    "call": pl.UInt32,
    "shipment": pl.UInt32,
    "payload": pl.Int64,
    "records": pl.String,
    "xid": pl.Int64,
    "layout": pl.String,
    "exact": pl.Boolean,
    "fewest": pl.UInt32,
    "most": pl.UInt32,
    "largest": pl.UInt32,
    "over": pl.Boolean,
}
"""One row a call of a batch, in order: its bytes of the stream and its record fragments; then the segments that are
expected of the whole shipment, and whether it has succeeded: of one that failed any beginning may have been sent."""


def one_way(settings: Sequence[Setting]) -> list[int]:
    """Places of the settings of one-way calls."""
    return [
        place
        for place, setting in enumerate(settings)
        if isinstance(setting.options, Options) and setting.options.one_way
    ]


def shipments(calls: pl.DataFrame, expected: Sequence[Call], settings: Sequence[Setting]) -> pl.DataFrame:
    """What is to be sent of each batch of one-way calls over TCP (SHIPPED); `calls` with `kind` and `conn`."""
    batches = (
        calls.filter(pl.col("transport") == "tcp", pl.col("setting").is_in(one_way(settings)))
        .sort("client", "batch", "id")
        .partition_by("client", "batch", maintain_order=True)
    )
    rows: list[tuple[Any, ...]] = []
    for number, batch in enumerate(batches):
        calls_of = batch.to_dicts()
        messages = [
            (expected[row["kind"]].request.message, ends_in_word(row["procedure"], row["size"])[0]) for row in calls_of
        ]
        first = calls_of[0]
        setting = settings[first["setting"]]
        assert isinstance(setting.options, Options)
        records, writes = shipped_records(messages, record_buffer(setting.options.request_buffer))
        size = segment_size(first["request_mtu"], first["timestamps"], first["server_mss"])
        whole = tcp_segments(writes, size, first["timestamps"])
        over = bool(batch["ok"].all())
        layout = ",".join(str(packet.data) for packet in whole.packets)
        window = setting.window
        exact, fewest = (whole.exact and window is None, whole.fewest) if over else (False, 0)
        most = whole.most
        if window is not None:
            most = max(most, most_segments((packet.data for packet in whole.packets), window))
        for row, fragments in zip(calls_of, records, strict=True):
            rows.append(
                (
                    row["id"], number, sum(fragments) + MARK * len(fragments), ",".join(map(str, fragments)),
                    row["xid"], layout, exact, fewest, most, whole.largest, over,
                )
            )  # fmt: skip
    return pl.DataFrame(rows, schema=SHIPPED, orient="row")


def check_shipments(streams: Streams) -> pl.DataFrame:
    """Findings about their records and segments."""
    shipped = streams.collected
    if shipped.is_empty():
        return none()
    table = shipped.join(streams.places.filter(~pl.col("reply")), on="call", how="left").sort("shipment", "call")
    conns = table["conn"].unique().implode()
    segments = streams.segments.filter(~pl.col("reply"), pl.col("conn").is_in(conns))
    data = payloads(streams.files, segments.select("row", "capture", "frame", *PLACES))
    rows: list[Finding] = []
    for part in table.partition_by("shipment", maintain_order=True):
        begin, finish = part["begin"].min(), part["finish"].max()
        sent = segments.filter(
            pl.col("conn") == part["conn"][0], pl.col("pos") >= begin, pl.col("pos") < finish
        ).sort("pos", "row")  # fmt: skip
        stream = Stream((pos, data.get(row, b"")) for pos, row in sent.select("pos", "row").iter_rows())
        rows += _segments(part.row(0, named=True), sent)
        rows += _records(part, stream, sent["row"].to_list())
    return as_table(rows)


def _segments(expected: dict[str, Any], sent: pl.DataFrame) -> Iterator[Finding]:
    fresh = sent.filter(pl.col("fresh") > 0)
    lengths = fresh["fresh"].to_list()
    layout = ",".join(map(str, lengths))
    if expected["exact"] and fresh.height == sent.height:
        right, text = layout == expected["layout"], expected["layout"]
    else:
        right = (
            expected["fewest"] <= len(lengths) <= expected["most"] and max(lengths, default=0) <= expected["largest"]
        )
        text = f"{expected['fewest']} to {expected['most']} segments of at most {expected['largest']} bytes"
    if not right:
        yield Finding(expected["call"], "batch.segments", text, layout, sent["row"].to_list())


def _records(part: pl.DataFrame, stream: Stream, rows: list[int]) -> Iterator[Finding]:
    """Each record where the one before ends; the first that is wrong ends it, for what follows cannot be found."""
    for call, begin, records, xid, over in part.select("call", "begin", "records", "xid", "over").iter_rows():
        record = walk(stream, begin)
        if record is None and not over:
            return
        if record is None:
            yield Finding(call, "request.records", records, "no whole record", rows)
            return
        seen = ",".join(map(str, record[0]))
        if seen != records:
            yield Finding(call, "request.records", records, seen, rows)
            return
        named = int.from_bytes(stream.read(begin + MARK, MARK), "big")
        if named != xid:
            yield Finding(call, "request.xid", str(xid), str(named), rows)
