# SPDX-License-Identifier: Apache-2.0
"""Frames that the wire corrupted: they arrive, but perhaps as something that belongs to no call.

The fate interface has a corrupted frame as it arrives, and names the bit that was flipped. Any field may be hit: only
the bytes tell which frame it was before. What a bridge's tc-netem(8) corrupts has no such record: there it is a frame
that the bridge sent and had not received, and one bit tells it from one that it had.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from sundial.observe import Octets
from sundial.observe.headers import ARP, ETHERNET
from sundial.verify.frames import CORRUPTED, INBOUND, OUTBOUND

Read = Callable[[pl.DataFrame], Octets]
"""The bytes of rows of the table of frames."""

CORRUPT = "corrupt"
"""The word of tc-netem(8)."""
_SOURCE_MAC = (6, 11)
_ARP = 28
_UDP_CHECKSUM_AT = 6
_PACKET = ("protocol", "source", "target", "ip_id", "fragment_offset", "ip_length", "ip_payload_sum")
"""What a router leaves as it is."""


def with_corrupted(frames: pl.DataFrame, read: Read, ports: pl.DataFrame | None = None) -> pl.DataFrame:
    """Adds `corrupted`: how many copies of a frame the wire corrupted after the frame was sent at a port; `damaged`:
    whether this is such a copy, which its receiver discards; and `passes_ip`: whether it does so behind IP, since the
    IP header is right. What is in the headers of a damaged frame says nothing about who sent it. `ports`: as of
    `headers.ports`, for bridges that corrupt."""
    reports = frames.filter(pl.col("fate") == CORRUPTED)
    bridged = reports.clear() if ports is None else _by_bridges(frames, ports, read)
    if reports.is_empty() and bridged.is_empty():
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
    harmful = pl.concat([reports, bridged]).filter(~_harmless())
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


NOTHING_CORRUPTED = (
    pl.lit(0, pl.UInt32).alias("corrupted"),
    pl.lit(False).alias("damaged"),
    pl.lit(False).alias("passes_ip"),
)


def intact(frames: pl.DataFrame) -> pl.DataFrame:
    """Without frames that their receiver discards, since the wire corrupted them."""
    # Nearly always none is, and then nothing is copied.
    return frames.filter(~pl.col("damaged")) if frames["damaged"].any() else frames


def _by_bridges(frames: pl.DataFrame, ports: pl.DataFrame, read: Read) -> pl.DataFrame:
    """What the netem of bridges corrupted, as the bridges sent it, with the bit that was flipped."""
    joining = ports.filter("joins").select("end", "machine", corrupts=pl.col("netem").str.contains(CORRUPT))
    if not joining["corrupts"].any():
        return frames.clear()
    seen = frames.filter(pl.col("fate").is_null()).join(joining, on="end", how="inner", maintain_order="left")
    came = seen.filter(pl.col("direction") == INBOUND)
    left = seen.filter(pl.col("direction") == OUTBOUND, "corrupts")
    others = left.join(came, on=["machine", "octets_hash"], how="anti", maintain_order="left")
    bits = one_bit_off(others, came, read)
    flipped = pl.DataFrame(
        [(row, bit % 8, bit // 8) for row, bit in bits.items()],
        schema={name: frames.schema[name] for name in ("row", "fate_bit", "fate_byte")},
        orient="row",
    )
    return frames.drop("fate_bit", "fate_byte").join(flipped, on="row", how="inner").select(frames.columns)


def one_bit_off(sent: pl.DataFrame, received: pl.DataFrame, read: Read) -> dict[int, int]:
    """Rows of frames that differ in one bit from one of the same length which their `machine` received before, and
    that bit, counted from the first octet's lowest one."""
    bits = {}
    for place, (row, machine, length, at_ns) in enumerate(
        sent.select("row", "machine", "frame_length", "time_ns").iter_rows()
    ):
        candidates = received.filter(
            pl.col("machine") == machine, pl.col("frame_length") == length, pl.col("time_ns") < at_ns
        )
        number = int.from_bytes(read(sent[place]).frame(0), "little")
        octets = read(candidates)
        for other in range(candidates.height):
            changed = number ^ int.from_bytes(octets.frame(other), "little")
            if changed.bit_count() == 1:
                bits[row] = changed.bit_length() - 1
                break
    return bits


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
        before.append(hash(bytes(frame)))
    return pl.Series("octets_hash", before, pl.Int64)
