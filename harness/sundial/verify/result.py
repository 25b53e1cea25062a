# SPDX-License-Identifier: Apache-2.0
"""The result of a verification, and how it is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl

from sundial.expect import Leg
from sundial.verify.rules import rule_of
from sundial.verify.sockets.analysis import Analysis
from sundial.verify.workload import Settled
from sundial.whole import whole

VERSION = 1
LISTED = 1000
"""Problems that are written out; all are counted."""

IDENTITY = ("client", "server", "app", "transport", "procedure", "size", "series", "thread", "batch", "call")
GROUP = ("client", "server", "app", "transport", "procedure", "size")


Verdict = Literal["pass", "fail", "checked"]
"""`checked`: there is no scenario to check the capture against; what can be checked without one was right."""

DisplayFilter = Callable[[dict[str, Any]], str | None]
"""A Wireshark display filter for the packets of a call, from its row."""


@dataclass(frozen=True)
class Verification:
    """What verify.json holds; see `to_json`. `problems` lists the first LISTED of `mismatches`."""

    verdict: Verdict
    calls: int
    frames: int
    packets: int
    fragments: int
    retransmissions: dict[str, int]
    mismatches: int
    groups: list[dict[str, Any]]
    classified: dict[str, int]
    unproven: list[str]
    problems: list[dict[str, Any]]
    steps: dict[str, int] | None = None
    """Of a traced run."""
    bounds: list[dict[str, Any]] | None = None
    """Of a scenario with `expect.metrics`, each with what was seen, met ones too."""
    checks: list[dict[str, Any]] | None = None
    """Of a scenario with `expect.check`, each with its words, met ones too."""
    remarks: list[str] | None = None
    """Of a capture from elsewhere: what was learned from it, and what in it was not read. What decoders have read."""
    exchanges: list[dict[str, Any]] | None = None
    """Questions that decoders matched with answers, those alike together."""
    figures: list[dict[str, Any]] | None = None
    """Numbers that programs wrote, those of one name together."""

    def to_json(self) -> dict[str, Any]:
        """The document as written."""
        document = {"version": VERSION, **asdict(self)}
        for name in ("steps", "bounds", "checks", "remarks", "exchanges", "figures"):
            if document[name] is None:
                del document[name]
        return document

    def write(self, path: Path) -> None:
        """Write verify.json."""
        with whole(path) as beside:
            beside.write_text(json.dumps(self.to_json(), indent=1) + "\n")


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


_WAYS = ("request", "reply")


def groups_json(analysis: Analysis, failed: pl.DataFrame) -> list[dict[str, Any]]:
    """Calls alike together: how many, how many findings, expected and observed. `failed`: call, mismatches."""
    calls = analysis.calls.select("id", "kind", *GROUP)
    table = _grouped(calls, analysis.observed, failed, pl.col("kind").first())
    groups = []
    for row in table.iter_rows(named=True):
        call = analysis.expected[row["kind"]]
        groups.append(_group_json(row, {"request": leg_json(call.request), "reply": leg_json(call.reply)}))
    return groups


def settled_groups_json(settled: Settled, failed: pl.DataFrame) -> list[dict[str, Any]]:
    """The same of calls over another transport."""
    table = _grouped(settled.calls, settled.observed, failed)
    return [
        _group_json(row, settled.expected.get((row["transport"], row["procedure"], row["size"]), dict(settled.unsent)))
        for row in table.iter_rows(named=True)
    ]


def _grouped(calls: pl.DataFrame, observed: pl.DataFrame, failed: pl.DataFrame, *more: pl.Expr) -> pl.DataFrame:
    return (
        calls.join(observed.rename({"call": "id"}).drop("transport"), on="id", how="left")
        .join(failed.rename({"call": "id"}), on="id", how="left")
        .group_by(GROUP)
        .agg(
            pl.len().alias("calls"),
            pl.col("mismatches").sum(),
            *more,
            *(pl.col(f"{way}_packets").min().alias(f"{way}_fewest") for way in _WAYS),
            *(pl.col(f"{way}_packets").max().alias(f"{way}_most") for way in _WAYS),
            *(pl.col(f"{way}_retransmissions").sum() for way in _WAYS),
        )
        .sort(GROUP)
    )


def _group_json(row: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    return {
        **{name: row[name] for name in GROUP},
        "calls": row["calls"],
        "mismatches": row["mismatches"],
        "expected": expected,
        "seen": {
            way: {
                "packets": [row[f"{way}_fewest"], row[f"{way}_most"]],
                "retransmissions": row[f"{way}_retransmissions"],
            }
            for way in _WAYS
        },
    }


def exchanges_json(table: pl.DataFrame) -> list[dict[str, Any]]:
    """Exchanges alike together, in the order of the first of each; times in ns."""
    alike = ["decoder", "transport", "client", "server", "port", "procedure"]
    return table.group_by(alike, maintain_order=True).agg(
        exchanges=pl.len(),
        answered=pl.col("ok").sum(),
        retransmissions=pl.col("retransmissions").sum(),
        **_spread("rtt_ns"),
    ).to_dicts()  # fmt: skip


def figures_json(table: pl.DataFrame) -> list[dict[str, Any]]:
    """Numbers of one figure of a program on a machine together."""
    values = table.with_columns(pl.col("value").cast(pl.Float64))
    alike = ["program", "machine", "figure"]
    return values.group_by(alike, maintain_order=True).agg(values=pl.len(), **_spread("value")).to_dicts()


def _spread(column: str) -> dict[str, pl.Expr]:
    """Least, median and greatest value; null if there is none."""
    values = pl.col(column)
    parts = {"min": values.min(), "median": values.median(), "max": values.max()}
    return {f"{column}_{name}": part.cast(pl.Float64) for name, part in parts.items()}


def problems_json(
    findings: pl.DataFrame, frames: pl.DataFrame, calls: pl.DataFrame, filter_of: DisplayFilter
) -> list[dict[str, Any]]:
    """The first LISTED findings, with their frames in the original captures and a display filter."""
    shown = findings.head(LISTED)
    rows = shown.select(pl.col("rows").explode()).drop_nulls()["rows"].unique()
    places = {
        row: (capture, frame)
        for row, capture, frame in frames.filter(pl.col("row").is_in(rows.implode()))
        .select("row", "capture", "frame")
        .iter_rows()
    }
    concerned = calls.filter(pl.col("id").is_in(shown["call"].drop_nulls().unique().implode()))
    named = {row["id"]: row for row in concerned.iter_rows(named=True)}
    return [_problem(row, named.get(row["call"]), places, filter_of) for row in shown.iter_rows(named=True)]


def _problem(
    finding: dict[str, Any],
    call: dict[str, Any] | None,
    places: dict[int, tuple[str, int]],
    filter_of: DisplayFilter,
) -> dict[str, Any]:
    by_capture: dict[str, list[int]] = {}
    for row in finding["rows"]:
        if row in places:
            capture, frame = places[row]
            by_capture.setdefault(capture, []).append(frame)
    captures = [*by_capture, None]
    frames = sorted(by_capture.get(captures[0], [])) if captures[0] else []
    parts = [f"({text})" for text in (filter_of(call) if call else None,) if text]
    if frames:
        parts.append(f"frame.number in {{{', '.join(map(str, frames))}}}")
    rule = rule_of(finding["field"])
    problem = {
        "rule": rule.name,
        "severity": rule.severity,
        "call": {name: call[name] for name in (*IDENTITY, "xid")} if call else None,
        "capture": captures[0],
        "frames": frames,
        "field": finding["field"],
        "expected": finding["expected"],
        "seen": finding["seen"],
        "filter": " || ".join(parts),
    }
    if len(by_capture) > 1:
        problem["elsewhere"] = {capture: sorted(by_capture[capture]) for capture in list(by_capture)[1:]}
    return problem
