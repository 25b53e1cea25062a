# SPDX-License-Identifier: Apache-2.0
"""What tshark shows of frames, as columns of the table of frames; exact whatever its version and preferences.

It is asked of frames that are not plain (`plain.py`), and by tests of all.

* `ip.defragment:FALSE`: every fragment keeps its own row; the first still shows UDP.
* frames that carry no TCP are cut to their headers before tshark sees them; lengths are those of the original.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import polars as pl

from sundial.errors import BadInput
from sundial.observe.pcap import Capture, Interface
from sundial.observe.plain import HEAD_BYTES
from sundial.observe.tshark import AGGREGATOR, dissect

SNAP = 160
"""Ethernet, IP with options, UDP and the beginning of a payload."""
_AT_ONCE = 250_000
"""Frames that one tshark gets: it takes 160 MB, and up to 1 kB for each frame."""


@dataclass(frozen=True)
class Field:
    """A column, and the field of tshark that it shows: the first of its values, as text or as a number, or all with
    commas between; `octets`: the first HEAD_BYTES, in hexadecimal digits alone."""

    column: str
    tshark: str
    values: Literal["number", "first", "all", "octets"]


FIELDS = (
    Field("ip_id", "ip.id", "number"),
    Field("fragment_units", "ip.frag_offset", "number"),
    Field("ip_length", "ip.len", "number"),
    Field("ip_header", "ip.hdr_len", "number"),
    Field("protocol", "ip.proto", "number"),
    Field("udp_source", "udp.srcport", "number"),
    Field("udp_target", "udp.dstport", "number"),
    Field("udp_length", "udp.length", "number"),
    Field("tcp_source", "tcp.srcport", "number"),
    Field("tcp_target", "tcp.dstport", "number"),
    Field("tcp_seq", "tcp.seq_raw", "number"),
    Field("tcp_length", "tcp.len", "number"),
    Field("tcp_flags", "tcp.flags", "number"),
    Field("tcp_mss", "tcp.options.mss_val", "number"),
    Field("tcp_timestamp", "tcp.options.timestamp.tsval", "number"),
    Field("icmp_type", "icmp.type", "number"),
    Field("ethertype", "eth.type", "all"),
    Field("source", "ip.src", "first"),
    Field("target", "ip.dst", "first"),
    Field("more_text", "ip.flags.mf", "first"),
    Field("udp_head", "udp.payload", "octets"),
)
_OPTIONS = (
    "-o ip.defragment:FALSE",
    # What is not shown takes time, and memory for each frame.
    "-o tcp.relative_sequence_numbers:FALSE",
    "-o tcp.desegment_tcp_streams:FALSE",
    "-o tcp.calculate_timestamps:FALSE",
    "-o tcp.track_bytes_in_flight:FALSE",
    "-o udp.calculate_timestamps:FALSE",
)


def asked(capture: Capture, interfaces: Sequence[Interface]) -> pl.DataFrame:
    """What tshark shows of the frames of interfaces, one after another: the columns that `FIELDS` and
    `columns_of` name. Raises BadInput, HostLacks."""
    tables = []
    pieces = [
        replace(interface, blocks=interface.blocks[first : first + _AT_ONCE])
        for interface in interfaces
        for first in range(0, len(interface.blocks), _AT_ONCE)
    ]
    while pieces:
        # A classic capture has one interface, and one header.
        some = [pieces.pop(0)]
        while pieces and sum(len(each.blocks) for each in [*some, pieces[0]]) <= _AT_ONCE:
            some.append(pieces.pop(0))
        tables.append(_asked(capture, some))
    return pl.concat(tables)


def _asked(capture: Capture, interfaces: Sequence[Interface]) -> pl.DataFrame:
    sections = (part for interface in interfaces for part in capture.parts(interface, SNAP))
    names = list(dict.fromkeys(field.tshark for field in FIELDS))
    text = list(dissect(sections, names, options=_OPTIONS, name=capture.path))
    frames = sum(len(interface.blocks) for interface in interfaces)
    seen = sum(each.height for each in text)
    if seen != frames:
        what = f"tshark read {seen} of {frames} frames"
        raise BadInput(what, file=str(capture.path), allowed="a capture that tshark can read")
    return pl.concat([each.select(**shown(each, FIELDS)) for each in text]).select(
        *(field.column for field in FIELDS if field.column not in _PARTS),
        more=pl.col("more_text").is_in(["1", "True"]),
        fragment_offset=pl.col("fragment_units") * 8,
        source_port=pl.coalesce("udp_source", "tcp_source"),
        target_port=pl.coalesce("udp_target", "tcp_target"),
    )


_PARTS = ("fragment_units", "udp_source", "udp_target", "tcp_source", "tcp_target", "more_text")
"""Fields that columns of other names are made of."""


def shown(text: pl.DataFrame, fields: Sequence[Field]) -> dict[str, pl.Expr]:
    """The values of fields from what tshark printed. What no frame needs is not asked of all: most fields occur once in
    a frame, and in one form."""
    names = list(dict.fromkeys(field.tshark for field in fields if field.values not in ("all", "octets")))
    several, hexadecimal = (
        text.select(pl.col(name).str.contains(rule).any() for name in names).row(0, named=True)
        for rule in (AGGREGATOR, "^0x")
    )
    shown = {}
    for field in fields:
        value = pl.col(field.tshark)
        if field.values == "octets":
            # tshark 4.4 prints colons, and more bytes than 4.0; each version an ellipsis where there are more.
            value = value.str.replace_all("[:\u2026]", "").str.head(2 * HEAD_BYTES)
        elif field.values != "all" and several[field.tshark]:
            # The first of several: of the outer header, where an ICMP message quotes another one.
            value = value.str.extract(f"^([^{AGGREGATOR}]*)")
        if field.values == "number":
            value = _number(value) if hexadecimal[field.tshark] else value.str.to_integer(strict=False).cast(pl.UInt32)
        shown[field.column] = value
    return shown


def _number(value: pl.Expr) -> pl.Expr:
    """Decimal or 0x-hexadecimal text as a number."""
    return (
        pl.when(value.str.starts_with("0x"))
        .then(value.str.strip_prefix("0x").str.to_integer(base=16, strict=False))
        .otherwise(value.str.to_integer(base=10, strict=False))
    ).cast(pl.UInt32)
