# SPDX-License-Identifier: Apache-2.0
"""The experiments of santos18: both systems in both places, and by the link's round trip time; others beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl

from sundial import EPOCH_NS
from sundial.expect.ip import ETHERNET_HEADER, UDP_HEADER
from sundial.model.images import IMAGES
from sundial.observe import read_frames
from sundial.papers.santos18 import other_systems
from sundial.papers.santos18.exchanges import exchanges
from sundial.papers.santos18.paper import Extent, Place, Santos18
from sundial.papers.santos18.results import DISTANCE, Case, Cell, Results, Slope
from sundial.papers.santos18.spread import spread
from sundial.reproduce.measure import Measured
from sundial.reproduce.runs import Bench, Spec
from sundial.units import TIME
from sundial.workloads.functions import NAMES
from sundial.workloads.mbcf.wire import ETHERTYPE

MIPS = Decimal(125)
"""Of all machines; nothing is fitted."""
TOPOLOGIES: Mapping[Place, str] = {"local": "one-host", "remote": "two-hosts-wifi"}
SYSTEMS = ("grpc", "rpyc")
IMAGE = "linux-python"
_OUTBOUND = 2
"""Of a frame's direction: sent by the machine at whose port it was seen."""
NODELAY_PORT = 18862
"""OtherSystem the default port: a server whose connections have TCP_NODELAY."""
SLOPED = ("void", "string_1024", DISTANCE)
"""Functions whose round trips are counted by the link's delay."""
SWITCHES = "context_switches"
"""Of batches, and of servers by function."""
NS_PER_MS = 1_000_000
_BOOTS = f"defaults.image={IMAGE}"
Workload = dict[str, Any]
"""As scenarios write it."""


def perform(paper: Santos18, bench: Bench, extent: Extent, scale: str) -> Results:
    """All runs."""
    results = Results(paper, scale, MIPS, versions=IMAGES[IMAGE].python or {})
    asked = [(place, spec) for place in TOPOLOGIES for spec in _calls_specs(place, extent)]
    slopes = [(delay, _slope_spec(system, delay, extent)) for system in SYSTEMS for delay in extent.delays]
    bench.expect(len(asked) + len(slopes))
    runs = bench.make_all((spec, MIPS) for _, spec in [*asked, *slopes])
    for (place, _), run in zip(asked, runs, strict=False):
        if run is not None:
            results.cells.update(_cells(run, place, paper, bench.seed))
    points: dict[Case, dict[float, float]] = {}
    for (delay, _), run in zip(slopes, runs, strict=True):
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


def _functions(system: str, calls: int, functions: Sequence[str]) -> Iterator[Workload]:
    """As the figures show them: of RPyC with lists."""
    if system == "grpc":
        yield {"app": "grpc", "functions": list(functions), "calls": calls, "warmup": 1}
    else:
        yield {**_rpyc(calls, functions), "containers": ["list"], "distance": ["numpy"]}


def _otherwise(calls: int, nodelay: Sequence[str]) -> Iterator[Workload]:
    """The distance over RPyC without numpy and with tuples; and some functions with TCP_NODELAY."""
    yield {**_rpyc(calls, [DISTANCE]), "containers": ["list"], "distance": ["zip"]}
    yield {**_rpyc(calls, [DISTANCE]), "containers": ["tuple"], "distance": ["numpy", "zip"]}
    more = {"tcp_nodelay": [True], "port": NODELAY_PORT}
    yield {**_rpyc(calls, nodelay), "containers": ["list"], "distance": ["numpy"], **more}


def _rpyc(calls: int, functions: Sequence[str]) -> Workload:
    return {"app": "rpyc", "calls": calls, "warmup": 1, "functions": list(functions)}


def _calls_specs(place: Place, extent: Extent) -> Iterator[Spec]:
    """The calls of RPyC in two runs, as they take the longest and runs are made side by side."""
    where = {"clients": ["server"]} if place == "local" else {}

    def spec(name: str, about: str, workloads: Iterator[Workload]) -> Spec:
        calls = [{**each, **where} for each in workloads]
        return Spec(f"{name}-{place}", f"{about}, {place}", TOPOLOGIES[place], calls, (_BOOTS,))

    for system in SYSTEMS:
        yield spec(system, f"the twelve functions over {system}", _functions(system, extent.calls, NAMES))
    about = "the distance over rpyc with tuples and without numpy, TCP_NODELAY"
    yield spec("rpyc-otherwise", about, _otherwise(extent.beside_calls, SLOPED))
    yield spec(
        "others",
        "the twelve functions over systems of other decades",
        other_systems.workloads(extent.beside_calls, place),
    )


