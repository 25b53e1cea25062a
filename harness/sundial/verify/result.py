# SPDX-License-Identifier: Apache-2.0
"""The result of a verification, and how it is written."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl

from sundial.expect import Leg
from sundial.expect.mbcf import Frame, mbcf_leg
from sundial.verify.core import Analysis
from sundial.verify.mbcf import PREFIX, Settled

VERSION = 1
LISTED = 1000
"""Problems that are written out; all are counted."""

IDENTITY = ("client", "server", "app", "transport", "procedure", "size", "series", "thread", "batch", "call")
GROUP = ("client", "server", "app", "transport", "procedure", "size")


@dataclass(frozen=True)
class Verification:
    """What verify.json holds; see `to_json`. `problems` lists the first LISTED of `mismatches`."""

    verdict: Literal["pass", "fail"]
    calls: int
    frames: int
    packets: int
    fragments: int
    retransmissions: dict[str, int]
    mismatches: int
    groups: list[dict[str, Any]]
    classified: dict[str, int]
    problems: list[dict[str, Any]]

    def to_json(self) -> dict[str, Any]:
        """The document as written."""
        return {"version": VERSION, **asdict(self)}

    def write(self, path: Path) -> None:
        """Write verify.json."""
        path.write_text(json.dumps(self.to_json(), indent=1) + "\n")


def leg_json(leg: Leg) -> dict[str, Any]:
    """An expected leg: lengths in bytes; bounds where TCP leaves a choice."""
    return {
        "message": leg.message,
        "payload": leg.payload,
        "packets": len(leg.packets),
        "lengths": list(leg.lengths),
        "offsets": [packet.offset for packet in leg.packets] if leg.transport == "udp" else [],
        "records": list(leg.records),
        "frame_bytes": leg.frame_bytes,
        "padded_frame_bytes": leg.padded_frame_bytes,
        "wire_bytes": leg.wire_bytes,
        "exact": leg.exact,
        "fewest": leg.fewest,
        "most": leg.most,
    }


def groups_json(analysis: Analysis, failed: pl.DataFrame) -> list[dict[str, Any]]:
    """Calls alike together: how many, how many findings, expected and seen. `failed`: call, mismatches."""
    calls = analysis.calls.select("id", "kind", *GROUP)
    seen = analysis.observed.rename({"call": "id"})
    names = ("request", "reply")
    table = (
        calls.join(seen.drop("transport"), on="id", how="left")
        .join(failed.rename({"call": "id"}), on="id", how="left")
        .group_by(GROUP)
        .agg(
            pl.len().alias("calls"),
            pl.col("mismatches").sum(),
            pl.col("kind").first(),
            *(pl.col(f"{name}_packets").min().alias(f"{name}_fewest") for name in names),
            *(pl.col(f"{name}_packets").max().alias(f"{name}_most") for name in names),
            *(pl.col(f"{name}_retransmissions").sum() for name in names),
        )
        .sort(GROUP)
    )
    result = []
    for row in table.iter_rows(named=True):
        expected = analysis.expected[row["kind"]]
        result.append(
            {
                **{name: row[name] for name in GROUP},
                "calls": row["calls"],
                "mismatches": row["mismatches"],
                "expected": {"request": leg_json(expected.request), "reply": leg_json(expected.reply)},
                "seen": {
                    name: {
                        "packets": [row[f"{name}_fewest"], row[f"{name}_most"]],
                        "retransmissions": row[f"{name}_retransmissions"],
                    }
                    for name in names
                },
            }
        )
    return result


def mbcf_groups_json(calls: pl.DataFrame, settled: Settled, failed: pl.DataFrame) -> list[dict[str, Any]]:
    """The same of calls and operations over MBCF; lengths are those of payloads behind the header."""
    seen = settled.observed.rename({"call": "id"}).drop("transport")
    table = (
        calls.join(seen, on="id", how="left")
        .join(failed.rename({"call": "id"}), on="id", how="left")
        .group_by(GROUP)
        .agg(
            pl.len().alias("calls"),
            pl.col("mismatches").sum(),
            *(pl.col(f"{way}_packets").min().alias(f"{way}_fewest") for way in ("request", "reply")),
            *(pl.col(f"{way}_packets").max().alias(f"{way}_most") for way in ("request", "reply")),
            *(pl.col(f"{way}_retransmissions").sum() for way in ("request", "reply")),
        )
        .sort(GROUP)
    )
    result = []
    for row in table.iter_rows(named=True):
        legs = settled.expected.get((row["transport"], row["procedure"], row["size"]), ((), ()))
        ways = ("request", "reply")
        result.append(
            {
                **{name: row[name] for name in GROUP},
                "calls": row["calls"],
                "mismatches": row["mismatches"],
                "expected": {way: _frames_json(leg) for way, leg in zip(ways, legs, strict=True)},
                "seen": {
                    way: {
                        "packets": [row[f"{way}_fewest"], row[f"{way}_most"]],
                        "retransmissions": row[f"{way}_retransmissions"],
                    }
                    for way in ways
                },
            }
        )
    return result


def _frames_json(frames: tuple[Frame, ...]) -> dict[str, Any]:
    return leg_json(mbcf_leg(frames))


def problems_json(findings: pl.DataFrame, frames: pl.DataFrame, calls: pl.DataFrame) -> list[dict[str, Any]]:
    """The first LISTED findings, with their frames in the original captures and a display filter."""
    shown = findings.head(LISTED)
    rows = shown.select(pl.col("rows").explode()).drop_nulls()["rows"].unique()
    places = {
        row: (capture, frame)
        for row, capture, frame in frames.filter(pl.col("row").is_in(rows.implode()))
        .select("row", "capture", "frame")
        .iter_rows()
    }
    wanted = calls.filter(pl.col("id").is_in(shown["call"].drop_nulls().unique().implode()))
    named = {row["id"]: row for row in wanted.iter_rows(named=True)}
    return [_problem(row, named.get(row["call"]), places) for row in shown.iter_rows(named=True)]


def _problem(
    finding: dict[str, Any], call: dict[str, Any] | None, places: dict[int, tuple[str, int]]
) -> dict[str, Any]:
    found: dict[str, list[int]] = {}
    for row in finding["rows"]:
        if row in places:
            capture, frame = places[row]
            found.setdefault(capture, []).append(frame)
    captures = [*found, None]
    frames = sorted(found.get(captures[0], [])) if captures[0] else []
    problem = {
        "call": {name: call[name] for name in (*IDENTITY, "xid")} if call else None,
        "capture": captures[0],
        "frames": frames,
        "field": finding["field"],
        "expected": finding["expected"],
        "seen": finding["seen"],
        "filter": display_filter(call, frames),
    }
    if len(found) > 1:
        problem["elsewhere"] = {capture: sorted(found[capture]) for capture in list(found)[1:]}
    return problem


def display_filter(call: dict[str, Any] | None, frames: list[int]) -> str:
    """A Wireshark display filter that shows a call's packets and the frames of a problem."""
    parts = []
    if call is not None and call["protocol"] == PREFIX:
        if call["xid"] is not None:
            name = "mbcf.op_id == {}" if call["transport"] == PREFIX else "mbcf.rpc.xid == 0x{:08x}"
            parts.append(f"({name.format(call['xid'])})")
    elif call is not None:
        way = f"ip.addr == {call['client_address']} && {call['transport']}.port == {call['client_port']}"
        if call["protocol"] == "sunrpc" and call["xid"] is not None:
            way += f" && rpc.xid == 0x{call['xid']:08x}"
        parts.append(f"({way})")
    if frames:
        parts.append(f"frame.number in {{{', '.join(map(str, frames))}}}")
    return " || ".join(parts)
