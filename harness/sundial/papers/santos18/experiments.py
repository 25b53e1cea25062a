# SPDX-License-Identifier: Apache-2.0
"""The experiments of santos18: both systems in both places, and by the link's round trip time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from statistics import median
from typing import Any

import polars as pl

from sundial import EPOCH_NS
from sundial.model.images import IMAGES
from sundial.observe import read_frames
from sundial.papers.santos18.extents import Extent
from sundial.papers.santos18.paper import Place, Santos18
from sundial.papers.santos18.results import DISTANCE, FIRST_ELEVEN, Case, Cell, Results, Slope
from sundial.papers.santos18.spread import spread
from sundial.reproduce.measure import Measured
from sundial.reproduce.runs import Bench, Spec
from sundial.units import TIME

MIPS = Decimal(125)
"""Of all machines; nothing is fitted."""
TOPOLOGIES: Mapping[Place, str] = {"local": "one-host", "remote": "two-hosts-wifi"}
SYSTEMS = ("grpc", "rpyc")
IMAGE = "linux-python"
_OUTBOUND = 2
"""Of a frame's direction: sent by the machine at whose port it was seen."""
NODELAY_PORT = 18862
"""Beside the default port: a server whose connections have TCP_NODELAY."""
SLOPED = ("void", "string_1024")
"""Functions whose round trips are counted by the link's delay; the distance with lists beside them."""
NS_PER_MS = 1_000_000
_BOOTS = f"defaults.image={IMAGE}"


def perform(paper: Santos18, bench: Bench, extent: Extent, scale: str) -> Results:
    """All runs."""
    results = Results(paper, scale, MIPS, versions=IMAGES[IMAGE].python or {})
    places = [(system, place) for place in TOPOLOGIES for system in SYSTEMS]
    asked = [_calls_spec(system, place, extent) for system, place in places]
    slopes = [(system, delay) for system in SYSTEMS for delay in extent.delays]
    asked += [_slope_spec(system, delay, extent) for system, delay in slopes]
    bench.expect(len(asked))
    runs = bench.make_all((spec, MIPS) for spec in asked)
    for (_, place), run in zip(places, runs, strict=False):
        if run is not None:
            results.cells.update(_cells(run, place, paper, bench.seed))
    points: dict[Case, dict[float, float]] = {}
    for (_, delay), run in zip(slopes, runs, strict=True):
        if run is None:
            continue
        trip_ms = 2 * TIME.parse(delay) / NS_PER_MS
        for case, table in _cases(run, "remote"):
            points.setdefault(case, {})[trip_ms] = median(table["rtt_ns"].to_list()) / NS_PER_MS
    for case, found in points.items():
        if len(found) > 1:
            results.slopes[case] = Slope(found)
    return results


# ---- what is run ----


def _workloads(system: str, calls: int, functions: Sequence[str]) -> Iterator[dict[str, Any]]:
    """All functions as the figures show them: of RPyC with lists, of the distance also with tuples and TCP_NODELAY."""
    if system == "grpc":
        yield {"app": "grpc", "functions": list(functions), "calls": calls, "warmup": 1}
        return
    rpyc: dict[str, Any] = {"app": "rpyc", "calls": calls, "warmup": 1}
    yield {**rpyc, "functions": list(functions), "containers": ["list"], "distance": ["numpy"]}
    if DISTANCE in functions:
        yield {**rpyc, "functions": [DISTANCE], "containers": ["list"], "distance": ["zip"]}
        yield {**rpyc, "functions": [DISTANCE], "containers": ["tuple"], "distance": ["numpy", "zip"]}
    nodelay = [name for name in functions if name in (*SLOPED, DISTANCE)]
    yield {
        **rpyc, "functions": nodelay, "containers": ["list"], "distance": ["numpy"], "tcp_nodelay": [True],
        "port": NODELAY_PORT,
    }  # fmt: skip


