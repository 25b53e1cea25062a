# SPDX-License-Identifier: Apache-2.0
"""The experiments of khandker: the machines' speed, calls by size that are traced, calls by threads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from statistics import mean
from typing import Any

import polars as pl

from sundial.errors import RunFailed
from sundial.papers.khandker.costs import unit_costs
from sundial.papers.khandker.counts import Policy
from sundial.papers.khandker.extents import HUB, LARGE, SIZES, SUMMED, Extent
from sundial.papers.khandker.packets import OnWire, Wire
from sundial.papers.khandker.paper import Khandker
from sundial.papers.khandker.results import NULL, POLICIES, Latency, Picture, Rate, Results, Seen, Twins, step_table
from sundial.papers.khandker.steps import Occurrence, kernel_threads, named, pieces_of, renamed
from sundial.reproduce.fit import Point, nearest
from sundial.reproduce.measure import Measured
from sundial.reproduce.runs import Bench, Spec
from sundial.units import MIPS_VALUES

FIRST_MIPS = Decimal("7.8125")
"""Where the search for the machine model begins, and where it has ended so far."""
FITTED: Mapping[Point, int] = {(2, 0): NULL, (2, LARGE): LARGE}
"""Columns of table 2 that the speed is fitted to."""
TRIED = 3
CLIENT, SERVER = "client", "server"
PICTURED = 24096
"""Figure 5's."""
SAME_FILES = ("wire/*.pcapng", "nodes/*/samples.jsonl", "nodes/*/console.log")


def perform(paper: Khandker, bench: Bench, extent: Extent, scale: str) -> Results:
    """All runs. Raises RunFailed where the machine model cannot be found."""
    after_fit = 1 + len(POLICIES) + len(extent.wires)
    bench.expect(TRIED + after_fit)
    fits: dict[Decimal, Measured] = {}

    def measure(mips: Decimal) -> Mapping[Point, float]:
        words = str(mips.normalize()).replace(".", "-")
        run = bench.make(_fit_spec(f"fit-{words}-mips", f"null and {LARGE} bytes at {mips:f} mips", extent, {}), mips)
        if run is None:
            raise RunFailed(f"fit-{words}-mips was not measured, so the machines' speed is not known")
        fits[mips] = run
        return {point: mean(_later_us(run, size)) for point, size in FITTED.items()}

    best, tried = nearest(
        MIPS_VALUES, FIRST_MIPS, {point: float(paper.measured_us(point[1])) for point in FITTED}, measure
    )
    bench.expect(after_fit)
    results = Results(paper, scale, best, tried)
    traced = _fit_spec("traced", f"null and {LARGE} bytes, traced: what a trace costs", extent, {"trace": "steps"})
    asked = [
        traced,
        *(_latency_spec(policy, extent) for policy in POLICIES),
        *(_threads_spec(wire, extent) for wire in extent.wires),
    ]
    runs = bench.make_all((spec, best.mips) for spec in asked)
    twin = next(runs)
    if twin is not None:
        results.twins = _twins(fits[best.mips], twin)
    for policy, run in zip(POLICIES, runs, strict=False):
        if run is not None:
            results.latency[policy], picture = _latency(run)
            results.picture = results.picture or picture
    for wire, run in zip(extent.wires, runs, strict=True):
        if run is not None:
            _take_rates(results, wire, run)
    return results


# ---- what is run ----


def _workload(**more: Any) -> dict[str, Any]:
    return {"app": "dce", "transports": ["udp"], "warmup": 2, **more}


def _fit_spec(name: str, about: str, extent: Extent, more: Mapping[str, Any]) -> Spec:
    both = _workload(procedures=["null", "put"], sizes=[LARGE], calls=extent.calls, **more)
    return Spec(name, about, HUB, [both])


def _latency_spec(policy: Policy, extent: Extent) -> Spec:
    sizes = SIZES if policy == POLICIES[0] else SUMMED
    about = f"calls by size, traced; the sender's policy is {policy}"
    calls = _workload(
        procedures=["null", "put"], sizes=list(sizes), calls=extent.calls, connection="per-size", policy=policy,
        trace="steps",
    )  # fmt: skip
    return Spec(f"latency-{policy}", about, HUB, [calls])


