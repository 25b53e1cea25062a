# SPDX-License-Identifier: Apache-2.0
"""Parts of a capture, each verified alone, put together: as if they had been verified at once.

Calls are numbered in the order in which they begin, and findings are listed in that of their frames.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from sundial.verify import classification
from sundial.verify.result import GROUP, LISTED, DisplayFilter, Verification, groups_json, problems_json
from sundial.verify.sockets.analysis import Analysis

_NEVER = 1 << 62


@dataclass(frozen=True)
class _Problem:
    """`place`: where it is listed, but for its call; `call`: the part's own number of it."""

    place: int
    call: int | None
    text: tuple[str, str, str]
    document: dict[str, Any]


@dataclass(frozen=True)
class Part:
    """What is left of a part when it has been verified."""

    flows: int
    calls: pl.DataFrame
    """id, start_ns, first_frame."""
    frames: int
    packets: int
    fragments: int
    retransmissions: dict[str, int]
    mismatches: int
    classified: dict[str, int]
    groups: list[dict[str, Any]]
    begins: dict[tuple[Any, ...], int]
    """The first call of each group."""
    problems: list[_Problem]


def part_of(
    analysis: Analysis, flows: int, classified: pl.DataFrame, findings: pl.DataFrame, filter_of: DisplayFilter
) -> Part:
    """`classified`: its frames; `findings`: all of it; `flows`: how many it has."""
    failed = findings.filter(pl.col("call").is_not_null()).group_by("call").agg(mismatches=pl.len())
    shown = findings.with_columns(place=pl.col("rows").list.min().fill_null(_NEVER).cast(pl.Int64))
    shown = shown.sort("place", "call", "field", "expected", "seen").head(LISTED)
    numbers = classified.join(shown.select(row="place").unique(), on="row", how="semi")
    frame_of = dict(numbers.select("row", "frame").iter_rows()) if not shown.is_empty() else {}
    documents = problems_json(shown.drop("place"), classified, analysis.calls, filter_of)
    first = analysis.calls.group_by(GROUP).agg(pl.col("id").min())
    return Part(
        flows=flows,
        calls=analysis.calls.select("id", "start_ns", "first_frame"),
        frames=classified.height,
        packets=analysis.packets,
        fragments=analysis.fragments,
        retransmissions=analysis.retransmissions,
        mismatches=findings.height,
        classified=classification.counts(classified),
        groups=groups_json(analysis, failed),
        begins={tuple(row[:-1]): row[-1] for row in first.iter_rows()},
        problems=[
            _Problem(
                frame_of.get(row["place"], _NEVER), row["call"], (row["field"], row["expected"], row["seen"]), document
            )
            for row, document in zip(shown.iter_rows(named=True), documents, strict=True)
        ],
    )


def together(parts: Sequence[Part], unproven: list[str], remarks: list[str]) -> Verification:
    """The verification of the capture that the parts are of."""
    wanted = [
        (place, call)
        for place, part in enumerate(parts)
        for call in {*part.begins.values(), *(each.call for each in part.problems if each.call is not None)}
    ]
    numbers = _numbers(parts, wanted)
    problems = [
        (each.place, -1 if each.call is None else numbers[place, each.call], each.text, each.document)
        for place, part in enumerate(parts)
        for each in part.problems
    ]
    problems.sort(key=lambda problem: problem[:3])
    for _, number, _, document in problems:
        if document["call"] is not None:
            document["call"]["call"] = number
    mismatches = sum(part.mismatches for part in parts)
    return Verification(
        verdict="fail" if mismatches else "pass",
        calls=sum(part.calls.height for part in parts),
        frames=sum(part.frames for part in parts),
        packets=sum(part.packets for part in parts),
        fragments=sum(part.fragments for part in parts),
        retransmissions=_sum(part.retransmissions for part in parts),
        mismatches=mismatches,
        groups=_groups(parts, numbers),
        classified=_sum(part.classified for part in parts),
        unproven=unproven,
        remarks=remarks,
        problems=[document for *_, document in problems[:LISTED]],
    )


def _numbers(parts: Sequence[Part], wanted: list[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """Numbers of some calls, by part and the part's own number."""
    tables = [part.calls.with_columns(part=pl.lit(place, pl.UInt32)) for place, part in enumerate(parts)]
    order = pl.concat(tables).sort("start_ns", "first_frame", "part", "id").with_row_index("number")
    asked = pl.DataFrame(wanted, schema={"part": pl.UInt32, "id": order.schema["id"]}, orient="row")
    found = asked.join(order, on=["part", "id"], how="inner").select("part", "id", "number")
    return {(part, call): number for part, call, number in found.iter_rows()}


def _groups(parts: Sequence[Part], numbers: dict[tuple[int, int], int]) -> list[dict[str, Any]]:
    alike: dict[tuple[Any, ...], list[tuple[int, dict[str, Any]]]] = {}
    for place, part in enumerate(parts):
        for group in part.groups:
            name = tuple(group[each] for each in GROUP)
            alike.setdefault(name, []).append((numbers[place, part.begins[name]], group))
    return [_group([group for _, group in sorted(alike[name], key=lambda each: each[0])]) for name in sorted(alike)]


def _group(groups: list[dict[str, Any]]) -> dict[str, Any]:
    """Of groups of the same name; what is expected is that of the first call."""
    seen = {
        way: {
            "packets": [
                min(_known(group["seen"][way]["packets"][0] for group in groups), default=None),
                max(_known(group["seen"][way]["packets"][1] for group in groups), default=None),
            ],
            "retransmissions": sum(group["seen"][way]["retransmissions"] for group in groups),
        }
        for way in groups[0]["seen"]
    }
    counts = {name: sum(group[name] for group in groups) for name in ("calls", "mismatches")}
    return {**groups[0], **counts, "seen": seen}


def _known(values: Iterable[int | None]) -> list[int]:
    return [value for value in values if value is not None]


def _sum(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        for name, number in each.items():
            total[name] += number
    return dict(total)
