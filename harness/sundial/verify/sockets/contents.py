# SPDX-License-Identifier: Apache-2.0
"""What requests and replies say, byte by byte, where they are sent: every fragment and segment, each time it is sent.

Which bytes a message must have, its protocol knows (`SocketProtocol.content`). Messages that are alike but for their
numbers are compared together. That what arrives is what was sent is `headers`' matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from sundial.expect import Call
from sundial.expect.ip import ETHERNET_HEADER, UDP_HEADER
from sundial.observe import octets_of
from sundial.observe.octets import Numbers
from sundial.verify.findings import Finding, as_table, none
from sundial.verify.frames import turn
from sundial.verify.sockets.protocol import Bytes, Files, Part, Setting, SocketProtocol

_AT_ONCE = 1_000_000
"""Bytes that are compared at once."""
_SHOWN = 8
"""Bytes of a difference that a finding shows."""
_NUMBERS = ("xid", "number", "attempt", "retransmits")

UNPROVEN: tuple[str, ...] = (
    "the content of calls in a capture from elsewhere (--pcap), beyond what names them",
    "the stamp of AUTH_SYS credentials, which is the client's own",
)


def datagram_pieces(frames: pl.DataFrame, datagrams: pl.DataFrame) -> pl.DataFrame:
    """Frames that carry pieces of datagrams: row, call, reply, attempt, begin (in the message), at (in the frame)
    and length.

    `datagrams`: theirs; `attempt` counts those of a call and direction in the order in which they were sent.
    """
    attempts = (
        datagrams.sort("call", "reply", "first_ns", "copy", "datagram")
        .with_columns(attempt=turn("call", "reply"))
        .select("attempt", row="rows")
        .explode("row")
    )
    first = pl.col("fragment_offset") == 0
    head = pl.when(first).then(UDP_HEADER).otherwise(0)
    return (
        frames.join(attempts, on="row", how="inner")
        .with_columns(
            begin=pl.col("fragment_offset").cast(pl.Int64) - UDP_HEADER + head,
            at=ETHERNET_HEADER + pl.col("ip_header").cast(pl.Int64) + head,
            length=pl.col("data") - head,
        )
        .select(_PIECE)
    )


def stream_pieces(segments: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    """The same of segments with `pos` and `data`; one that holds bytes of several messages gives a piece of each."""
    here = (
        places.select("conn", "reply", "call", "begin", "finish")
        .sort("conn", "reply", "begin")
        .with_columns(place=pl.int_range(pl.len()).over("conn", "reply"))
    )
    data = segments.with_columns(stop=pl.col("pos") + pl.col("data"))
    side = ["conn", "reply"]
    low, high = (here.select(*side, "begin", pl.col("place").alias(name)).sort("begin") for name in ("low", "high"))
    data = (
        data.drop("call")
        .sort("pos")
        .join_asof(
            low,
            left_on="pos",
            right_on="begin",
            by=side,
            check_sortedness=False,
        )
        .drop("begin")
        .with_columns(last=pl.col("stop") - 1)
        .sort("last")
        .join_asof(
            high,
            left_on="last",
            right_on="begin",
            by=side,
            check_sortedness=False,
        )
        .drop("begin")
        .with_columns(place=pl.int_ranges(pl.col("low").fill_null(0), pl.col("high") + 1))
        .filter(pl.col("high").is_not_null())
        .explode("place")
        .join(here, on=["conn", "reply", "place"], how="inner")
        .with_columns(first=pl.max_horizontal("pos", "begin"), end=pl.min_horizontal("stop", "finish"))
        .filter(pl.col("first") < pl.col("end"))
    )
    payload = ETHERNET_HEADER + pl.col("ip_length").cast(pl.Int64) - pl.col("data")
    return data.select(
        "row",
        "capture",
        "octets_begin",
        "captured_length",
        "call",
        "reply",
        attempt=pl.lit(0, pl.Int64),
        begin=pl.col("first") - pl.col("begin"),
        at=payload + pl.col("first") - pl.col("pos"),
        length=pl.col("end") - pl.col("first"),
    )


_PIECE = ("row", "capture", "octets_begin", "captured_length", "call", "reply", "attempt", "begin", "at", "length")


def check_contents(
    pieces: pl.DataFrame,
    calls: pl.DataFrame,
    legs: pl.DataFrame,
    collected: pl.DataFrame,
    expected: Sequence[Call],
    settings: Sequence[Setting],
    protocols: Mapping[str, SocketProtocol],
    files: Files,
) -> pl.DataFrame:
    """A finding for each piece whose bytes are not those that the call must have.

    `legs`: records of each kind and direction; `collected`: call and records of requests that share segments.
    """
    whole = pl.col("at") + pl.col("length") <= pl.col("captured_length")
    table = (
        pieces.filter(pl.col("length") > 0, whole)
        .join(
            calls.select(
                "protocol", "transport", "procedure", "size", "kind", "setting", "xid", "retransmits",
                number="call", call="id",
            ),
            on="call",
            how="inner",
        )
        .join(legs.select("kind", "reply", "records", "payload"), on=["kind", "reply"], how="left")
        .join(collected.select("call", reply=pl.lit(False), own="records"), on=["call", "reply"], how="left")
        .with_columns(records=pl.coalesce("own", "records"))
    )  # fmt: skip
    parts = [none()]
    for (capture,), captured in table.group_by("capture", maintain_order=True):
        octets, read = octets_of(captured.head(1), [file for file in files if file[1] == capture]), 0
        alike = ["protocol", "kind", "reply", "records", "begin", "length"]
        # In order, groups are slices of columns: polars has its price for each, and groups may have few pieces.
        placed = captured.with_row_index("place")
        ordered = placed.with_columns(group=pl.col("place").min().over(alike)).sort("group", "place")
        numbers = {name: ordered[name].cast(pl.Int64).fill_null(0).to_numpy() for name in _NUMBERS}
        starts = (ordered["octets_begin"] + ordered["at"]).to_numpy()
        firsts = np.flatnonzero(np.diff(ordered["group"].cast(pl.Int64).to_numpy(), prepend=-1)).tolist()
        for like, first, end in zip(
            ordered[firsts].iter_rows(named=True), firsts, [*firsts[1:], ordered.height], strict=True
        ):
            height = max(1, _AT_ONCE // like["length"])
            for at in range(first, end, height):
                some = slice(at, min(at + height, end))
                part = _part(like, {name: values[some] for name, values in numbers.items()}, expected, settings)
                seen = np.lib.stride_tricks.sliding_window_view(np.asarray(octets.data), part.length)[starts[some]]
                right = protocols[like["protocol"]].content(part, seen)
                if right is not None and not np.array_equal(seen, right):
                    pieces = ordered[some]
                    parts.append(as_table(_differences(pieces, part, protocols[like["protocol"]], seen, right)))
                read += (some.stop - some.start) * part.length
                if read > _AT_ONCE:
                    octets.forget()
                    read = 0
    return pl.concat(parts)


def _part(
    like: Mapping[str, Any], numbers: dict[str, Numbers], expected: Sequence[Call], settings: Sequence[Setting]
) -> Part:
    """Of pieces of messages that are alike, at one place in them."""
    return Part(
        like["transport"],
        like["procedure"],
        like["size"],
        like["reply"],
        like["begin"],
        like["length"],
        tuple(int(each) for each in like["records"].split(",") if each),
        expected[like["kind"]],
        settings[like["setting"]].options,
        numbers,
    )


def _differences(
    pieces: pl.DataFrame, part: Part, protocol: SocketProtocol, seen: Bytes, right: Bytes
) -> Iterator[Finding]:
    wrong = seen != np.broadcast_to(right, seen.shape)
    way = "reply" if part.reply else "request"
    for place in np.flatnonzero(wrong.any(axis=1)):
        first = int(np.argmax(wrong[place]))
        at = part.begin + first
        shown = slice(first, first + _SHOWN)
        row, call = pieces["row"][int(place)], pieces["call"][int(place)]
        yield Finding(
            call,
            f"{way}.content.{protocol.content_field(part, at)}",
            f"{bytes(right[place if len(right) > 1 else 0, shown]).hex(' ')} at byte {at}",
            bytes(seen[place, shown]).hex(" "),
            [row],
        )
