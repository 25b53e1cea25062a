# SPDX-License-Identifier: Apache-2.0
"""Fields of Ethernet, IPv4, UDP and TCP headers of many frames at once, read from their bytes.

A field is null where its header is not there to its end, or says of itself that it is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sundial.observe.octets import Numbers, Octets

ETHERNET = 14
IPV4, ARP = 0x0800, 0x0806
TCP, UDP = 6, 17
_IP_MIN, _UDP, _TCP_MIN = 20, 8, 20
_HEADS = ETHERNET + 60 + _TCP_MIN
"""Bytes in which all headers are, an IP header with the most options before that of TCP."""

HEADER_COLUMNS: dict[str, type[pl.DataType]] = {
    "eth_target": pl.Int64,
    "eth_source": pl.Int64,
    "eth_type": pl.UInt16,
    "ip_version": pl.UInt8,
    "ip_tos": pl.UInt8,
    "ip_flags": pl.UInt8,
    "ip_ttl": pl.UInt8,
    "ip_checksum": pl.UInt16,
    "ip_checksum_right": pl.Boolean,
    "ip_payload_sum": pl.UInt16,
    "udp_checksum": pl.UInt16,
    "tcp_ack": pl.UInt32,
    "tcp_header": pl.UInt8,
    "tcp_window": pl.UInt16,
    "tcp_checksum": pl.UInt16,
    "tcp_urgent": pl.UInt16,
}
"""MACs are numbers of 48 bits; `ip_flags` three bits (4 reserved, 2 DF, 1 MF); `tcp_header` bytes with options.

