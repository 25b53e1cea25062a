# SPDX-License-Identifier: Apache-2.0
"""Frames that the wire corrupted: they arrive, but perhaps as something that belongs to no call.

A corrupted frame differs in one bit (tc-netem(8)) from what is recorded on the fate interface, or is recorded there as
it arrived. That is compared in the captured bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from sundial.observe import open_capture
from sundial.verify.frames import CORRUPTED


def corrupted_rows(frames: pl.DataFrame, candidates: pl.Series, files: Sequence[tuple[Path, str]]) -> set[int]:
    """Those of `candidates` (rows of frames) that are a frame which the wire reports as corrupted."""
    reports = frames.filter(pl.col("fate") == CORRUPTED)
    if reports.is_empty() or candidates.is_empty():
        return set()
    suspects = frames.filter(pl.col("row").is_in(candidates.implode()), pl.col("fate").is_null())
    reported = _bytes(reports, files)
    return {
        row
        for row, data in _bytes(suspects, files).items()
        if any(_nearly(data, original) for original in reported.values())
    }


def _bytes(frames: pl.DataFrame, files: Sequence[tuple[Path, str]]) -> dict[int, bytes]:
    data: dict[int, bytes] = {}
    for path, name in files:
        rows = dict(frames.filter(pl.col("capture") == name).select("frame", "row").iter_rows())
        if not rows:
            continue
        capture = open_capture(path)
        try:
            for interface in capture.interfaces:
                for block in interface.each():
                    if block[-1] in rows:
                        data[rows[block[-1]]] = capture.packet(block)
        finally:
            capture.close()
    return data


def _nearly(one: bytes, other: bytes) -> bool:
    """Whether two frames differ in at most one bit."""
    if len(one) != len(other):
        return False
    return (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).bit_count() <= 1
