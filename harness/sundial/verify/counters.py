# SPDX-License-Identifier: Apache-2.0
"""The capture against what the fabric counted by itself."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import polars as pl

from sundial.errors import BadInput
from sundial.expect.ip import ETHERNET_HEADER
from sundial.model.segment import MTU_MOST
from sundial.observe import RunDirectory
from sundial.verify.devices import check_counted
from sundial.verify.findings import Finding, as_table, none
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
from sundial.verify.law import BY_LENGTH, Bounds, Counted

SENT_AND_RECEIVED = ("tx_frames", "tx_bytes", "rx_frames", "rx_bytes")
FRAME_MOST = MTU_MOST + ETHERNET_HEADER
BY_LAW = ("offered_frames", "adapter_full", "undelivered", "deferred", "collisions", "excessive_collisions",
          "fragments_seen", "filtered", "flooded", "corrupted", "duplicated", "reordered")  # fmt: skip
"""What follows from the law of a segment's kind; where the law names none, none may have been counted."""

UNPROVEN = (
    "counters: adapter_full if a full ring stops its machine, undelivered, and offered_frames; only their bounds",
    "counters: deferred behind a frame that was given up, reordered if a delay may be zero; only their bounds",
)


def check_counters(run: RunDirectory, frames: pl.DataFrame, counted: Counted) -> pl.DataFrame:
    """A finding for each number in wire/counters.json that is not what the captures hold. `frames` with `fate`;
    `counted`: what follows from the laws of the segments."""
    if run.counters is None:
        # A fabric that was killed wrote none; after a run that went to its end they are there.
        missing = run.document.get("status") == "complete"
        return _findings([("wire/counters.json", "the fabric's counters", "no such file")] if missing else [])
    frames = frames.filter(~pl.col("capture").is_in(list(counted.inner))) if counted.inner else frames
    try:
        segments: dict[str, Any] = run.counters["segments"]
        statistics = {name: counters["ports"] for name, counters in segments.items()}
        known = counted.laws.keys()
        numbers, captured = _counted(statistics, known), _captured(frames, known)
        channels = {name: counters.get("channels", {}) for name, counters in segments.items()}
        by_law = [
            *_against_laws(statistics, frames, counted),
            *_of_channels(channels, counted),
            *_of_the_run(run, run.counters),
        ]
        of_devices = check_counted(run.counters.get("devices", {}), counted)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"has no {error}" if isinstance(error, KeyError) else f"is not as it should be: {error}"
        raise BadInput(what, file=str(run.path / "wire" / "counters.json"), allowed="what the fabric wrote") from None
    names = dict.fromkeys([*numbers, *sorted(captured)])
    pairs = [(name, numbers.get(name, 0), captured.get(name, 0)) for name in names]
    cut = _cut(counted, numbers, captured)
    found = [
        (name, f"{a} by wire/counters.json", f"{b} in the capture")
        for name, a, b in pairs
        if not b <= a <= b + cut.get(name, 0)
    ]
    return pl.concat([_findings([*found, *by_law]), of_devices])


def _cut(counted: Counted, numbers: Mapping[str, int], captured: Mapping[str, int]) -> dict[str, int]:
    """By how much a number may be larger than the capture shows, for the end of the run came first: what a port sent
    behind it others may have received, too."""
    room: dict[str, int] = {}
    for segment, law in counted.laws.items():

        def beyond(port: str, way: str, most: int, segment: str = segment) -> int:
            name = f"{segment} {port} {way}_frames"
            return max(0, min(most, numbers.get(name, 0) - captured.get(name, 0)))

        sent = {port: beyond(port, "tx", most) for port, (most, _) in law.cut.items()}
        for port, (most, late) in law.cut.items():
            others = sum(sent.values()) - sent[port]
            for way, frames in (("tx", most), ("rx", late + others)):
                name = f"{segment} {port} {way}"
                room |= {f"{name}_frames": frames, f"{name}_bytes": beyond(port, way, frames) * FRAME_MOST}
    return room


def _counted(statistics: Mapping[str, Mapping[str, Any]], known: Collection[str]) -> dict[str, int]:
    """What the fabric counted, by what it is of."""
    counted: dict[str, int] = {}
    for segment, ports in statistics.items():
        for port, numbers in ports.items():
            for name in SENT_AND_RECEIVED:
                counted[f"{segment} {port} {name}"] = int(numbers[name])
        if segment in known:
            # Its fates are compared port by port.
            continue
        sums = {
            DROPPED: sum(sum(numbers["dropped"].values()) for numbers in ports.values()),
            **{
                word: sum(int(numbers[name]) for numbers in ports.values())
                for word, name in ((CORRUPTED, CORRUPTED), (DUPLICATED, DUPLICATED), (COLLISION, "collisions"))
            },
        }
        counted |= {f"{segment} {word} frames": number for word, number in sums.items()}
    return counted


