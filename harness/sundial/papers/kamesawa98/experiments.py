# SPDX-License-Identifier: Apache-2.0
"""The experiments of kamesawa98, and those beyond it: which runs are made, and which of their numbers go where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

from sundial.model.images import IMAGES
from sundial.papers.kamesawa98.faults import Fault, fault_rows, fault_specs
from sundial.papers.kamesawa98.paper import Extent, Kamesawa98
from sundial.papers.kamesawa98.results import Results
from sundial.reproduce.cells import Row, cell_of_rate, cell_of_round_trip, cell_of_stream
from sundial.reproduce.fit import Point, nearest
from sundial.reproduce.measure import Measured
from sundial.reproduce.runs import Bench, Spec, Step
from sundial.workloads.mbcf.transports import NAMES as MBCF_TRANSPORTS

FIRST_MIPS = Decimal("62.5")
"""Where the search for the machine model begins."""
WIRES = {3: "10base-t", 4: "100base-tx"}
"""Of the paper's tables of RPC."""
DEPTH_TRANSPORTS = ("mbcf3", "mbcf3b")
LARGE = [4096, 16384, 65536]


def perform(paper: Kamesawa98, bench: Bench, extent: Extent, scale: str) -> Results:
    """All runs. Raises RunFailed where the machine model cannot be found."""
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

    best, tried = nearest(IMAGES["linux"].speeds, FIRST_MIPS, _reference(paper), measure)
    bench.expect(after_model)
    results = Results(paper, scale, best, tuple(tried))
    for number, run in linux[best.mips].items():
        _put_trips(results, number, "linux-udp", run, paper.table(number).sizes, transport="udp")
    steps = [
        *_paper_tables(results, extent),
        _types(results, extent),
        *_depths(results, extent),
        *_clients(results, extent),
        *_faults(results, extent),
    ]
    bench.take_all(steps, best.mips)
    return results


def _reference(paper: Kamesawa98) -> dict[Point, float]:
    """The paper's reference system over both wires: what the machine model is checked against."""
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
    specs = [
        Spec(
            f"linux-udp-{wire}-{str(mips.normalize()).replace('.', '-')}-mips",
            f"Linux, Sun RPC over UDP, {wire}, at {mips:f} mips",
            f"two-hosts-{wire}",
            [_rpc(["udp"], [0, 64, 256, 512, 1024], extent.calls)],
        )
        for wire in WIRES.values()
    ]
    runs = bench.make_all((spec, mips) for spec in specs)
    return {number: run for number, run in zip(WIRES, runs, strict=True) if run is not None}


def _paper_tables(results: Results, extent: Extent) -> Iterator[Step]:
    yield _writes(results, extent)
    for number, wire in WIRES.items():
        sizes = list(results.paper.table(number).sizes)
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
        yield Step(spec, partial(_take_columns, results, number, list(columns), sizes))


def _take_columns(results: Results, table: int, keys: Sequence[str], sizes: Sequence[int], run: Measured) -> None:
    for step, key in enumerate(keys):
        _put_trips(results, table, key, run, sizes, node_step=step)


def _writes(results: Results, extent: Extent) -> Step:
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

    def take(run: Measured) -> None:
        steps = {step["options"]["mode"]: number for number, step in enumerate(run.steps("client"))}
        _put_trips(results, 1, "write", run, trips, node_step=steps["round_trip"])
        for size in streams:
            stream = run.stream(size, node_step=steps["stream"])
            if stream is not None:
                results.put(2, "stream", size, cell_of_stream(stream, run))

    return Step(spec, take)


def _put_trips(results: Results, table: int, key: str, run: Measured, sizes: Sequence[int], **where: Any) -> None:
    for size in sizes:
        trip = run.round_trip(size=size, **where)
        if trip is not None:
            results.put(table, key, size, cell_of_round_trip(trip, run))


def _types(results: Results, extent: Extent) -> Step:
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

    def take(run: Measured) -> None:
        for transport in transports:
            for size in [*sizes, *LARGE]:
                trip = run.round_trip(transport=transport, size=size)
                if trip is not None:
                    results.types.append(Row((transport, str(size)), cell_of_round_trip(trip, run)))

    return Step(spec, take)


def _depths(results: Results, extent: Extent) -> Iterator[Step]:
    for transport in DEPTH_TRANSPORTS:
        spec = Spec(
            f"depth-{transport}",
            f"SSS-CORE, asynchronous calls over {transport}, 100base-tx",
            "sss-two-100base-tx",
            [_rpc([transport], [64], 4 * extent.calls, depth=depth) for depth in extent.depths],
        )

        def take(run: Measured, transport: str = transport) -> None:
            for number, depth in enumerate(extent.depths):
                results.depths.append(Row((transport, str(depth)), cell_of_rate(run, node_step=number)))

        yield Step(spec, take)


def _clients(results: Results, extent: Extent) -> Iterator[Step]:
    transports = ["udp", "mbcf3", "mbcf3b"]
    for count in extent.clients:
        names = [f"client{number + 1}" for number in range(count)]
        spec = Spec(
            f"clients-{count}",
            f"SSS-CORE, {count} clients of one server, 100 Mbit/s switch",
            "sss-office",
            [_rpc(transports, [64], extent.calls, clients=names)],
        )

        def take(run: Measured, count: int = count) -> None:
            for transport in transports:
                results.clients.append(Row((transport, str(count)), cell_of_rate(run, transport=transport)))

        yield Step(spec, take)


def _faults(results: Results, extent: Extent) -> Iterator[Step]:
    for spec, fault in fault_specs(extent):

        def take(run: Measured, spec: Spec = spec, fault: Fault = fault) -> None:
            results.faults.append(fault_rows(run, spec, fault))

        yield Step(spec, take)
