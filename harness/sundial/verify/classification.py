# SPDX-License-Identifier: Apache-2.0
"""Every frame has a reason: what is not a packet of a call is classified and counted; what remains is a mismatch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from sundial.verify.findings import findings
from sundial.verify.frames import INBOUND
from sundial.verify.sockets.flows import ICMP, TCP, UDP
from sundial.verify.sockets.tcp import FIN, RST, SYN

ARP = "0x0806"
IPV4 = "0x0800"
ICMP_UNREACHABLE, ICMP_TIME_EXCEEDED = 3, 11

CALL, UNEXPLAINED = "call", "unexplained"


def classify(
    frames: pl.DataFrame, segments: pl.DataFrame, background: pl.DataFrame, addresses: pl.DataFrame
) -> pl.DataFrame:
    """Adds `class` to frames that have `call` where they belong to one.

    `segments`: row and pos of TCP frames of the calls' connections; `background`: row and class of what
    workloads send beside calls; `addresses`: end, own (list) and relays of each port.
    """
    flags, data = pl.col("tcp_flags"), pl.col("tcp_length")
    opening = segments.filter(~pl.col("reply"), pl.col("data") == 0, pl.col("pos") == 0).select(
        "row", first=pl.col("row") == pl.col("row").min().over("conn", "end")
    )
    table = (
        frames.join(opening.filter("first").select("row", opens=True), on="row", how="left", maintain_order="left")
        .join(
            background.unique("row", keep="first", maintain_order=True).rename({"class": "background"}),
            on="row",
            how="left",
            maintain_order="left",
        )
        .join(segments.select("row", known=True), on="row", how="left", maintain_order="left")
        .join(addresses, on="end", how="left", maintain_order="left")
    )
    own = pl.col("own").list.contains(pl.col("source")) | pl.col("own").list.contains(pl.col("target"))
    # Packets of others: heard on a shared wire, or passed on by what joins segments or networks.
    passes = (pl.col("direction") == INBOUND) | pl.col("relays")
    other = (pl.col("ethertype") == IPV4) & pl.col("source").is_not_null() & passes & ~own
    # Reassembly that times out (RFC 792, code 1) follows from lost fragments: `headers.icmp`.
    expired = (pl.col("protocol") == ICMP) & (pl.col("icmp_type") == ICMP_TIME_EXCEEDED)
    known = pl.col("known").fill_null(False)
    unreachable = _unreachable(frames)
    return table.with_columns(
        pl.when(pl.col("fate").is_not_null())
        .then(pl.format("fate_{}", "fate"))
        .when("damaged")
        .then(pl.lit("corrupted"))
        .when(pl.col("call").is_not_null())
        .then(pl.when(pl.col("view") == "passing").then(pl.lit("passing")).otherwise(pl.lit(CALL)))
        .when(pl.col("ethertype") == ARP)
        .then(pl.lit("arp"))
        .when(other)
        .then(pl.lit("passing"))
        .when(known & (flags & RST != 0))
        .then(pl.lit("tcp_reset"))
        .when(known & ((flags & SYN != 0) | pl.col("opens").fill_null(False)))
        .then(pl.lit("tcp_handshake"))
        .when(known & (data == 0) & (flags & FIN != 0))
        .then(pl.lit("tcp_fin"))
        .when(known & (data == 0))
        .then(pl.lit("tcp_ack"))
        .when(pl.col("background").is_not_null())
        .then("background")
        .when(expired)
        .then(pl.lit("icmp_reassembly_expired"))
        .when(pl.col("row").is_in(unreachable.implode()))
        .then(pl.lit("icmp_unreachable"))
        .otherwise(pl.lit(UNEXPLAINED))
        .alias("class")
    ).drop("opens", "background", "known", "own", "relays")


def _unreachable(frames: pl.DataFrame) -> pl.Series:
    """Rows of ICMP messages "destination unreachable" (RFC 792) that quote an earlier packet of those to whom they go.

    A client that has its answer, or has given up, closes its socket; the answer to a repeated request still comes. A
    router reports that a next hop does not answer. That a message has its reason: `headers.icmp`.
    """
    names = ["source", "source_port", "target_port"]
    messages = frames.filter(pl.col("protocol") == ICMP, pl.col("icmp_type") == ICMP_UNREACHABLE).select(
        "row", "time_ns", "source_port", "target_port", source="target"
    )
    if messages.is_empty():
        return messages["row"]
    packets = frames.select(*names, "protocol", "time_ns").filter(
        pl.col("protocol").is_in([UDP, TCP]), pl.col("source_port").is_not_null()
    )
    first = packets.group_by(names).agg(sent_ns=pl.col("time_ns").min())
    return messages.join(first, on=names).filter(pl.col("sent_ns") < pl.col("time_ns"))["row"]


def check_unexplained(frames: pl.DataFrame, descriptions: Sequence[pl.Expr] = ()) -> pl.DataFrame:
    """A finding for each frame that nothing explains. `descriptions`: one in words, null where another says it."""
    table = frames.filter(pl.col("class") == UNEXPLAINED).with_columns(
        call=pl.lit(None, pl.UInt32), rows=pl.concat_list("row")
    )
    words = pl.format(
        "{} {} > {} {}, {} bytes",
        pl.col("protocol").replace_strict({1: "ICMP", TCP: "TCP", 17: "UDP"}, default="frame", return_dtype=pl.String),
        _end("source"),
        _end("target"),
        pl.col("rpc_xid").map_elements("0x{:08x}".format, return_dtype=pl.String).fill_null(""),
        "frame_length",
    )
    text = pl.coalesce(*descriptions, words.str.replace("  ", " "))
    return findings(table, pl.lit(True), pl.lit("frame without a call"), pl.lit("none"), text)


def _end(name: str) -> pl.Expr:
    port = pl.when(pl.col(f"{name}_port").is_null()).then(pl.lit("")).otherwise(pl.format(":{}", f"{name}_port"))
    return pl.concat_str(pl.col(name).fill_null("?"), port)


def counts(frames: pl.DataFrame, leave_out: Iterable[str] = (UNEXPLAINED,)) -> dict[str, int]:
    """Frames of each class, by name."""
    table = frames.group_by("class").len().sort("class")
    return {name: number for name, number in table.iter_rows() if name not in set(leave_out)}