`ip_payload_sum`: the sum of the 16-bit words behind the IP header, with carries added: 0xffff together with the
pseudo-header where the checksum of UDP or TCP is right. Fragments' sums add up to that of the datagram.
"""


Column = tuple[Numbers | NDArray[np.bool_], NDArray[np.bool_]]
"""Values, and where there are such; elsewhere they are null."""


def header_columns(octets: Octets, *, ethernet: bool) -> pl.DataFrame:
    """HEADER_COLUMNS, and the fields that tshark reads as well, named as in the table of frames (`_READ_TWICE`).

    All are null where the capture is not of Ethernet.
    """
    return as_table(read_headers(octets, ethernet=ethernet).fields)


@dataclass(frozen=True)
class Headers:
    """Frames, and the fields of their headers as arrays, named as in `header_columns`."""

    octets: Octets
    heads: Octets
    """Their first bytes, in which all headers are."""
    fields: Mapping[str, Column]


def read_headers(octets: Octets, *, ethernet: bool) -> Headers:
    """The fields that `header_columns` has."""
    heads = octets.heads(_HEADS)
    framed = octets.has(ETHERNET) & ethernet
    kind = heads.number(12, 2)
    ip = framed & (kind == IPV4) & octets.has(ETHERNET + 1)
    first = heads.number(ETHERNET, 1)
    header = (first & 0xF) * 4
    ip4 = ip & (first >> 4 == 4) & (header >= _IP_MIN) & octets.has(ETHERNET + header)
    # Of what has none: nothing is read there, and where all begin at one place that is faster.
    header = np.where(ip4, header, _IP_MIN)
    length, fragment = heads.number(16, 2), heads.number(20, 2)
    protocol = heads.number(23, 1)
    transport = ETHERNET + header
    end = ETHERNET + length
    whole = ip4 & (length >= header) & octets.has(end)
    beginning = ip4 & (fragment & 0x1FFF == 0)
    udp = beginning & (protocol == UDP) & octets.has(transport + _UDP)
    tcp = beginning & (protocol == TCP) & octets.has(transport + _TCP_MIN)
    bits = heads.number(transport + 12, 2)
    header_sum = heads.sums(ETHERNET, np.where(ip4, transport, 0))
    payload_sum = octets.sums(transport, np.where(whole, end, 0))

    def number(at: int | Numbers, size: int, where: NDArray[np.bool_]) -> Column:
        return heads.number(at, size), where

    ports = udp | tcp
    fields: dict[str, Column] = {
        "eth_target": number(0, 6, framed),
        "eth_source": number(6, 6, framed),
        "eth_type": (kind, framed),
        "ip_version": (first >> 4, ip),
        "ip_tos": number(15, 1, ip4),
        "ip_flags": (fragment >> 13, ip4),
        "ip_ttl": number(22, 1, ip4),
        "ip_checksum": number(24, 2, ip4),
        "ip_checksum_right": (header_sum == 0xFFFF, ip4),
        "ip_payload_sum": (payload_sum, whole),
        "udp_checksum": number(transport + 6, 2, udp),
        "tcp_ack": number(transport + 8, 4, tcp),
        "tcp_header": ((bits >> 12) * 4, tcp),
        "tcp_window": number(transport + 14, 2, tcp),
        "tcp_checksum": number(transport + 16, 2, tcp),
        "tcp_urgent": number(transport + 18, 2, tcp),
        "ip_header": (header, ip4),
        "ip_length": (length, ip4),
        "ip_id": number(18, 2, ip4),
        "more": (fragment & 0x2000 != 0, ip4),
        "fragment_offset": ((fragment & 0x1FFF) * 8, ip4),
        "protocol": (protocol, ip4),
        "source": number(26, 4, ip4),
        "target": number(30, 4, ip4),
        "source_port": number(transport, 2, ports),
        "target_port": number(transport + 2, 2, ports),
        "udp_length": number(transport + 4, 2, udp),
        "tcp_seq": number(transport + 4, 4, tcp),
        "tcp_flags": (bits & 0xFFF, tcp),
        "tcp_length": (length - header - (bits >> 12) * 4, tcp),
    }
    return Headers(octets, heads, fields)


def as_table(columns: Mapping[str, Column]) -> pl.DataFrame:
    """A table of columns, of the types that HEADER_COLUMNS gives them."""
    masks = {id(where): where for _, where in columns.values()}
    table = pl.DataFrame(
        {name: values for name, (values, _) in columns.items()} | {str(key): mask for key, mask in masks.items()}
    )
    schema = table.schema
    # What is null where: in one go, since each select of polars has its price.
    return table.select(
        pl.when(pl.col(str(id(where)))).then(name).cast(HEADER_COLUMNS.get(name, schema[name])).alias(name)
        for name, (_, where) in columns.items()
    )


_TRANSPORT = ("source_port", "target_port", "udp_length", "tcp_seq", "tcp_flags", "tcp_length")
_READ_TWICE = (
    "ip_header", "ip_length", "ip_id", "more", "fragment_offset", "protocol", "source", "target", *_TRANSPORT,
)  # fmt: skip


def read_differently(tshark: pl.DataFrame, octets: pl.DataFrame) -> pl.Series:
    """The names of fields that tshark and this reader read differently in a frame; null where they agree.

    A field that only one of them shows is different too if the frame is IPv4 for this reader. Of ICMP messages tshark
    shows the headers that they quote.
    """
    table = tshark.select(_READ_TWICE).with_columns(
        pl.col(name).replace_strict(_addresses(tshark[name]), default=-1, return_dtype=pl.Int64)
        for name in ("source", "target")
    )
    both = pl.concat([table, octets.select(pl.col(_READ_TWICE).name.prefix("octets_"))], how="horizontal")
    carried = pl.col("octets_protocol").is_in([TCP, UDP])
    different = pl.concat_str(
        [
            pl.when(
                pl.col(name).ne_missing(pl.col(f"octets_{name}")) & (pl.lit(name not in _TRANSPORT) | carried)
            ).then(pl.lit(f"{name} "))
            for name in _READ_TWICE
        ],
        ignore_nulls=True,
    )
    ip = pl.col("octets_ip_header").is_not_null()
    said = pl.when(ip & (different != "")).then(different.str.strip_chars_end())
    return both.select(read_differently=said).to_series()


def _addresses(column: pl.Series) -> dict[str, int]:
    return {text: int.from_bytes(bytes(map(int, text.split(".")))) for text in column.drop_nulls().unique()}
