# SPDX-License-Identifier: Apache-2.0
"""UDP: which call each fragment belongs to, and which datagrams each call was sent in.

The first fragment names its call by ports and by what its protocol calls it. The others carry neither (RFC 791): they
belong to the datagram, of whichever flow, with the same source, destination and identification that is nearest in time,
since identifications come round again. Unfragmented packets need none, and Linux may send them with 0 (RFC 6864).

Names come round as well, and short payloads have none: among calls of one name, time decides where samples and captures
share a clock, and the order of the calls where they do not.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from sundial.verify.groups import number_of, once
from sundial.verify.sockets.flows import UDP, add_view, last_begun
from sundial.verify.sockets.protocol import SocketProtocol

_WHOLE = 1 << 16
"""Added to the frame number of a datagram in one packet, above every identification."""
_UNNAMED = -1
_PACKET = (
    "row", "capture", "interface", "end", "frame", "time_ns", "direction", "captured_length", "octets_begin", "source",
    "target", "ip_id", "more", "fragment_offset", "ip_header", "fate", "corrupted", "damaged", "flow", "reply", "view",
    "data",
)  # fmt: skip
"""What is needed of a frame once its call is known."""


def attribute_udp(
    frames: pl.DataFrame,
    calls: pl.DataFrame,
    flows: pl.DataFrame,
    protocols: Mapping[str, SocketProtocol],
    exact_time: bool,
    begun: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """UDP frames of the calls' flows with `call` (null: of none) and `data` (bytes above IP).

    `exact_time`: samples and captures share one clock, so that what a call's start says holds of its frames.
    `begun` (row, call) says which call the first frames of datagrams are of; without it that follows from names and
    time.
    """
    calls = calls.filter(pl.col("transport") == "udp")
    udp = frames.filter(pl.col("protocol") == UDP).with_columns(
        data=(pl.col("ip_length") - pl.col("ip_header")).cast(pl.Int64)
    )
    # A first fragment whose ports may have been hit belongs to the others of its number.
    later = (pl.col("fragment_offset") > 0) | (pl.col("more") & pl.col("damaged"))
    heads = udp.filter(pl.col("flow").is_not_null(), ~later).with_columns(key=datagram_key(flows, protocols))
    heads, udp = heads.select(*_PACKET, "key"), udp.select(_PACKET)
    if begun is None:
        # A join by time takes no null for a key, and no key is negative.
        heads, calls = (part.with_columns(pl.col("key").fill_null(_UNNAMED)) for part in (heads, calls))
        started = calls if exact_time else _begun_in_order(heads, calls)
        matched = last_begun(heads, started, ("time_ns", "start_ns"), ["flow", "key"]).drop("start_ns", "key")
    else:
        matched = heads.drop("key").join(begun, on="row", how="left", maintain_order="left")
    tails = udp.filter(later)
    others = udp.filter(~later, pl.col("flow").is_null())
    named = pl.concat([matched, others], how="diagonal").filter("more")
    first = named.select("source", "target", "ip_id", "time_ns", "flow", "reply", "call")
    tails = (
        tails.drop("flow", "reply")
        .sort("time_ns")
        .join_asof(
            first.sort("time_ns"),
            on="time_ns",
            by=["source", "target", "ip_id"],
            strategy="nearest",
            check_sortedness=False,
        )
    )
    tails = add_view(tails, flows)
    return pl.concat([matched, tails.select(matched.columns)]).sort("row")


def _begun_in_order(heads: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """Calls with `start_ns` on the captures' clock: when the first of their requests left the client's port.

    What a client has sent under one key, or without one, is given to its calls in their order: to each as many as it
    says it sent.
    """
    key = ["flow", "key"]
    turns = (
        calls.sort("start_ns", "id")
        .select(*key, "id", turn=pl.int_ranges(1 + pl.col("retransmits").fill_null(0).cast(pl.Int64)))
        .explode("turn")
        .with_columns(place=pl.int_range(pl.len()).over(key))
    )
    sent = (
        heads.filter(pl.col("view") == "sent", ~pl.col("reply"))
        .sort("time_ns", "row")
        .select(*key, "time_ns", place=pl.int_range(pl.len()).over(key))
    )
    begun = turns.join(sent, on=[*key, "place"], how="inner").group_by("id").agg(start_ns=pl.col("time_ns").min())
    return calls.select(*key, "id").join(begun, on="id", how="inner")


def datagram_key(flows: pl.DataFrame, protocols: Mapping[str, SocketProtocol]) -> pl.Expr:
    """What names its call in the first frame of a datagram, by the protocol of its flow."""
    key: pl.Expr = pl.lit(None, pl.Int64)
    for (name,), part in flows.group_by("protocol", maintain_order=True):
        spoken = pl.col("flow").is_in(part["flow"].implode())
        key = pl.when(spoken).then(protocols[str(name)].datagram_key()).otherwise(key)
    return key


def layout_item() -> pl.Expr:
    """A packet of a datagram in its layout."""
    more = pl.when("more").then(pl.lit("+")).otherwise(pl.lit(""))
    return pl.concat_str("fragment_offset", pl.lit(":"), "data", more)


def datagrams(frames: pl.DataFrame) -> pl.DataFrame:
    """One row a datagram seen at its sender: call, reply, layout (see `legs.layout`), count, first_ns, last_ns, rows.

    Where an identification is used again that is a datagram of its own.
    """
    name = ["call", "reply", "datagram", "copy"]
    item = layout_item()
    attributed = frames.filter(pl.col("call").is_not_null())
    split = pl.col("more") | (pl.col("fragment_offset") > 0)
    # Most datagrams are one packet, and then nothing has to be gathered; nor counted, where no other capture has
    # a frame of that number.
    several = pl.int_range(pl.len()).over("call", "reply", "frame", "fragment_offset", order_by=["time_ns", "row"])
    once = pl.col("frame").is_unique()
    whole = [
        attributed.filter(~split)
        .filter(which)
        .select(
            "call",
            "reply",
            datagram=pl.col("frame").cast(pl.Int64) + _WHOLE,
            copy=copy,
            layout=item,
            count=pl.lit(1, pl.get_index_type()),
            first_ns="time_ns",
            last_ns="time_ns",
            rows=pl.concat_list("row"),
        )
        for which, copy in ((once, pl.lit(0, pl.Int64)), (~once, several))
    ]
    pieces = (
        attributed.filter(split)
        .select(
            "call", "reply", "fragment_offset", "time_ns", "row", datagram=pl.col("ip_id").cast(pl.Int64), item=item
        )
        .pipe(_with_copies)
        .sort("fragment_offset")
        .group_by(name)
        .agg(
            layout=pl.col("item").str.join(","),
            count=pl.len(),
            first_ns=pl.col("time_ns").min(),
            last_ns=pl.col("time_ns").max(),
            rows=pl.col("row"),
        )
    )
    return pl.concat([*whole, pieces]).sort("call", "reply", "first_ns", "copy", "datagram")


def _with_copies(fragments: pl.DataFrame) -> pl.DataFrame:
    """Adds `copy`: which time a fragment of a datagram was seen, from 0; nearly all are seen once."""
    key = ["call", "reply", "datagram", "fragment_offset"]
    if once(fragments.select(number_of(*key)).to_series()).all():
        return fragments.with_columns(copy=pl.lit(0, pl.Int64))
    return fragments.sort("time_ns", "row").with_columns(copy=pl.int_range(pl.len()).over(key))