def _against_laws(
    statistics: Mapping[str, Mapping[str, Any]], frames: pl.DataFrame, counted: Counted
) -> Iterator[tuple[str, str, str]]:
    """Of segments whose law is known, each counter of each port."""
    rows = []
    for segment, each in counted.laws.items():
        law = each.counted
        others = 0
        for port, numbers in statistics.get(segment, {}).items():
            seen = {name: int(numbers[name]) for name in BY_LAW}
            named = {f"dropped {reason}": int(number) for reason, number in numbers["dropped"].items()}
            reasons = {name for at, name in law if at == port and name.startswith("dropped ")}
            others += sum(number for name, number in named.items() if name not in reasons)
            seen |= {name: named.get(name, 0) for name in reasons}
            # Counters of this kind alone.
            own = {*numbers, *(name for at, name in law if at == port)} - {*seen, *SENT_AND_RECEIVED, "dropped"}
            seen |= {name: int(numbers[name]) for name in sorted(own - reasons)}
            rows += [_row(f"{segment} {port} {name}", law.get((port, name), (0, 0)), seen[name]) for name in seen]
        refused = pl.col("fate_rule").is_in(BY_LENGTH)
        fates = frames.filter(pl.col("interface") == f"{segment}{FATE_SUFFIX}").select(refused.sum()).item()
        rows.append(_row(f"{segment} dropped for other reasons", (int(fates), int(fates)), others))
    return (row for row in rows if row is not None)


def _of_channels(
    statistics: Mapping[str, Mapping[str, Mapping[str, Any]]], counted: Counted
) -> Iterator[tuple[str, str, str]]:
    """Cells of each virtual channel."""
    for segment, channels in statistics.items():
        law = counted.laws[segment].channels if segment in counted.laws else {}
        for channel in sorted({*channels} - {channel for channel, _ in law}):
            yield f"{segment} {channel}", "a channel by wire/counters.json", "none in the capture"
        seen = {
            (channel, name): int(number)
            for channel, numbers in channels.items()
            for name, number in [
                *((name, value) for name, value in numbers.items() if name != "dropped"),
                *((f"dropped {reason}", value) for reason, value in numbers["dropped"].items()),
            ]
        }
        for channel, name in sorted({*law, *seen}):
            row = _row(f"{segment} {channel} {name}", law.get((channel, name), (0, 0)), seen.get((channel, name), 0))
            if row is not None:
                yield row


def _row(name: str, bounds: Bounds, number: int) -> tuple[str, str, str] | None:
    least, most = bounds
    if least <= number <= most:
        return None
    expected = f"{least}" if least == most else f"{least} to {most}"
    return name, f"{number} by wire/counters.json", f"{expected} by the capture and the law of the wire"


def _of_the_run(run: RunDirectory, counters: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """What the file says of the run itself."""
    time = run.document.get("time")
    pairs = [
        ("version", 1),
        ("epoch_ns", run.document.get("epoch_ns")),
        ("virtual_ns", time.get("virtual_ns") if time else None),
    ]
    for name, known in pairs:
        if known is not None and counters.get(name) != known:
            yield name, f"{counters.get(name)} by wire/counters.json", f"{known} by run.json"
    topology = run.document.get("topology") or {}
    for segment, written in topology.get("segments", {}).items():
        statistics = counters["segments"].get(segment, {})
        if statistics.get("kind") != written["kind"] or sorted(statistics.get("ports", {})) != sorted(written["ports"]):
            seen = f"{statistics.get('kind')} with {', '.join(statistics.get('ports', {}))} by wire/counters.json"
            yield segment, seen, f"{written['kind']} with {', '.join(written['ports'])} by run.json"


def _captured(frames: pl.DataFrame, known: Collection[str]) -> dict[str, int]:
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
        .filter(~pl.col("interface").str.strip_suffix(FATE_SUFFIX).is_in(list(known)))
        .group_by(
            pl.col("interface").str.strip_suffix(FATE_SUFFIX).alias("segment"), pl.col("fate").replace(LOST, DROPPED)
        )
        .len()
    )
    return captured | {f"{name} {word} frames": number for name, word, number in fates.iter_rows()}


def _findings(rows: list[tuple[str, str, str]]) -> pl.DataFrame:
    table = as_table(Finding(None, *row) for row in rows)
    return table if rows else none()
