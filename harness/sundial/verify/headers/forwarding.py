# SPDX-License-Identifier: Apache-2.0
"""Packets that a machine passes on as a router (RFC 1812, 5.2 and 5.3.1): each is one that it has received, with a
lower time to live, to the next hop on its way."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from sundial.observe import Octets
from sundial.observe.headers import ETHERNET, IPV4
from sundial.verify.findings import Check, findings_of
from sundial.verify.frames import INBOUND, OUTBOUND
from sundial.verify.headers.ethernet import mac_text
from sundial.verify.headers.ports import SENT, apart

UNPROVEN = (
    "that a router forwards every packet, and when",
    "the octets of packets that a router has cut into fragments",
)

_PACKET = ["machine", "source", "target", "protocol", "ip_id", "fragment_offset", "ip_length"]


def passed_on(frames: pl.DataFrame, ports: pl.DataFrame) -> pl.DataFrame:
    """Frames with packets of others that machines which forward have sent, with PORT. `frames` with row, end, fate."""
    sent = frames.select(SENT).filter(pl.col("fate").is_null(), pl.col("direction") == OUTBOUND)
    return apart(sent.join(ports.filter("forwards"), on="end", how="inner", maintain_order="left"), ports)[1]


def check_forwarding(
    frames: pl.DataFrame,
    passed: pl.DataFrame,
    ports: pl.DataFrame,
    hops: pl.DataFrame,
    read: Callable[[pl.DataFrame], Octets],
    astray: pl.Series,
) -> pl.DataFrame:
    """`passed` as of `passed_on`, `hops` as of `ports.next_hops`; `astray`: as of `arp.misled`."""
    came = (
        frames.select(SENT)
        .filter(pl.col("fate").is_null(), pl.col("direction") == INBOUND, pl.col("eth_type") == IPV4)
        .join(ports.filter("forwards"), on="end", how="inner", maintain_order="left")
    )
    came, passed = (_with_octets(each, read).sort("time_ns", "row") for each in (came, passed))
    number = pl.int_range(pl.len())
    key = [*_PACKET, "ip_ttl", "behind"]
    known = came.select(*key, came_ns="time_ns", came_row="row").with_columns(number=number.over(key))
    whole = came.select("machine", "source", "target", "protocol", "ip_id", ttl=pl.col("ip_ttl") - 1, cut=True).unique()
    table = (
        passed.with_columns(ttl="ip_ttl", ip_ttl=pl.col("ip_ttl") + 1)
        .with_columns(number=number.over(key))
        .join(known, on=[*key, "number"], how="left", maintain_order="left")
        .join(whole, on=["machine", "source", "target", "protocol", "ip_id", "ttl"], how="left", maintain_order="left")
        .join(hops, on=["end", "target"], how="left", maintain_order="left")
    )
    piece = pl.col("cut").fill_null(False) & (pl.col("more") | (pl.col("fragment_offset") > 0))
    strange = ~((pl.col("came_ns") < pl.col("time_ns")).fill_null(False) | piece)
    led = pl.col("row").is_in(astray.implode())
    words = pl.format("{} to {}, number {}", "source", "target", "ip_id")
    checks: list[Check] = [
        ("forwarded packet", strange, pl.lit("one that it received before, its time to live less by 1"), words),
        ("eth.src", pl.col("eth_source") != pl.col("mac"), mac_text("mac"), mac_text("eth_source")),
        ("eth.dst", pl.col("hop").is_null(), pl.lit("the next hop of a known network"), mac_text("eth_target")),
        ("eth.dst", (pl.col("eth_target") != pl.col("hop")) & ~led, mac_text("hop"), mac_text("eth_target")),
        ("ip.checksum", ~pl.col("ip_checksum_right"), pl.lit("right"), pl.col("ip_checksum")),
    ]
    return findings_of(table, checks)


def _with_octets(table: pl.DataFrame, read: Callable[[pl.DataFrame], Octets]) -> pl.DataFrame:
    """Adds `behind`: equal for packets with equal octets behind their IP header."""
    if table.is_empty():
        return table.with_columns(behind=pl.lit(0, pl.Int64))
    octets = read(table)
    begin = ETHERNET + table["ip_header"].cast(pl.Int64).fill_null(0).to_numpy()
    end = np.minimum(ETHERNET + table["ip_length"].cast(pl.Int64).fill_null(0).to_numpy(), octets.length)
    part = Octets(octets.data, octets.begin + begin, np.maximum(end - begin, 0))
    return table.with_columns(behind=pl.Series(part.hashes()))
