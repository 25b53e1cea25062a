# SPDX-License-Identifier: Apache-2.0
"""The experiments of bilas97: null calls, calls by size, streams, calls by the backplane's latency and by how a
server waits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import polars as pl

from sundial.papers.bilas97.packets import OverBackplane
from sundial.papers.bilas97.paper import Bilas97, Extent
from sundial.papers.bilas97.results import CLIENT, ECHOES, FLOOR, HARDWARE, SERVER, Compared, Part, Results
from sundial.papers.bilas97.steps import divided
from sundial.reproduce.cells import Cell, Row, cell_of_round_trip
from sundial.reproduce.runs import Bench, Spec
from sundial.units import TIME

MIPS = Decimal("62.5")
"""Of all machines: the power of two nearest to the paper's Pentium at 60 MHz. Nothing is fitted."""
TOPOLOGY, LINUX = "sss-two-vmmc", "two-hosts-100base-tx"
WARMUP = 3
WORD = 8
NS_PER_US = 1_000
OPERATIONS = ("au", "au-combined", "du")
ARGUMENTS = ("in", "out", "inout")
OVER_ETHERNET = ("udp", "mbcf3b")
VRPC = ("vrpc", "vrpc-mbcf")
WAITS = ("poll", "notify")
TRACED = ("shrimprpc", "vrpc")
Workload = dict[str, Any]
"""As scenarios write it."""


@dataclass(frozen=True)
class Step:
    """One run, and what is done with it once it is made."""

    spec: Spec
    take: Callable[[OverBackplane], None]


def perform(paper: Bilas97, bench: Bench, extent: Extent, scale: str) -> Results:
    """All runs."""
    results = Results(paper, scale, MIPS)
    steps = [
        _null(results, extent), _ethernet(results, extent), _linux(results, extent), _sizes(results, extent),
        _streams(results, extent),
        *_latencies(results, extent), *_waits(results, extent),
    ]  # fmt: skip
    bench.expect(len(steps))
    for step, made in zip(steps, bench.make_all((step.spec, MIPS) for step in steps), strict=True):
        if made is not None:
            run = OverBackplane(made.folder)
            step.take(run)
            name = step.spec.name
            if (counts := run.counts) is not None:
                results.packets[name] = counts
            # Each run says it, so that no statement depends on another's run.
            results.dma_rate_bps = run.dma_rate_bps or results.dma_rate_bps
            if calls := run.samples.filter(pl.col("transport").is_in(VRPC)).height:
                mismatches = next(end.mismatches for end in bench.made if end.name == name)
                results.compared[name] = Compared(calls, mismatches)
    return results


def _sunrpc(transports: Sequence[str], calls: int, **more: Any) -> Workload:
    workload = {"app": "sunrpc", "transports": list(transports), "procedures": ["null"], "sizes": [0]}
    return {**workload, "calls": calls, "warmup": WARMUP, **more}


def _shrimprpc(calls: int, **more: Any) -> Workload:
    return {"app": "shrimprpc", "procedures": ["null"], "sizes": [0], "calls": calls, "warmup": WARMUP, **more}


def _vmmc(operations: Sequence[str], mode: str, sizes: Sequence[int], calls: int) -> Workload:
    return {
        "app": "vmmc", "operations": list(operations), "modes": [mode], "sizes": list(sizes), "calls": calls,
        "warmup": 0,
    }  # fmt: skip


def _null(results: Results, extent: Extent) -> Step:
    spec = Spec(
        "null-calls", "null calls, and a word there and back", TOPOLOGY,
        [
            # First, so that ShrimpRPC's server is stamped: that begins when its CPU has slept, and the server of vRPC
            # polls from the beginning on, until it meets its first client.
            _sunrpc(VRPC, extent.calls, trace="steps"),
            _shrimprpc(extent.calls, trace="steps"),
            _vmmc(["au"], "round_trip", [WORD], extent.calls),
        ],
    )  # fmt: skip

    def take(run: OverBackplane) -> None:
        _put_null(results, FLOOR, run, transport="au")
        _put_null(results, "shrimprpc", run, transport="shrimprpc")
        for transport in VRPC:
            _put_null(results, transport, run, transport=transport)
        for system in TRACED:
            _put_traced(results, system, run)

    return Step(spec, take)


def _ethernet(results: Results, extent: Extent) -> Step:
    """Apart from the others, whose servers poll and take turns of the processor."""
    sizes = list(extent.sizes)
    spec = Spec(
        "over-ethernet", "null calls and round trips by size over Ethernet, SSS-CORE", TOPOLOGY,
        [
            _sunrpc(OVER_ETHERNET, extent.calls),
            _sunrpc(OVER_ETHERNET, extent.calls, procedures=["echo"], sizes=sizes),
        ],
    )  # fmt: skip

    def take(run: OverBackplane) -> None:
        for transport in OVER_ETHERNET:
            _put_null(results, transport, run, transport=transport, procedure="null")
            for size in sizes:
                _add(results.sizes, transport, size, run, transport=transport, procedure="echo", size=size)

    return Step(spec, take)


def _linux(results: Results, extent: Extent) -> Step:
    spec = Spec("linux-null-calls", "null calls over UDP, Linux", LINUX, [_sunrpc(["udp"], extent.calls)])

    def take(run: OverBackplane) -> None:
        _put_null(results, "linux-udp", run, transport="udp")

    return Step(spec, take)


def _put_null(results: Results, system: str, run: OverBackplane, **where: Any) -> None:
    trip = run.round_trip(**where)
    if trip is not None:
        results.null[system] = cell_of_round_trip(trip, run)
        results.steps[system] = _parts(run, _median(run.calls(**where)))


