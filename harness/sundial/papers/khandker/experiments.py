# SPDX-License-Identifier: Apache-2.0
"""The experiments of khandker: the machines' speed, calls by size that are traced, calls by threads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from statistics import mean
from typing import Any

import polars as pl

from sundial.errors import RunFailed
from sundial.model.images import IMAGES
from sundial.papers.khandker.costs import SIZES as COST_SIZES
from sundial.papers.khandker.costs import WITH_FACK, unit_costs
from sundial.papers.khandker.counts import Policy
from sundial.papers.khandker.packets import OnWire, Wire
from sundial.papers.khandker.paper import Extent, Khandker
from sundial.papers.khandker.results import NULL, POLICIES, Latency, Picture, Rate, Results, Seen, Twins, step_table
from sundial.papers.khandker.sizes import HUB, LARGE, SIZES, SUMMED
from sundial.papers.khandker.steps import Occurrence, kernel_threads, named, pieces_of, renamed
from sundial.reproduce.fit import Point, nearest
from sundial.reproduce.measure import Measured
from sundial.reproduce.runs import Bench, Spec

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
    after_fit = 3 + len(POLICIES) + len(extent.wires)
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
        IMAGES["linux"].speeds, FIRST_MIPS, {point: float(paper.measured_us(point[1])) for point in FITTED}, measure
    )
    bench.expect(after_fit)
    results = Results(paper, scale, best, tried)
    traced = _fit_spec("traced", f"null and {LARGE} bytes, traced: what a trace costs", extent, {"trace": "steps"})
    asked = [
        traced,
        _units_spec(extent),
        _first_spec(),
        *(_latency_spec(policy, extent) for policy in POLICIES),
        *(_threads_spec(wire, extent) for wire in extent.wires),
    ]
    runs = bench.make_all((spec, best.mips) for spec in asked)
    twin, units, first = next(runs), next(runs), next(runs)
    if twin is not None:
        results.twins = _twins(fits[best.mips], twin)
    if units is not None:
        results.costs = unit_costs((call.size, call.steps) for call in Traced(units).calls())
    if first is not None:
        results.first_us = _first_us(first)
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
    both = _workload(procedures=["null", "put"], sizes=[LARGE], series=extent.series, calls=extent.calls, **more)
    return Spec(name, about, HUB, [both])


def _units_spec(extent: Extent) -> Spec:
    calls = _workload(
        procedures=["put"], sizes=[*COST_SIZES, WITH_FACK], series=extent.series,
        calls=extent.unit_calls, trace="steps",
    )  # fmt: skip
    return Spec("unit-costs", "calls of one PDU, and of the least fack, traced: unit costs", HUB, [calls])


def _first_spec() -> Spec:
    """Apart from later calls, for a server looks through all activities that it knows."""
    calls = {**_workload(procedures=["null", "put"], sizes=list(SIZES), calls=1, connection="per-size"), "warmup": 0}
    return Spec("first-calls", "the first call of an activity, by size", HUB, [calls])


def _latency_spec(policy: Policy, extent: Extent) -> Spec:
    sizes = SIZES if policy == POLICIES[0] else SUMMED
    about = f"calls by size, traced; the sender's policy is {policy}"
    calls = _workload(
        procedures=["null", "put"], sizes=list(sizes), series=extent.series, calls=extent.calls,
        policy=policy, trace="steps",
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


@dataclass(frozen=True)
class TracedCall:
    """A later call that was traced."""

    size: int
    """NULL for the procedure without arguments."""
    row: Mapping[str, Any]
    """Of samples.parquet."""
    steps: Sequence[Occurrence]


class Traced:
    """The calls of one run with their steps."""

    def __init__(self, run: Measured) -> None:
        self._rows = pl.read_parquet(run.folder / "steps.parquet")
        self._of_calls = {key[0]: part for key, part in self._rows.partition_by("call", as_dict=True).items()}
        self._kernel = kernel_threads(self._rows)
        self.samples = run.samples.with_row_index("place").filter("ok")

    def calls(self) -> Iterator[TracedCall]:
        """In order; those that warm up are left out."""
        for row in self.samples.filter(~pl.col("warmup")).iter_rows(named=True):
            size = NULL if row["procedure"] == "null" else int(row["size"])
            yield TracedCall(size, row, named(pieces_of(self._of_calls[row["place"]]), CLIENT, self._kernel))

    def picture(self, call: TracedCall) -> Picture:
        """One call, to be drawn."""
        pieces = renamed(self._of_calls[call.row["place"]], CLIENT, self._kernel, call.row["start_ns"])
        return Picture(CLIENT, call.row["rtt_ns"], pieces)


def _latency(run: Measured) -> tuple[Latency, Picture | None]:
    traced = Traced(run)
    wire = Wire(run.folder, run.run, CLIENT, SERVER)
    of_sizes: dict[int, list[TracedCall]] = {}
    for call in traced.calls():
        of_sizes.setdefault(call.size, []).append(call)
    sizes = {}
    for size, calls in of_sizes.items():
        on_wire = [wire.during(call.row["start_ns"], call.row["end_ns"]) for call in calls]
        sizes[size] = _seen([call.row["rtt_ns"] for call in calls], on_wire)
    verdict = json.loads((run.folder / "verify.json").read_text()).get("steps") or {}
    latency = Latency(
        run=run.folder.name,
        captures=run.captures,
        sizes=sizes,
        steps={size: step_table([call.steps for call in calls]) for size, calls in of_sizes.items()},
        exact=int(verdict.get("exact", 0)),
        calls=int(verdict.get("calls", 0)),
        slack_us=tuple(_slack_us(call.steps) for call in of_sizes.get(NULL, ())),
    )
    pictured = sorted(of_sizes.get(PICTURED, ()), key=lambda call: call.row["rtt_ns"])
    return latency, traced.picture(pictured[(len(pictured) - 1) // 2]) if pictured else None


def _first_us(run: Measured) -> dict[int, float]:
    """The first call of each activity, by its size."""
    firsts = run.samples.filter("ok", pl.col("xid") == 0).select("procedure", "size", "rtt_ns")
    return {NULL if procedure == "null" else size: ns / 1e3 for procedure, size, ns in firsts.iter_rows()}


def _seen(later_ns: Sequence[int], on_wire: Sequence[OnWire]) -> Seen:
    return Seen(
        tuple(each / 1e3 for each in later_ns),
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
