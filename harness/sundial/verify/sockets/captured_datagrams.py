# SPDX-License-Identifier: Apache-2.0
"""Calls over UDP that a capture from elsewhere shows: whose datagram each is, and which datagrams are one call.

The type of a message decides whether it is a request or a reply, whatever its ports are. Replies are found by their
name, wherever they come from and whenever they are stamped: an adapter's queues have no common clock.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from sundial.verify.findings import findings
from sundial.verify.learning import GROUP_BIT
from sundial.verify.sockets.flows import UDP
from sundial.verify.sockets.protocol import SocketProtocol

_SHOWN = (
    "row", "frame", "end", "time_ns", "source", "source_port", "target", "target_port", "udp_length", "udp_head",
    "udp_checksum", "captured_length", "frame_length", "eth_target",
)  # fmt: skip
ENDS = ("client_address", "client_port", "server_address", "server_port")


def messages(frames: pl.DataFrame, protocol: SocketProtocol) -> pl.DataFrame:
    """First frames of datagrams with `type`, `key`, `procedure`, `reply` and the ends of their calls.

    Where neither message nor port says which end is the server, it is the one that was sent to first.
    """
    heads = frames.filter(
        pl.col("protocol") == UDP,
        pl.col("fragment_offset") == 0,
        pl.col("source").is_not_null(),
        pl.col("source_port").is_not_null(),
    )
    # The datagram in the order of its ends: both ways are one conversation.
    ends = pl.concat_str("source", pl.lit(":"), "source_port"), pl.concat_str("target", pl.lit(":"), "target_port")
    heads = heads.select(
        *_SHOWN,
        type=protocol.datagram_type(),
        key=protocol.datagram_key(),
        procedure=protocol.captured_procedure().fill_null("echo"),
        here=ends[0],
        there=ends[1],
    )
    pair = [pl.min_horizontal("here", "there"), pl.max_horizontal("here", "there")]
    began = pl.col("here").sort_by("time_ns", "row").first().over(pair)
    heads = heads.with_columns(began=pl.col("here") == began)
    asks = pl.when(pl.col("type").is_in(["request", "reply"])).then(pl.col("type") == "request")
    return heads.with_columns(reply=~pl.coalesce(asks, "began")).drop("here", "there", "began").pipe(_with_ends)


def _with_ends(heads: pl.DataFrame) -> pl.DataFrame:
    return heads.with_columns(
        pl.when("reply").then(f"{there}{what}").otherwise(f"{here}{what}").alias(f"{end}_{name}")
        for end, here, there in (("client", "source", "target"), ("server", "target", "source"))
        for what, name in (("", "address"), ("_port", "port"))
    )


def towards(heads: pl.DataFrame, port: int) -> pl.DataFrame:
    """Those of calls to the port, and replies to them from elsewhere: with `astray`.

    A datagram that does not say what it is belongs to the port that one of its ends is.
    """
    silent = ~pl.col("type").is_in(["request", "reply"]).fill_null(False) & (
        pl.col("source_port") != pl.col("target_port")
    )
    by_port = pl.when(pl.col("source_port") == port).then(True).when(pl.col("target_port") == port).then(False)
    heads = heads.with_columns(reply=pl.when(silent).then(pl.coalesce(by_port, "reply")).otherwise("reply"))
    heads = _with_ends(heads)
    asked = heads.filter(~pl.col("reply"))
    known = heads.filter("reply").join(asked.select(ENDS).unique(), on=ENDS, how="semi")["row"]
    strays = heads.filter("reply", pl.col("type") == "reply", ~pl.col("row").is_in(known.implode()))
    calls = asked.filter(pl.col("server_port") == port).select(*ENDS, "key").unique(maintain_order=True)
    found = (
        strays.drop("server_address", "server_port")
        .join(calls, on=["client_address", "client_port", "key"], how="inner")
        .unique("row", keep="first", maintain_order=True)
        .select("row", to_address="server_address", to_port="server_port")
    )
    heads = heads.join(found, on="row", how="left", maintain_order="left").with_columns(
        server_address=pl.coalesce("to_address", "server_address"),
        server_port=pl.coalesce("to_port", "server_port"),
        astray=pl.col("to_address").is_not_null(),
    )
    return heads.drop("to_address", "to_port").filter(pl.col("server_port") == port)


@dataclass(frozen=True)
class Found:
    """`calls` in the order in which they begin; `begun` (row, call): of which call each message is; `to_all`: calls by
    broadcast or multicast, which any number of servers may answer."""

    calls: pl.DataFrame
    begun: pl.DataFrame
    to_all: pl.Series


def calls_of(heads: pl.DataFrame, protocol: SocketProtocol) -> Found:
    """Calls of messages with `flow`: requests of one name, length and beginning are one call, sent several times."""
    message = pl.col("udp_length").cast(pl.Int64) - 8
    heads = heads.filter(pl.col("udp_length").is_not_null(), protocol.by_order | pl.col("type").is_not_null())
    heads = heads.with_columns(message=message, alone=pl.when(pl.col("key").is_null()).then("row"))
    heads = heads.sort("time_ns", "row")
    asks, answers = heads.filter(~pl.col("reply")), heads.filter("reply")
    # A checksum of 0 says nothing: then it is that of every datagram.
    alike = ["flow", "key", "message", "udp_head", "udp_checksum", "alone"]
    calls = asks.unique(alike, keep="first", maintain_order=True).with_row_index("call")
    of_asks = asks.join(calls.select(*alike, "call"), on=alike, how="inner", nulls_equal=True).select("row", "call")
    keyed, bare = pl.col("key").is_not_null(), pl.col("key").is_null()
    of_answers = pl.concat(
        [
            _nearest(answers.filter(keyed), calls.filter(keyed), ["flow", "key"]),
            _nearest(answers.filter(bare), calls.filter(bare), ["flow"]),
        ]
    )
    replies = answers.join(of_answers, on="row", how="inner").sort("time_ns", "row")
    first = replies.unique("call", keep="first", maintain_order=True).select("call", reply_message="message")
    table = calls.join(first, on="call", how="left", maintain_order="left").select(
        "flow",
        "key",
        "reply_message",
        "procedure",
        start_ns="time_ns",
        request="message",
        request_payload="message",
        reply_payload="reply_message",
        request_records=pl.lit([], pl.List(pl.Int64)),
        reply_records=pl.lit([], pl.List(pl.Int64)),
        first_frame="frame",
    )
    return Found(table, pl.concat([of_asks, of_answers]), calls.filter(to_all())["call"])


def to_all() -> pl.Expr:
    """True of a frame by broadcast or multicast."""
    group = (pl.col("eth_target") & GROUP_BIT != 0).fill_null(False)
    return group | pl.col("target").str.contains(r"^(22[4-9]|23\d)\.|^255\.255\.255\.255$")


def _nearest(answers: pl.DataFrame, calls: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """The last call that had begun, or else the next one: row, call."""
    left, right = answers.select("row", "time_ns", *by), calls.select("call", "time_ns", *by)
    before, behind = (
        left.join_asof(right, on="time_ns", by=by, strategy=strategy, check_sortedness=False).select("row", "call")
        for strategy in ("backward", "forward")
    )
    both = before.join(behind, on="row", how="inner", suffix="_behind")
    return both.select("row", call=pl.coalesce("call", "call_behind")).drop_nulls("call")


def check_sources(heads: pl.DataFrame, begun: pl.DataFrame) -> pl.DataFrame:
    """A finding for each reply from another address or port than the request went to."""
    strays = heads.join(begun, on="row", how="inner").sort("time_ns", "row").with_columns(rows=pl.concat_list("row"))
    return findings(
        strays,
        pl.col("astray"),
        pl.lit("reply.source"),
        pl.format("{}:{}", "server_address", "server_port"),
        pl.format("{}:{}", "source", "source_port"),
    )
