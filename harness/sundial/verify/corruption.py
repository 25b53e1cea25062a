# SPDX-License-Identifier: Apache-2.0
"""Frames that the wire corrupted: they arrive, but perhaps as something that belongs to no call.

The fate interface has a corrupted frame as it arrives, and names the bit that was flipped. Any field may be hit: only
the bytes tell which frame it was before. A guest's tc-netem reports nothing: what it sends where `corrupt` is set, and
did not receive, was damaged if it differs in one bit from what it did.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from sundial.observe import Octets
from sundial.observe.headers import ARP, ETHERNET
from sundial.observe.octets import octets_together
from sundial.verify.frames import CORRUPTED, INBOUND, OUTBOUND

Read = Callable[[pl.DataFrame], Octets]
"""The bytes of rows of the table of frames."""


_SOURCE_MAC = (6, 11)
_ARP = 28
_UDP_CHECKSUM_AT = 6
_PACKET = ("protocol", "source", "target", "ip_id", "fragment_offset", "ip_length", "ip_payload_sum")
"""What a router leaves as it is."""


def with_corrupted(frames: pl.DataFrame, read: Read, ports: pl.DataFrame | None = None) -> pl.DataFrame:
    """Adds `corrupted`: how many copies of a frame the wire corrupted after the frame was sent at a port; `damaged`:
    whether this is such a copy, which its receiver discards; and `passes_ip`: whether it does so behind IP, since the
    IP header is right. What is in the headers of a damaged frame says nothing about who sent it. `ports` as of
    `ports_of`: those of guests that join segments may damage frames, too."""
    reports = frames.filter(pl.col("fate") == CORRUPTED)
    by_guests = flipped(frames, read, ports) if ports is not None else reports.clear()
    if reports.is_empty() and by_guests.is_empty():
        return frames.with_columns(NOTHING_CORRUPTED)
    sent = frames.filter(pl.col("fate").is_null(), pl.col("direction") == OUTBOUND)
    names = ["capture", "interface", "octets_hash"]
    found = (
        reports.select(
            "capture", "time_ns", pl.col("fate_from").alias("interface"), octets_hash=hashes_before(reports, read)
        )
        .drop_nulls("interface")
        .sort("time_ns")
        .join_asof(
            sent.select("row", "time_ns", *names).sort("time_ns", "row"),
            on="time_ns",
            by=names,
            strategy="backward",
            check_sortedness=False,
        )
        .drop_nulls("row")
    )
    counted = found.group_by("row").agg(corrupted=pl.len())
    harmful = pl.concat([reports, by_guests]).filter(~_harmless())
    behind_ip = (pl.col("fate_byte") >= ETHERNET + pl.col("ip_header").cast(pl.Int64)) & pl.col("ip_checksum_right")
    packets = harmful.filter(behind_ip).select(_PACKET).drop_nulls().unique().with_columns(passes_ip=True)
    # A router passes on what it has no reason to discard, and makes another frame of it.
    return (
        frames.join(counted, on="row", how="left", maintain_order="left")
        .join(packets, on=_PACKET, how="left", maintain_order="left")
        .with_columns(
            pl.col("corrupted").fill_null(0),
            pl.col("passes_ip").fill_null(False),
            damaged=pl.col("passes_ip").fill_null(False)
            | pl.col("octets_hash").is_in(harmful["octets_hash"].implode()),
        )
    )


def flipped(frames: pl.DataFrame, read: Read, ports: pl.DataFrame) -> pl.DataFrame:
    """The rows of frames that a guest which joins segments corrupted, with `fate_byte`: where."""
    joining = ports.filter("joins").select("end", "machine", "corrupts")
    if not joining["corrupts"].any():
        return frames.clear()
    seen = frames.filter(pl.col("fate").is_null()).join(joining, on="end", how="inner", maintain_order="left")
    came = seen.filter(pl.col("direction") == INBOUND)
    key = ["machine", "frame_length"]
    changed = seen.filter(pl.col("direction") == OUTBOUND, "corrupts")
    changed = changed.join(came, on=["machine", "octets_hash"], how="anti", maintain_order="left")
    places: dict[int, int] = {}
    for (machine, length), part in changed.group_by(key, maintain_order=True):
        before = came.filter(pl.col("machine") == machine, pl.col("frame_length") == length)
        octets, times = read(before).matrix(0, length), before["time_ns"].to_numpy()
        for row, at, octet in zip(part["row"], part["time_ns"], read(part).matrix(0, length), strict=True):
            bits = np.bitwise_count(octets[times < at] ^ octet)
            if len(one := np.flatnonzero(bits.sum(axis=1) == 1)):
                places[row] = int(bits[one[0]].argmax())
    if not places:
        return frames.clear()
    row = pl.col("row")
    return frames.filter(row.is_in(list(places))).with_columns(
        fate_byte=row.replace_strict(places, return_dtype=frames.schema["fate_byte"])
    )


NOTHING_CORRUPTED = (
    pl.lit(0, pl.UInt32).alias("corrupted"),
    pl.lit(False).alias("damaged"),
    pl.lit(False).alias("passes_ip"),
)


def intact(frames: pl.DataFrame) -> pl.DataFrame:
    """Without frames that their receiver discards, since the wire corrupted them."""
    # Nearly always none is, and then nothing is copied.
    return frames.filter(~pl.col("damaged")) if frames["damaged"].any() else frames


def through_ip(frames: pl.DataFrame) -> pl.DataFrame:
    """The same, and those that a receiver discards behind IP: it may quote them, or wait for their other fragments."""
    return frames.filter(~pl.col("damaged") | pl.col("passes_ip")) if frames["damaged"].any() else frames


def _harmless() -> pl.Expr:
    """True if no receiver checks the octet that was hit: of the source's MAC address, and of padding; and if the hit
    leaves 0 for UDP's checksum, which means none (RFC 768)."""
    byte = pl.col("fate_byte").cast(pl.Int64)
    end = ETHERNET + pl.when(pl.col("eth_type") == ARP).then(_ARP).otherwise(pl.col("ip_length").cast(pl.Int64))
    checksum = ETHERNET + pl.col("ip_header").cast(pl.Int64) + _UDP_CHECKSUM_AT
    none = (pl.col("udp_checksum") == 0) & byte.is_between(checksum, checksum + 1)
    return byte.is_between(*_SOURCE_MAC).fill_null(False) | (byte >= end).fill_null(False) | none.fill_null(False)


def hashes_before(reports: pl.DataFrame, read: Read) -> pl.Series:
    """`octets_hash` of the frames that corrupted ones were before: the record says which bit was flipped."""
    octets, before = read(reports), []
    for place, (bit, byte) in enumerate(reports.select("fate_bit", "fate_byte").iter_rows()):
        frame = bytearray(octets.frame(place))
        if byte < len(frame):
            frame[byte] ^= 1 << bit
        before.append(bytes(frame))
    return pl.Series("octets_hash", octets_together(before).hashes())