def _threads_spec(wire: str, extent: Extent) -> Spec:
    calls = [
        _workload(procedures=[procedure], sizes=[LARGE], calls=-(-extent.thread_calls // threads), threads=threads)
        for procedure in ("null", "put")
        for threads in extent.threads
    ]
    return Spec(f"threads-{wire}", f"calls by threads, {wire}", wire, calls)


# ---- what is taken from it ----


def _later_us(run: Measured, size: int) -> list[float]:
    """Round trips of calls after those that warm up. Raises RunFailed for none."""
    procedure = "null" if size == NULL else "put"
    times = run.calls(procedure=procedure, size=max(size, 0), ok=True)["rtt_ns"].to_list()
    if not times:
        raise RunFailed(f"{run.folder.name} has no call of {procedure} that succeeded")
    return [each / 1e3 for each in times]


def _latency(run: Measured) -> tuple[Latency, Picture | None]:
    steps = pl.read_parquet(run.folder / "steps.parquet")
    kernel = kernel_threads(steps)
    of_calls = {key[0]: part for key, part in steps.partition_by("call", as_dict=True).items()}
    wire = Wire(run.folder, run.run, CLIENT, SERVER)
    samples = run.samples.with_row_index("place").filter("ok")
    sizes: dict[int, Seen] = {}
    tables = {}
    costs: list[tuple[int, Sequence[Occurrence]]] = []
    slack: list[float] = []
    picture = None
    for (procedure, size), part in samples.group_by("procedure", "size", maintain_order=True):
        later = part.filter(~pl.col("warmup"))
        if later.is_empty():
            continue
        key = NULL if procedure == "null" else int(str(size))
        rows = list(later.iter_rows(named=True))
        done = [named(pieces_of(of_calls[row["place"]]), CLIENT, kernel) for row in rows]
        sizes[key] = _seen(part, [wire.during(row["start_ns"], row["end_ns"]) for row in rows])
        tables[key] = step_table(done)
        if procedure == "null":
            slack = [_slack_us(each) for each in done]
        else:
            costs += [(key, each) for each in done]
        if key == PICTURED:
            middle = later.sort("rtt_ns", "place").row((later.height - 1) // 2, named=True)
            pieces = renamed(of_calls[middle["place"]], CLIENT, kernel, middle["start_ns"])
            picture = Picture(CLIENT, middle["rtt_ns"], pieces)
    verdict = json.loads((run.folder / "verify.json").read_text()).get("steps") or {}
    latency = Latency(
        run.folder.name, run.captures, sizes, tables, unit_costs(costs), int(verdict.get("exact", 0)),
        int(verdict.get("calls", 0)), tuple(slack),
    )  # fmt: skip
    return latency, picture


def _seen(part: pl.DataFrame, on_wire: Sequence[OnWire]) -> Seen:
    later = part.filter(~pl.col("warmup"))
    first = part.filter(pl.col("xid") == 0)
    return Seen(
        tuple(each / 1e3 for each in later["rtt_ns"].to_list()),
        first["rtt_ns"][0] / 1e3 if first.height else None,
        tuple(sorted({each.packets for each in on_wire})),
        tuple(sorted({each.bursts for each in on_wire})),
        on_wire[0].requests[0].data if on_wire[0].requests else (),
        mean(len(each.facks) for each in on_wire),
    )


def _slack_us(occurrences: Sequence[Occurrence]) -> float:
    """From when the client has nothing more to do until the response interrupts it; below 0: it was late."""
    ready = max(each.start_ns for each in occurrences if each.node == CLIENT and each.step in ("C11", "C14"))
    came = max(each.end_ns for each in occurrences if not each.node)
    return (came - ready) / 1e3


def _take_rates(results: Results, wire: str, run: Measured) -> None:
    results.rate_runs[wire] = run.folder.name, run.captures
    for number, step in enumerate(run.steps(CLIENT)):
        calls = run.calls(node_step=number)
        done = calls.filter("ok")
        if done.is_empty():
            continue
        span_ns = int(calls["end_ns"].max()) - int(calls["start_ns"].min())  # type: ignore[arg-type]
        key = wire, str(step["options"]["procedure"]), int(step["options"]["threads"])
        results.rates[key] = Rate(done.height, span_ns / 1e9, calls.height - done.height)


def _twins(plain: Measured, traced: Measured) -> Twins:
    found = [path.relative_to(plain.folder) for words in SAME_FILES for path in sorted(plain.folder.glob(words))]
    differ = [str(name) for name in found if _digest(plain.folder / name) != _digest(traced.folder / name)]
    return Twins((plain.folder.name, traced.folder.name), len(found), tuple(differ))


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
