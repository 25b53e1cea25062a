# SPDX-License-Identifier: Apache-2.0
"""Ethernet (IEEE 802.3) of frames that machines sent: addresses, type, length and padding."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from sundial.observe import Octets
from sundial.observe.headers import ARP, ETHERNET, IPV4
from sundial.verify.findings import findings, none
from sundial.verify.frames import INBOUND, OUTBOUND
from sundial.verify.headers.ports import stations

UNPROVEN = ("the length and padding of frames that carry neither IPv4 nor ARP",)

LEAST = 60
"""Bytes of a frame without its FCS; a machine may leave padding to its adapter."""
_ARP = 28


def check_places(frames: pl.DataFrame, ports: pl.DataFrame) -> pl.DataFrame:
    """Frames at interfaces that no machine has, without a direction, or that are not in the file to their end, and
    those which tshark and our own reader read differently; readers may differ about frames that the wire corrupted."""
    table = frames.select(
        "row",
        "end",
        "fate",
        "direction",
        "interface",
        "frame_length",
        "captured_length",
        "read_differently",
        "damaged",
    ).join(ports.select("end", known=True), on="end", how="left")
    seen = pl.col("fate").is_null()
    return pl.concat(
        [
            findings(
                table, seen & pl.col("known").is_null(), pl.lit("interface"), pl.lit("of the run"), pl.col("interface")
            ),
            findings(
                table,
                seen & ~pl.col("direction").is_in([INBOUND, OUTBOUND]),
                pl.lit("direction"),
                pl.lit("inbound or outbound"),
                pl.col("direction"),
            ),
            findings(
                table,
                pl.col("captured_length") != pl.col("frame_length"),
                pl.lit("captured length"),
                pl.format("{} bytes", "frame_length"),
                pl.format("{} bytes", "captured_length"),
            ),
            findings(
                table,
                pl.col("read_differently").is_not_null() & ~pl.col("damaged"),
                pl.lit("header"),
                pl.lit("the same for tshark and in the bytes"),
                pl.format("other {}", "read_differently"),
            ),
        ]
    )


def check_ethernet(
    sent: pl.DataFrame, ports: pl.DataFrame, hops: pl.DataFrame, own_types: Collection[int], astray: pl.Series
) -> pl.DataFrame:
    """`sent` as of `ports.sent_frames`, `hops` as of `ports.next_hops`; `own_types`: EtherTypes of workloads; `astray`:
    as of `arp.misled`."""
    others = stations(ports)
    macs = others.select("domain", eth_target="mac", station=True)
    table = sent.join(hops, on=["end", "target"], how="left", maintain_order="left").join(
        macs, on=["domain", "eth_target"], how="left", maintain_order="left"
    )
    kind = pl.col("eth_type")
    to_hop = (kind == IPV4) & pl.col("hop").is_not_null()
    need = (
        pl.when(kind == IPV4)
        .then(pl.col("ip_length").cast(pl.Int64) + ETHERNET)
        .when(kind == ARP)
        .then(ETHERNET + _ARP)
    )
    padded = pl.max_horizontal(need, LEAST)
    length = pl.col("frame_length").cast(pl.Int64)
    most = pl.col("mtu") + ETHERNET
    return pl.concat(
        [
            _finding(
                table,
                ~kind.is_in([IPV4, ARP, *own_types]).fill_null(False),
                "eth.type",
                pl.lit("IPv4, ARP, or a workload's own"),
                _hexadecimal("eth_type"),
            ),
            _finding(
                table,
                to_hop & (pl.col("eth_target") != pl.col("hop")) & ~pl.col("row").is_in(astray.implode()),
                "eth.dst",
                mac_text("hop"),
                mac_text("eth_target"),
            ),
            _finding(
                table,
                kind.is_in(list(own_types)) & (pl.col("station").is_null() | (pl.col("eth_target") == pl.col("mac"))),
                "eth.dst",
                pl.lit("another machine's"),
                mac_text("eth_target"),
            ),
            _finding(
                table,
                (length != need) & (length != padded),
                "frame length",
                pl.format("{} bytes, or {} with padding", need, padded),
                pl.format("{} bytes", length),
            ),
            _finding(
                table,
                (length > most) & ~pl.col("offloads"),
                "frame length",
                pl.format("at most {} bytes", most),
                pl.format("{} bytes", length),
            ),
        ]
    )


def check_source(sent: pl.DataFrame) -> pl.DataFrame:
    """Each frame is from the address of its port, programs' own as well."""
    return _finding(sent, pl.col("eth_source") != pl.col("mac"), "eth.src", mac_text("mac"), mac_text("eth_source"))


def check_padding(sent: pl.DataFrame, octets: Octets) -> pl.DataFrame:
    """What is behind a packet is zero (RFC 894, RFC 1042). `octets` of `sent`."""
    arp = pl.when(pl.col("eth_type") == ARP).then(_ARP)
    table = sent.select("row", "captured_length", end=ETHERNET + pl.coalesce(pl.col("ip_length").cast(pl.Int64), arp))
    padded = (table["end"] < table["captured_length"]).fill_null(False).to_numpy()
    if not padded.any():
        return none()
    ends = table.filter(padded)["end"].to_numpy()
    part = octets.take(padded)
    dirty = table.filter(padded).filter(pl.Series(part.sums(ends, part.length) != 0))
    return _finding(
        dirty,
        pl.lit(True),
        "padding",
        pl.lit("zero"),
        pl.lit("something else"),
    )


def _finding(table: pl.DataFrame, where: pl.Expr, name: str, expected: pl.Expr, seen: pl.Expr) -> pl.DataFrame:
    return findings(table, where, pl.lit(name), expected, seen)


def mac_text(name: str) -> pl.Expr:
    """A MAC address as usual."""
    octets = [(pl.col(name) // (1 << 8 * place) % 256) for place in range(5, -1, -1)]
    return pl.concat_str([_two(octet) for octet in octets], separator=":")


_OCTETS = pl.Series(range(256), dtype=pl.Int64)
_DIGITS = pl.Series([format(value, "02x") for value in range(256)])


def _two(octet: pl.Expr) -> pl.Expr:
    return octet.replace_strict(_OCTETS, _DIGITS, return_dtype=pl.String, default=None)


def _hexadecimal(name: str) -> pl.Expr:
    value = pl.col(name).cast(pl.Int64)
    return pl.coalesce(pl.concat_str(pl.lit("0x"), _two(value // 256), _two(value % 256)), pl.lit("no type"))
