# SPDX-License-Identifier: Apache-2.0
"""UDP: which call each fragment belongs to, and which datagrams each call was sent in.

The first fragment names its call by ports and by what its protocol calls it. The others carry neither (RFC 791): they
belong to the datagram with the same source, destination and identification that is nearest in time, since
identifications come round again. Unfragmented packets need none, and Linux may send them with 0 (RFC 6864).
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from sundial.verify.sockets.flows import UDP, add_view, nearest_call
from sundial.verify.sockets.protocol import SocketProtocol

_WHOLE = 1 << 16
"""Added to the frame number of a datagram in one packet, above every identification."""


def attribute_udp(
    frames: pl.DataFrame,
    calls: pl.DataFrame,
    flows: pl.DataFrame,
    protocols: Mapping[str, SocketProtocol],
    exact_time: bool,
) -> pl.DataFrame:
    """UDP frames of the calls' flows with `call` (null: of none) and `data` (bytes above IP)."""
    calls = calls.filter(pl.col("transport") == "udp")
    udp = frames.filter(pl.col("protocol") == UDP).with_columns(
        data=(pl.col("ip_length") - pl.col("ip_header")).cast(pl.Int64)
    )
    heads = udp.filter(pl.col("flow").is_not_null(), pl.col("fragment_offset") == 0).with_columns(
        key=datagram_key(flows, protocols)
    )
    keyed = nearest_call(
        heads.filter(pl.col("key").is_not_null()),
        calls.filter(pl.col("key").is_not_null()),
        ("time_ns", "start_ns"),
        ["flow", "key"],
        exact_time,
    )
    ordered = nearest_call(
        heads.filter(pl.col("key").is_null()),
        calls.filter(pl.col("key").is_null()),
        ("time_ns", "start_ns"),
        ["flow"],
        exact_time,
    )
    matched = pl.concat([keyed.drop("start_ns"), ordered.drop("start_ns")]).drop("key")
    tails = udp.filter(pl.col("fragment_offset") > 0)
    first = matched.filter("more").select("source", "target", "ip_id", "time_ns", "flow", "reply", "call")
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


def datagram_key(flows: pl.DataFrame, protocols: Mapping[str, SocketProtocol]) -> pl.Expr:
    """What names its call in the first frame of a datagram, by the protocol of its flow."""
    key: pl.Expr = pl.lit(None, pl.Int64)
    for (name,), part in flows.group_by("protocol", maintain_order=True):
        spoken = pl.col("flow").is_in(part["flow"].implode())
        key = pl.when(spoken).then(protocols[str(name)].datagram_key()).otherwise(key)
    return key


def datagrams(frames: pl.DataFrame) -> pl.DataFrame:
    """One row a datagram seen at one end: call, reply, layout (see `legs.layout`), count, first_ns, last_ns, rows.

    Copies of a packet (the wire's duplicates, a sender's reuse of an identification) make datagrams of their own.
    """
    split = pl.col("more") | (pl.col("fragment_offset") > 0)
    name = ["call", "reply", "datagram", "copy"]
    return (
        frames.filter(pl.col("call").is_not_null())
        .with_columns(
            datagram=pl.when(split)
            .then(pl.col("ip_id").cast(pl.Int64))
            .otherwise(pl.col("frame").cast(pl.Int64) + _WHOLE),
            item=pl.concat_str(
                "fragment_offset", pl.lit(":"), "data", pl.when("more").then(pl.lit("+")).otherwise(pl.lit(""))
            ),
        )
        .sort("time_ns", "row")
        .with_columns(copy=pl.int_range(pl.len()).over("call", "reply", "datagram", "fragment_offset"))
        .group_by(name)
        .agg(
            layout=pl.col("item").sort_by("fragment_offset").str.join(","),
            count=pl.len(),
            first_ns=pl.col("time_ns").min(),
            last_ns=pl.col("time_ns").max(),
            rows=pl.col("row").sort_by("fragment_offset"),
        )
        .sort("call", "reply", "first_ns", "copy", "datagram")
    )