def _median(calls: pl.DataFrame) -> Mapping[str, Any]:
    table = calls.filter("ok").sort("rtt_ns", "start_ns")
    return table.row((table.height - 1) // 2, named=True)


def _put_traced(results: Results, system: str, run: OverBackplane) -> None:
    calls = run.samples.with_row_index("row").filter(~pl.col("warmup"), pl.col("transport") == system)
    if not calls["ok"].any():
        return
    call = _median(calls)
    steps = pl.read_parquet(run.folder / "steps.parquet").filter(pl.col("call") == call["row"])
    machines = {call[end]: end for end in (CLIENT, SERVER)}
    instruction_ns = (run.instruction_ns(call[CLIENT]), run.instruction_ns(call[SERVER]))
    results.traced[system] = divided(system, steps, machines, (call["rtt_ns"], *instruction_ns))
    verdict = json.loads((run.folder / "verify.json").read_text())["steps"]
    results.traced_calls = int(verdict["exact"]), int(verdict["calls"])


def _parts(run: OverBackplane, call: Mapping[str, Any]) -> list[Part]:
    """Of one call: software before, between and after what the hardware does."""
    inside = [each for each in run.flights.between(call["start_ns"], call["end_ns"]) if each.end_ns > call["start_ns"]]
    there = [each for each in inside if each.sender == call["client"]]
    back = [each for each in inside if each.sender == call["server"]]
    if not there or not back:
        return []
    names = (CLIENT, HARDWARE, SERVER, HARDWARE, CLIENT)
    steps = ("until the request's first packet is stored", "until its last packet is there",
             "until the reply's last packet is stored", "until it is there", "until the call returns")  # fmt: skip
    ends = [
        call["start_ns"], there[0].begin_ns, max(each.end_ns for each in there if each.begin_ns < back[-1].begin_ns),
        back[-1].begin_ns, back[-1].end_ns, call["end_ns"],
    ]  # fmt: skip
    parts = []
    for step, name, begin, end in zip(steps, names, ends, ends[1:], strict=False):
        software = None if name == HARDWARE else round((end - begin) / run.instruction_ns(call[name]))
        parts.append(Part(step, name, end - begin, software))
    return parts


def _sizes(results: Results, extent: Extent) -> Step:
    sizes, calls = list(extent.sizes), extent.calls
    spec = Spec(
        "sizes", "round trips by size", TOPOLOGY,
        [
            _shrimprpc(calls, procedures=list(ARGUMENTS), sizes=sizes),
            _sunrpc(VRPC, calls, procedures=["echo"], sizes=sizes),
        ],
    )  # fmt: skip

    def take(run: OverBackplane) -> None:
        for size in sizes:
            for procedure in ARGUMENTS:
                _add(results.sizes, f"ShrimpRPC {procedure.upper()}", size, run, procedure=procedure, size=size)
            for transport in VRPC:
                _add(results.sizes, transport, size, run, transport=transport, size=size)
            _put_echoes(results, size, run)

    return Step(spec, take)


def _put_echoes(results: Results, size: int, run: OverBackplane) -> None:
    trip = run.round_trip(transport="vrpc", size=size)
    if trip is not None and size:
        cell = Cell(2 * size / trip.median_us, "MB/s", run.folder.name, trip.calls, captures=run.captures)
        results.streams.append(Row((ECHOES, str(size)), cell))


def _add(rows: list[Row], name: str, of: int | str, run: OverBackplane, **where: Any) -> None:
    trip = run.round_trip(**where)
    if trip is not None:
        rows.append(Row((name, str(of)), cell_of_round_trip(trip, run)))


def _streams(results: Results, extent: Extent) -> Step:
    sizes = list(extent.stream_sizes)
    spec = Spec(
        "streams", "updates one after the other", TOPOLOGY,
        [_vmmc(OPERATIONS, "stream", sizes, extent.transfers)],
    )  # fmt: skip

    def take(run: OverBackplane) -> None:
        for operation in OPERATIONS:
            for size in sizes:
                table = run.calls(transport=operation, size=size)
                if not table.is_empty() and table["ok"].all():
                    results.streams.append(Row((operation, str(size)), _rate(run, table, size, extent.transfers)))

    return Step(spec, take)


def _rate(run: OverBackplane, table: pl.DataFrame, size: int, transfers: int) -> Cell:
    """MB/s from the client's clock before it fills the first message until the receiver has said that all is there."""
    took_ns = int(table["end_ns"].max()) - int(table["start_ns"].min())  # type: ignore[arg-type]
    value = size * transfers * NS_PER_US / took_ns
    return Cell(value, "MB/s", run.folder.name, transfers, captures=run.captures)


def _both(extent: Extent, **more: Any) -> list[Workload]:
    return [_shrimprpc(extent.calls, **more), _sunrpc(["vrpc"], extent.calls, **more)]


def _latencies(results: Results, extent: Extent) -> Iterator[Step]:
    for latency in extent.latencies:
        ns = TIME.parse(latency)

        def take(run: OverBackplane, ns: int = ns) -> None:
            for system in ("shrimprpc", "vrpc"):
                _add(results.latencies, system, ns, run, transport=system)

        about = f"null calls, a word takes {latency}"
        settings = (f"segments.backplane.word_latency={latency}",)
        yield Step(Spec(f"word-latency-{ns}-ns", about, TOPOLOGY, _both(extent), settings), take)


def _waits(results: Results, extent: Extent) -> Iterator[Step]:
    for wait in WAITS:

        def take(run: OverBackplane, wait: str = wait) -> None:
            for system in ("shrimprpc", "vrpc"):
                _add(results.waits, system, wait, run, transport=system)

        yield Step(Spec(f"wait-{wait}", f"null calls, both ends {wait}", TOPOLOGY, _both(extent, wait=wait)), take)
