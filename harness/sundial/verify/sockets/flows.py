# SPDX-License-Identifier: Apache-2.0
"""Frames to flows: whose packet a frame is, in which direction, and from where it was seen.

`view` of a frame: `sent` at the port of the machine that sends this direction, `received` at that of the other end,
`fate` on a segment's interface for what became of frames, `passing` elsewhere (other stations of a hub, the two ports
of a guest that joins segments). On a segment within a machine one port is both, and a frame's direction says it.
"""

from __future__ import annotations

import polars as pl

from sundial.verify.frames import INBOUND
from sundial.verify.sockets.protocol import IP_PROTOCOL

VIEW = pl.Enum(["sent", "received", "fate", "passing"])
ICMP, TCP, UDP = 1, IP_PROTOCOL["tcp"], IP_PROTOCOL["udp"]


def add_flows(frames: pl.DataFrame, flows: pl.DataFrame) -> pl.DataFrame:
    """Adds `flow`, `reply` and `view`, null for frames of no flow. `frames` with end and fate.

    Fragments after the first have no ports and get theirs in `udp`.
    """
    ports = flows.select("client_address", "client_port", "server_address", "server_port", "ip_protocol", "flow").cast(
        {"client_port": pl.UInt32, "server_port": pl.UInt32}
    )
    here = ["source", "source_port", "target", "target_port", "protocol"]
    there = ["client_address", "client_port", "server_address", "server_port", "ip_protocol"]
    swapped = ["server_address", "server_port", "client_address", "client_port", "ip_protocol"]
    frames = frames.join(ports.rename({"flow": "out"}), left_on=here, right_on=there, how="left", maintain_order="left")
    frames = frames.join(
        ports.rename({"flow": "back"}), left_on=here, right_on=swapped, how="left", maintain_order="left"
    )
    frames = frames.with_columns(
        flow=pl.coalesce("out", "back"),
        reply=pl.when(pl.col("out").is_not_null()).then(False).when(pl.col("back").is_not_null()).then(True),
    ).drop("out", "back")
    return add_view(frames, flows)


def add_flows_of_damaged(frames: pl.DataFrame, flows: pl.DataFrame) -> pl.DataFrame:
    """The same for UDP replies whose source port was damaged: they reach the port of their client.

    `frames` as of `add_flows`, with `damaged`. Where a client's port has several flows to one server, it is not known
    whose reply it is.
    """
    here = ["source", "target", "target_port"]
    there = ["server_address", "client_address", "client_port"]
    ports = flows.filter(pl.col("ip_protocol") == UDP).select(*there, "flow").cast({"client_port": pl.UInt32})
    hit = frames.filter("damaged", pl.col("flow").is_null(), pl.col("protocol") == UDP, pl.col("fragment_offset") == 0)
    found = hit.drop("flow").join(ports.unique(there, keep="none"), left_on=here, right_on=there, how="inner")
    if found.is_empty():
        return frames
    found = add_view(found.with_columns(reply=pl.lit(True)), flows).select(frames.columns)
    return pl.concat([frames.join(found, on="row", how="anti"), found]).sort("row")


def add_view(frames: pl.DataFrame, flows: pl.DataFrame) -> pl.DataFrame:
    """Sets `view` from `flow`, `reply`, `fate` and the ends of the flow."""
    if "inner" not in flows.columns:
        flows = flows.with_columns(inner=pl.lit(False))
    ends = flows.select("flow", "client_end", "server_end", "inner")
    sender = pl.when("reply").then("server_end").otherwise("client_end")
    receiver = pl.when("reply").then("client_end").otherwise("server_end")
    return (
        frames.drop("view", strict=False)
        .join(ends, on="flow", how="left", maintain_order="left")
        .with_columns(
            view=pl.when(pl.col("flow").is_null())
            .then(None)
            .when(pl.col("fate").is_not_null())
            .then(pl.lit("fate"))
            .when((pl.col("end") == sender) & ~(pl.col("inner") & (pl.col("direction") == INBOUND)))
            .then(pl.lit("sent"))
            .when(pl.col("end") == receiver)
            .then(pl.lit("received"))
            .otherwise(pl.lit("passing"))
            .cast(VIEW)
        )
        .drop("client_end", "server_end", "inner")
    )


def last_begun(left: pl.DataFrame, calls: pl.DataFrame, on: tuple[str, str], by: list[str]) -> pl.DataFrame:
    """Joins each row of `left` with the last call of the same `by` that had begun by then.

    `on`: the time columns of the two. Adds `call`, and the time at which the call began.
    """
    return left.sort(on[0]).join_asof(
        calls.sort(on[1]).select(*by, on[1], pl.col("id").alias("call")),
        left_on=on[0],
        right_on=on[1],
        by=by,
        strategy="backward",
        check_sortedness=False,
    )
