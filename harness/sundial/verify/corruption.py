# SPDX-License-Identifier: Apache-2.0
"""Frames that the wire corrupted: they arrive, but perhaps as something that belongs to no call.

The fate interface has a corrupted frame as it arrives, and names the bit that was flipped. Any field may be hit: only
the bytes tell which frame it was before.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from sundial.observe import Octets
from sundial.verify.frames import CORRUPTED, INBOUND, OUTBOUND

Read = Callable[[pl.DataFrame], Octets]
"""The bytes of rows of the table of frames."""


def with_corrupted(frames: pl.DataFrame, read: Read) -> pl.DataFrame:
    """Adds `corrupted`: how many copies of a frame the wire corrupted after the frame was sent at a port."""
    reports = frames.filter(pl.col("fate") == CORRUPTED)
    if reports.is_empty():
        return frames.with_columns(corrupted=pl.lit(0, pl.UInt32))
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
    return frames.join(counted, on="row", how="left", maintain_order="left").with_columns(
        pl.col("corrupted").fill_null(0)
    )


def hashes_before(reports: pl.DataFrame, read: Read) -> pl.Series:
    """`octets_hash` of the frames that corrupted ones were before: the record says which bit was flipped."""
    octets, before = read(reports), []
    for place, (bit, byte) in enumerate(reports.select("fate_bit", "fate_byte").iter_rows()):
        frame = bytearray(octets.frame(place))
        if byte < len(frame):
            frame[byte] ^= 1 << bit
        before.append(hash(bytes(frame)))
    return pl.Series("octets_hash", before, pl.Int64)


def damaged_rows(frames: pl.DataFrame) -> pl.Series:
    """Rows of frames as they were behind the flip of a bit: the wire's reports, and what arrived with their bytes. What
    stands in their headers says nothing about who sent them."""
    reported = frames.filter(pl.col("fate") == CORRUPTED)["octets_hash"]
    arrived = pl.col("fate").is_null() & (pl.col("direction") == INBOUND)
    hit = (pl.col("fate") == CORRUPTED) | (arrived & pl.col("octets_hash").is_in(reported.implode()))
    return (frames.filter(hit) if reported.len() else frames.clear())["row"]


def corrupted_rows(frames: pl.DataFrame, candidates: pl.Series) -> pl.Series:
    """Those of `candidates` (rows of frames) that have the bytes of a frame which the wire reports as corrupted."""
    reported = frames.filter(pl.col("fate") == CORRUPTED)["octets_hash"]
    return frames.filter(
        pl.col("row").is_in(candidates.implode()),
        pl.col("fate").is_null(),
        pl.col("octets_hash").is_in(reported.implode()),
    )["row"]
