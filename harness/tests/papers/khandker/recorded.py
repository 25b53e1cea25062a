# SPDX-License-Identifier: Apache-2.0
"""A reproduction as it was measured: recorded.json, from `sundial reproduce khandker --quick` with seed 1."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl

from sundial.papers.khandker.costs import Costs
from sundial.papers.khandker.reproduce import KIND
from sundial.papers.khandker.results import POLICIES, Latency, Picture, Rate, Results, Seen, StepSeen, Twins
from sundial.reproduce.fit import Candidate

RECORDED = Path(__file__).with_name("recorded.json")
SHOWN = (-1, 1392, 4016, 8032, 16064, 24096, 64256)
"""Sizes whose steps are recorded."""


def results() -> Results:
    """All of it."""
    return undumped(json.loads(RECORDED.read_text()))


def dumped(of: Results) -> dict[str, Any]:
    """As recorded.json has it; numbers in us to three places."""
    assert of.costs is not None
    assert of.twins is not None
    assert of.picture is not None
    return _rounded(
        {
            "tried": [[str(each.mips), [[*at, us] for at, us in each.measured.items()]] for each in of.tried],
            "best": str(of.best.mips),
            "costs": {"steps": of.costs.steps, "ticks": of.costs.ticks, "every": of.costs.tick_every_us},
            "first_us": of.first_us,
            "latency": {policy: _latency_dumped(latency) for policy, latency in of.latency.items()},
            "rates": [[*key, rate.calls, rate.span_s, rate.failed] for key, rate in of.rates.items()],
            "runs": {wire: [run, list(captures)] for wire, (run, captures) in of.rate_runs.items()},
            "twins": asdict(of.twins),
            "picture": [of.picture.client, of.picture.rtt_ns, of.picture.pieces.to_dict(as_series=False)],
        }
    )  # type: ignore[no-any-return]


def _latency_dumped(of: Latency) -> dict[str, Any]:
    return {
        "run": of.run,
        "captures": of.captures,
        "sizes": {size: asdict(seen) for size, seen in of.sizes.items()},
        "steps": {
            size: [[*key, seen.times, seen.work_us, seen.path_us] for key, seen in table.items()]
            for size, table in of.steps.items()
            if size in SHOWN
        },
        "exact": of.exact,
        "calls": of.calls,
        "slack_us": of.slack_us,
    }


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, Mapping):
        return {str(key): _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list | tuple) else value


def undumped(read: Mapping[str, Any]) -> Results:
    """The other way."""
    paper = KIND.paper()
    tried = [
        Candidate(Decimal(mips), {(at, size): us for at, size, us in measured}, 0.1) for mips, measured in read["tried"]
    ]
    costs = read["costs"]
    client, rtt_ns, pieces = read["picture"]
    twins = read["twins"]
    return Results(
        paper,
        "quick",
        next(each for each in tried if str(each.mips) == read["best"]),
        tried,
        Costs(_by_size(costs["steps"]), _by_size(costs["ticks"]), costs["every"]),
        {int(size): us for size, us in read["first_us"].items()},
        {policy: _latency(read["latency"][policy]) for policy in POLICIES},
        {(wire, procedure, n): Rate(*rest) for wire, procedure, n, *rest in read["rates"]},
        {wire: (run, tuple(captures)) for wire, (run, captures) in read["runs"].items()},
        Twins((twins["runs"][0], twins["runs"][1]), twins["compared"], tuple(twins["differ"])),
        Picture(client, rtt_ns, pl.DataFrame(pieces)),
    )


def _by_size(of: Mapping[str, Mapping[str, float]]) -> dict[str, dict[int, float]]:
    return {name: {int(size): us for size, us in points.items()} for name, points in of.items()}


def _latency(read: Mapping[str, Any]) -> Latency:
    return Latency(
        read["run"],
        tuple(read["captures"]),
        {int(size): _seen(seen) for size, seen in read["sizes"].items()},
        {
            int(size): {(node, step): StepSeen(*rest) for node, step, *rest in rows}
            for size, rows in read["steps"].items()
        },
        read["exact"],
        read["calls"],
        tuple(read["slack_us"]),
    )


def _seen(read: Mapping[str, Any]) -> Seen:
    return Seen(
        tuple(read["times_us"]),
        tuple(read["packets"]),
        tuple(map(tuple, read["bursts"])),
        tuple(read["data"]),
        read["facks"],
    )
