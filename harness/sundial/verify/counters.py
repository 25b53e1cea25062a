# SPDX-License-Identifier: Apache-2.0
"""The capture against what the fabric counted by itself."""

from __future__ import annotations

from typing import Any

import polars as pl

from sundial.errors import BadInput
from sundial.observe import RunDirectory
from sundial.verify.findings import FINDING, none
from sundial.verify.frames import (
    COLLISION,
    CORRUPTED,
    DROPPED,
    DUPLICATED,
    FATE_SUFFIX,
    INBOUND,
    LOST,
    OUTBOUND,
)


def check_counters(run: RunDirectory, frames: pl.DataFrame) -> pl.DataFrame:
    """A finding for each number in wire/counters.json that is not what the captures hold. `frames` with `fate`."""
    if run.counters is None:
        # A fabric that was killed wrote none; after a run that went to its end they are there.
        missing = run.document.get("status") == "complete"
        return _findings([("wire/counters.json", "the fabric's counters", "no such file")] if missing else [])
    counted, captured = _counted(run), _captured(frames)
    names = dict.fromkeys([*counted, *sorted(captured)])
    pairs = [(name, counted.get(name, 0), captured.get(name, 0)) for name in names]
    return _findings([(name, f"{a} by wire/counters.json", f"{b} in the capture") for name, a, b in pairs if a != b])


def _counted(run: RunDirectory) -> dict[str, int]:
    """What the fabric counted, by what it is of. Raises BadInput."""
    counted: dict[str, int] = {}
    try:
        segments: dict[str, Any] = (run.counters or {})["segments"]
        for segment, counters in segments.items():
            ports: dict[str, dict[str, Any]] = counters["ports"]
            for port, numbers in ports.items():
                for name in ("tx_frames", "tx_bytes", "rx_frames", "rx_bytes"):
                    counted[f"{segment} {port} {name}"] = int(numbers[name])
            sums = {
                DROPPED: sum(sum(numbers["dropped"].values()) for numbers in ports.values()),
                **{
                    word: sum(int(numbers[name]) for numbers in ports.values())
                    for word, name in ((CORRUPTED, CORRUPTED), (DUPLICATED, DUPLICATED), (COLLISION, "collisions"))
                },
            }
            counted |= {f"{segment} {word} frames": number for word, number in sums.items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"has no {error}" if isinstance(error, KeyError) else f"is not as it should be: {error}"
        raise BadInput(what, file=str(run.path / "wire" / "counters.json"), allowed="what the fabric wrote") from None
    return counted


def _captured(frames: pl.DataFrame) -> dict[str, int]:
    """The same from the captures; what is nowhere in them is left out. A `lost` frame counts among the dropped."""
    segment = pl.col("capture").str.extract(r"([^/]+)\.pcapng$")
    ways = {OUTBOUND: "tx", INBOUND: "rx"}
    ports = (
        frames.filter(pl.col("fate").is_null(), pl.col("direction").is_in(list(ways)))
        .group_by(segment.alias("segment"), "interface", "direction")
        .agg(frames=pl.len(), bytes=pl.col("frame_length").sum())
    )
    captured: dict[str, int] = {}
    for name, interface, direction, number, size in ports.iter_rows():
        captured[f"{name} {interface} {ways[direction]}_frames"] = number
        captured[f"{name} {interface} {ways[direction]}_bytes"] = size
    fates = (
        frames.filter(pl.col("fate").is_not_null())
        .group_by(
            pl.col("interface").str.strip_suffix(FATE_SUFFIX).alias("segment"), pl.col("fate").replace(LOST, DROPPED)
        )
        .len()
    )
    return captured | {f"{name} {word} frames": number for name, word, number in fates.iter_rows()}


def _findings(rows: list[tuple[str, str, str]]) -> pl.DataFrame:
    table = pl.DataFrame([(None, *row, []) for row in rows], schema=FINDING, orient="row")
    return table if rows else none()
