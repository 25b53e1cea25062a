# SPDX-License-Identifier: Apache-2.0
"""Frames that are shorter than the packet they carry, or were not recorded to their end."""

from __future__ import annotations

import polars as pl

from sundial.expect.ip import ETHERNET_HEADER
from sundial.verify.findings import findings

_ETHERNET = "0x0800"


def check_whole(frames: pl.DataFrame, *, whole_capture: bool) -> pl.DataFrame:
    """A finding for each truncated frame; `whole_capture`: every frame is to be in the file to its end."""
    names = ("row", "call", "frame_length", "captured_length")
    table = (
        frames.select(*names, "ethertype", "fate", need=pl.col("ip_length") + ETHERNET_HEADER)
        .filter(pl.col("ethertype") == _ETHERNET, pl.col("fate").is_null())
        .drop("ethertype", "fate")
    )
    have = pl.min_horizontal("frame_length", "captured_length") if whole_capture else pl.col("frame_length")
    return findings(
        table,
        have < pl.col("need"),
        pl.lit("frame length"),
        pl.format("{} bytes", "need"),
        pl.format("{} bytes", have),
    )