def _calls_spec(system: str, place: Place, extent: Extent) -> Spec:
    where = {"clients": ["server"]} if place == "local" else {}
    calls = [{**each, **where} for each in _workloads(system, extent.calls, (*FIRST_ELEVEN, DISTANCE))]
    about = f"the twelve functions over {system}, {place}"
    return Spec(f"{system}-{place}", about, TOPOLOGIES[place], calls, (_BOOTS,))


def _slope_spec(system: str, delay: str, extent: Extent) -> Spec:
    calls = list(_workloads(system, extent.slope_calls, (*SLOPED, DISTANCE)))
    settings = (_BOOTS, f"segments.air.impairments.both={{delay: {delay}}}")
    name = f"{system}-delay-{delay.replace(' ', '').replace('.', '-')}"
    return Spec(name, f"{system} by round trip: a delay of {delay} each way", TOPOLOGIES["remote"], calls, settings)


# ---- what is taken from it ----


def _cases(run: Measured, place: Place) -> Iterator[tuple[Case, pl.DataFrame]]:
    """The measured calls of each case that succeeded."""
    calls = run.samples.filter(~pl.col("warmup"), "ok")
    for (client, step, function), table in calls.group_by("client", "node_step", "procedure", maintain_order=True):
        options = run.steps(str(client))[int(step)]["options"]
        system = str(table["transport"][0])
        yield _case(system, place, str(function), options), table.sort("start_ns")


def _case(system: str, place: Place, function: str, options: Mapping[str, Any]) -> Case:
    if system == "grpc":
        return Case(system, place, function)
    nodelay = bool(options["tcp_nodelay"])
    if function != DISTANCE:
        return Case(system, place, function, nodelay=nodelay)
    return Case(system, place, function, options["container"], options["distance"], nodelay)


def _cells(run: Measured, place: Place, paper: Santos18, seed: int) -> Iterator[tuple[Case, Cell]]:
    observed = pl.read_parquet(run.folder / "observed.parquet")
    sent = _sent(run)
    batches = {
        (client, batch["step"], batch["procedure"]): batch
        for client in run.run["nodes"]
        for batch in run.reported(client, "batch")
    }
    for case, table in _cases(run, place):
        first = table.row(0, named=True)
        batch = batches[first["client"], first["node_step"], case.function]
        of_case = observed.join(table.select("client", "batch", "call"), on=["client", "batch", "call"], how="semi")
        all_calls = int(batch["warmup"]) + table.height
        exchanges = batch.get("exchanges")
        times = table["rtt_ns"].to_list()
        packets = of_case.select(pl.sum_horizontal("request_packets", "reply_packets").mean()).item()
        yield (
            case,
            Cell(
                run=run.folder.name,
                captures=run.captures,
                spread=spread(times, paper.percentiles, seed),
                in_order_ms=tuple(each / NS_PER_MS for each in times),
                packets=float(packets or 0),
                message_bytes=_bytes_during(sent, table) / table.height,
                exchanges=None if exchanges is None else exchanges / all_calls,
                instructions=median(times) * float(MIPS) / 1000,
            ),
        )


def _sent(run: Measured) -> pl.DataFrame:
    """time_ns and bytes of each segment with data, as it was sent."""
    names = sorted(str(path.relative_to(run.folder)) for path in (run.folder / "wire").glob("*.pcapng"))
    epoch_ns = int(run.run.get("epoch_ns") or EPOCH_NS)
    frames = read_frames([(run.folder / name, name) for name in names], epoch_ns, {})
    own = frames.filter(pl.col("direction") == _OUTBOUND, pl.col("tcp_length") > 0)
    return own.select("time_ns", bytes=pl.col("tcp_length").cast(pl.Int64)).sort("time_ns")


def _bytes_during(sent: pl.DataFrame, calls: pl.DataFrame) -> int:
    """From the begin of the first of some calls to the end of the last."""
    begin, end = calls["start_ns"].min(), calls["end_ns"].max()
    return int(sent.filter(pl.col("time_ns").is_between(begin, end))["bytes"].sum())
