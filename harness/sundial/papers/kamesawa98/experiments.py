# SPDX-License-Identifier: Apache-2.0
"""The experiments of kamesawa98, and those beyond it: which runs are made, and which of their numbers go where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sundial.papers.kamesawa98.faults import DEATHS, fault_rows, fault_specs
from sundial.papers.kamesawa98.paper import Kamesawa98
from sundial.papers.kamesawa98.results import Results
from sundial.reproduce.cells import Row, cell_of_rate, cell_of_round_trip, cell_of_stream
from sundial.reproduce.fit import Candidate, Point, nearest
from sundial.reproduce.measure import Measured
from sundial.reproduce.runs import Bench, Spec
from sundial.units import MIPS_VALUES
from sundial.workloads.mbcf.transports import NAMES as MBCF_TRANSPORTS

FIRST_MIPS = Decimal("62.5")
"""Where the search for the machine model begins."""
WIRES = {3: "10base-t", 4: "100base-tx"}
"""Of the paper's tables of RPC."""
DEPTH_TRANSPORTS = ("mbcf3", "mbcf3b")
LARGE = [4096, 16384, 65536]


@dataclass(frozen=True)
class Extent:
    """How much is run."""

    calls: int
    operations: int
    """Of a stream."""
    clients: tuple[int, ...]
    depths: tuple[int, ...]
    rates: tuple[int, ...]
    """Loss, duplication and reordering, in percent."""
    deaths: tuple[str, ...]
    fault_calls: int
    long_calls: int
    """Of the long run that must lose and double nothing."""


FULL = Extent(50, 400, (1, 2, 4, 8), (1, 2, 4, 8, 16, 32), (0, 5, 10, 20, 30), DEATHS, 400, 100_000)
QUICK = Extent(9, 400, (1, 4), (1, 8, 32), (0, 30), ("during",), 60, 2_000)
EXTENTS = {"quick": QUICK, "full": FULL}


def perform(paper: Kamesawa98, bench: Bench, extent: Extent) -> Results:
    """All runs, one after the other. Raises RunFailed where the machine model cannot be found."""
    after_model = 1 + len(WIRES) + 1 + len(DEPTH_TRANSPORTS) + len(extent.clients) + len(list(fault_specs(extent)))
    bench.expect(3 * len(WIRES) + after_model)
    linux: dict[Decimal, dict[int, Measured]] = {}

    def measure(mips: Decimal) -> Mapping[Point, float]:
        linux[mips] = _linux(bench, extent, mips)
        return {
            (number, size): trip.median_us
            for number, run in linux[mips].items()
            for size in paper.table(number).sizes
            if (trip := run.round_trip(transport="udp", size=size)) is not None
        }

    best, tried = nearest(MIPS_VALUES, FIRST_MIPS, _reference(paper), measure)
    bench.expect(after_model)
    results = Results(paper, best, tuple(tried), extent.long_calls < FULL.long_calls)
    _paper_tables(results, bench, extent, best, linux[best.mips])
    _types(results, bench, extent, best.mips)
    _depths(results, bench, extent, best.mips)
    _clients(results, bench, extent, best.mips)
    for spec, fault in fault_specs(extent):
        run = bench.make(spec, best.mips)
        if run is not None:
            results.faults.append(fault_rows(run, spec, fault))
    return results


def _reference(paper: Kamesawa98) -> dict[Point, float]:
    """The paper's reference system over both wires: what the machine model is held against."""
    return {
        (number, size): printed
        for number in WIRES
        for column in paper.table(number).columns
        if column.key == "linux-udp"
        for size in paper.table(number).sizes
        if (printed := paper.table(number).printed(column, size)) is not None
    }


def _rpc(transports: list[str], sizes: list[int], calls: int, **more: Any) -> dict[str, Any]:
    common = {"app": "sunrpc", "procedures": ["echo_string"], "warmup": 3}
    return {**common, "transports": transports, "sizes": sizes, "calls": calls, **more}


def _linux(bench: Bench, extent: Extent, mips: Decimal) -> dict[int, Measured]:
    runs = {}
    for number, wire in WIRES.items():
        spec = Spec(
            f"linux-udp-{wire}-{str(mips.normalize()).replace('.', '-')}-mips",
            f"Linux, Sun RPC over UDP, {wire}, at {mips:f} mips",
            f"two-hosts-{wire}",
            [_rpc(["udp"], [0, 64, 256, 512, 1024], extent.calls)],
        )
        run = bench.make(spec, mips)
        if run is not None:
            runs[number] = run
    return runs


