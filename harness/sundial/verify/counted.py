# SPDX-License-Identifier: Apache-2.0
"""The capture against what others counted by themselves: the fabric its frames, a client's kernel its TCP segments."""

from __future__ import annotations

from typing import Any

import polars as pl

from sundial.errors import BadInput
from sundial.observe import RunDirectory
from sundial.verify.core import Analysis
from sundial.verify.findings import FINDING, findings, none
from sundial.verify.flows import CORRUPTED, DROPPED, DUPLICATED, FATE_SUFFIX, LOST

INBOUND, OUTBOUND = 1, 2
COLLISION = "collision"


def check_counters(run: RunDirectory, frames: pl.DataFrame) -> pl.DataFrame:
    """A finding for each number in wire/counters.json that is not what the captures hold. `frames` with `fate`."""
    if run.counters is None:
        # A fabric that was killed wrote none; after a run that went to its end they are there.
        missing = run.document.get("status") == "complete"
        return _findings([("wire/counters.json", "the fabric's counters", "no such file")] if missing else [])
    told, seen = _told(run), _counted(frames)
    pairs = [(name, told.get(name, 0), seen.get(name, 0)) for name in dict.fromkeys([*told, *sorted(seen)])]
    return _findings([(name, f"{a} by wire/counters.json", f"{b} in the capture") for name, a, b in pairs if a != b])


def check_tcp(analysis: Analysis, batches: pl.DataFrame) -> pl.DataFrame:
    """A finding for each batch whose requests TCP repeated another number of times than the client's kernel says.

    `batches`: client, batch, tcp_retransmits. The kernel counts for one connection, so a batch that took several (calls
    that failed) is left out, and the segments that it made and the adapter dropped are not seen.
    """
    again = analysis.observed.filter(pl.col("transport") == "tcp").select("call", again="request_retransmissions")
    dropped = (
        analysis.frames.filter(pl.col("fate") == DROPPED, ~pl.col("reply"), pl.col("call").is_not_null())
        .group_by("call")
        .agg(dropped=pl.len())
    )
    table = (
        analysis.calls.rename({"id": "call", "call": "number"})
        .join(again, on="call", how="inner")
        .join(dropped, on="call", how="left")
        .group_by("client", "batch")
        .agg(
            pl.col("call").first(),
            pl.col("again").sum().cast(pl.Int64),
            pl.col("dropped").sum().cast(pl.Int64),
            one=(pl.col("conn").n_unique() == 1) & pl.col("ok").all(),
        )
        .filter("one")
        .join(batches.drop_nulls(), on=["client", "batch"], how="inner")
        .sort("call")
    )
    told = pl.col("tcp_retransmits")
    wrong = (pl.col("again") > told) | (pl.col("again") < told - pl.col("dropped"))
    return findings(
        table,
        wrong,
        pl.lit("batch.tcp_retransmits"),
        pl.format("{} by the client's kernel", told),
        pl.format("{} in the capture", "again"),
        rows=None,
    )


def _told(run: RunDirectory) -> dict[str, int]:
    """What the fabric counted, by what it is of. Raises BadInput."""
    told: dict[str, int] = {}
    try:
        segments: dict[str, Any] = (run.counters or {})["segments"]
        for segment, counters in segments.items():
            ports: dict[str, dict[str, Any]] = counters["ports"]
            for port, numbers in ports.items():
                for name in ("tx_frames", "tx_bytes", "rx_frames", "rx_bytes"):
                    told[f"{segment} {port} {name}"] = int(numbers[name])
            sums = {
                DROPPED: sum(sum(numbers["dropped"].values()) for numbers in ports.values()),
                **{
                    word: sum(int(numbers[name]) for numbers in ports.values())
                    for word, name in ((CORRUPTED, CORRUPTED), (DUPLICATED, DUPLICATED), (COLLISION, "collisions"))
                },
            }
            told |= {f"{segment} {word} frames": number for word, number in sums.items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"has no {error}" if isinstance(error, KeyError) else f"is not as it should be: {error}"
        raise BadInput(what, file=str(run.path / "wire" / "counters.json"), allowed="what the fabric wrote") from None
    return told


def _counted(frames: pl.DataFrame) -> dict[str, int]:
    """The same from the captures; what is nowhere in them is left out. A `lost` frame counts among the dropped."""
    segment = pl.col("capture").str.extract(r"([^/]+)\.pcapng$")
    ways = {OUTBOUND: "tx", INBOUND: "rx"}
    ports = (
        frames.filter(pl.col("fate").is_null(), pl.col("direction").is_in(list(ways)))
        .group_by(segment.alias("segment"), "interface", "direction")
        .agg(frames=pl.len(), bytes=pl.col("frame_length").sum())
    )
    seen: dict[str, int] = {}
    for name, interface, direction, number, size in ports.iter_rows():
        seen[f"{name} {interface} {ways[direction]}_frames"] = number
        seen[f"{name} {interface} {ways[direction]}_bytes"] = size
    fates = (
        frames.filter(pl.col("fate").is_not_null())
        .group_by(
            pl.col("interface").str.strip_suffix(FATE_SUFFIX).alias("segment"), pl.col("fate").replace(LOST, DROPPED)
        )
        .len()
    )
    return seen | {f"{name} {word} frames": number for name, word, number in fates.iter_rows()}


def _findings(rows: list[tuple[str, str, str]]) -> pl.DataFrame:
    table = pl.DataFrame([(None, *row, []) for row in rows], schema=FINDING, orient="row")
    return table if rows else none()