def _slope_spec(system: str, delay: str, extent: Extent) -> Spec:
    calls = list(_functions(system, extent.slope_calls, SLOPED))
    if system == "rpyc":
        calls += _otherwise(extent.slope_calls, SLOPED)
    settings = (_BOOTS, f"segments.air.impairments.both={{delay: {delay}}}")
    name = f"{system}-delay-{delay.replace(' ', '').replace('.', '-')}"
    return Spec(name, f"{system} by round trip: a delay of {delay} each way", TOPOLOGIES["remote"], calls, settings)


# ---- what is taken from it ----


def _cases(run: Measured, place: Place) -> Iterator[tuple[Case, pl.DataFrame]]:
    """The measured calls of each case that succeeded."""
    calls = run.samples.filter(~pl.col("warmup"), "ok")
    for (client, step, function), table in calls.group_by("client", "node_step", "procedure", maintain_order=True):
        made = run.steps(str(client))[int(step)]
        transport = str(table["transport"][0])
        system = other_systems.system_of(made["app"], transport) or transport
        yield _case(system, place, str(function), made["options"]), table.sort("start_ns")


def _case(system: str, place: Place, function: str, options: Mapping[str, Any]) -> Case:
    if system != "rpyc":
        return Case(system, place, function)
    nodelay = bool(options["tcp_nodelay"])
    if function != DISTANCE:
        return Case(system, place, function, nodelay=nodelay)
    return Case(system, place, function, options["container"], options["distance"], nodelay)


def _cells(run: Measured, place: Place, paper: Santos18, seed: int) -> Iterator[tuple[Case, Cell]]:
    observed = pl.read_parquet(run.folder / "observed.parquet")
    files = _captures(run)
    frames = read_frames(files, int(run.run.get("epoch_ns") or EPOCH_NS)).filter(pl.col("direction") == _OUTBOUND)
    sent, asked = _lengths(frames), exchanges(run.samples, frames, files)
    batches = {
        (client, batch["step"], batch["procedure"]): batch
        for client in run.run["nodes"]
        for batch in run.reported(client, "batch")
    }
    # A server counts upwards, and reports in each pause: the last line counts.
    counters = {line.get("port"): line for server in run.run["nodes"] for line in run.reported(server, "counters")}
    served = Counter((batch.get("server_port"), batch["procedure"]) for batch in batches.values())
    for case, table in _cases(run, place):
        first = table.row(0, named=True)
        batch = batches[first["client"], first["node_step"], case.function]
        of_case = observed.join(table.select("client", "batch", "call"), on=["client", "batch", "call"], how="semi")
        calls = int(batch["warmup"]) + table.height
        port = batch.get("server_port")
        alone = served[port, case.function] == 1
        requests = asked.get((first["client"], first["batch"]))
        times = table["rtt_ns"].to_list()
        during = sent.filter(pl.col("time_ns").is_between(table["start_ns"].min(), table["end_ns"].max()))
        packets = of_case.select(pl.sum_horizontal("request_packets", "reply_packets").mean()).item()
        yield (
            case,
            Cell(
                run=run.folder.name,
                captures=run.captures,
                spread=spread(times, paper.percentiles, seed),
                in_order_ms=tuple(each / NS_PER_MS for each in times),
                packets=float(packets or 0),
                frames=during.height / table.height,
                frame_bytes=int(during["frame_bytes"].sum()) / table.height,
                message_bytes=int(during["message_bytes"].sum()) / table.height,
                exchanges=None if requests is None else requests / calls,
                context_switches=switched(batch, counters.get(port, {}), calls) if alone else None,
                instructions=median(times) * float(MIPS) / 1000 if place == "local" else None,
            ),
        )


def switched(batch: Mapping[str, Any], counters: Mapping[str, Any], calls: int) -> float | None:
    """Context switches of both processes, a call of a batch; `counters`: of its server, where no other client
    called the function. None: they do not count them."""
    own, there = batch.get(SWITCHES), counters.get(SWITCHES, {}).get(batch["procedure"])
    if own is None or there is None:
        return None
    return float(own / (calls - int(batch["warmup"])) + there / calls)


def _captures(run: Measured) -> list[tuple[Path, str]]:
    """Of frames, each with its name below the run's folder."""
    return [(path, str(path.relative_to(run.folder))) for path in sorted((run.folder / "wire").glob("*.pcapng"))]


def _lengths(sent: pl.DataFrame) -> pl.DataFrame:
    """Of each frame that was sent: time_ns, frame_bytes, and message_bytes that it carries for the system in it."""
    octets = {name: pl.col(name).cast(pl.Int64) for name in ("frame_length", "tcp_length", "udp_length")}
    message = (
        pl.when(pl.col("ethertype").cast(pl.String) == f"0x{ETHERTYPE:04x}")
        .then(octets["frame_length"] - ETHERNET_HEADER)
        .otherwise(pl.coalesce(octets["tcp_length"], octets["udp_length"] - UDP_HEADER, 0))
    )
    return sent.select("time_ns", frame_bytes=octets["frame_length"], message_bytes=message).sort("time_ns")