def _paper_tables(
    results: Results, bench: Bench, extent: Extent, best: Candidate, linux: Mapping[int, Measured]
) -> None:
    _writes(results, bench, extent, best.mips)
    for number, wire in WIRES.items():
        sizes = list(results.paper.table(number).sizes)
        if number in linux:
            _put_trips(results, number, "linux-udp", linux[number], sizes, transport="udp")
        columns = {"sss-udp": {}, "sss-mbcf3": {}, "sss-mbcf3-no-ack": {"ack": False}, "sss-mbcf3b": {}}
        transports = [key.split("-")[1] for key in columns]
        spec = Spec(
            f"sss-rpc-{wire}",
            f"SSS-CORE, Sun RPC over UDP and MBCF, {wire}",
            f"sss-two-{wire}",
            [
                _rpc([transport], sizes, extent.calls, **more)
                for transport, more in zip(transports, columns.values(), strict=True)
            ],
        )
        run = bench.make(spec, best.mips)
        if run is not None:
            for step, key in enumerate(columns):
                _put_trips(results, number, key, run, sizes, node_step=step)


def _writes(results: Results, bench: Bench, extent: Extent, mips: Decimal) -> None:
    """Tables 1 and 2."""
    trips, streams = (list(results.paper.table(number).sizes) for number in (1, 2))
    operation = {"app": "mbcf", "operations": ["write"]}
    spec = Spec(
        "remote-write",
        "Remote WRITE: round trips (table 1) and streams (table 2)",
        "sss-two-100base-tx",
        [
            {**operation, "modes": ["round_trip"], "sizes": trips, "calls": extent.calls, "warmup": 3},
            {**operation, "modes": ["stream"], "sizes": streams, "calls": extent.operations, "warmup": 0},
        ],
    )
    run = bench.make(spec, mips)
    if run is None:
        return
    steps = {step["options"]["mode"]: number for number, step in enumerate(run.steps("client"))}
    _put_trips(results, 1, "write", run, trips, node_step=steps["round_trip"])
    for size in streams:
        stream = run.stream(size, node_step=steps["stream"])
        if stream is not None:
            results.put(2, "stream", size, cell_of_stream(stream, run))


def _put_trips(results: Results, table: int, key: str, run: Measured, sizes: Sequence[int], **where: Any) -> None:
    for size in sizes:
        trip = run.round_trip(size=size, **where)
        if trip is not None:
            results.put(table, key, size, cell_of_round_trip(trip, run))


def _types(results: Results, bench: Bench, extent: Extent, mips: Decimal) -> None:
    sizes = list(results.paper.table(4).sizes)
    transports = ["udp", "tcp", *MBCF_TRANSPORTS]
    several = ["tcp", *(name for name in MBCF_TRANSPORTS if name != "mbcf1")]  # its request is one packet
    spec = Spec(
        "all-transports",
        "SSS-CORE, Sun RPC over UDP, TCP and all types of MBCF server, 100base-tx",
        "sss-two-100base-tx",
        [
            _rpc(transports, sizes, extent.calls, procedures=["echo"]),
            _rpc(several, LARGE, max(5, extent.calls // 5), procedures=["echo"]),
        ],
    )
    run = bench.make(spec, mips)
    if run is None:
        return
    for transport in transports:
        for size in [*sizes, *LARGE]:
            trip = run.round_trip(transport=transport, size=size)
            if trip is not None:
                results.types.append(Row((transport, str(size)), cell_of_round_trip(trip, run)))


def _depths(results: Results, bench: Bench, extent: Extent, mips: Decimal) -> None:
    for transport in DEPTH_TRANSPORTS:
        spec = Spec(
            f"depth-{transport}",
            f"SSS-CORE, asynchronous calls over {transport}, 100base-tx",
            "sss-two-100base-tx",
            [_rpc([transport], [64], 4 * extent.calls, depth=depth) for depth in extent.depths],
        )
        run = bench.make(spec, mips)
        if run is not None:
            for number, depth in enumerate(extent.depths):
                results.depths.append(Row((transport, str(depth)), cell_of_rate(run, node_step=number)))


def _clients(results: Results, bench: Bench, extent: Extent, mips: Decimal) -> None:
    transports = ["udp", "mbcf3", "mbcf3b"]
    for count in extent.clients:
        names = [f"client{number + 1}" for number in range(count)]
        spec = Spec(
            f"clients-{count}",
            f"SSS-CORE, {count} clients of one server, 100 Mbit/s switch",
            "sss-office",
            [_rpc(transports, [64], extent.calls, clients=names)],
        )
        run = bench.make(spec, mips)
        if run is not None:
            for transport in transports:
                results.clients.append(Row((transport, str(count)), cell_of_rate(run, transport=transport)))
