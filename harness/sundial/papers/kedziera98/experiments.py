# SPDX-License-Identifier: Apache-2.0
"""The experiments of kedziera98: speeds of its three machines, then one run for each curve."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from sundial.errors import RunFailed
from sundial.model.images import IMAGES
from sundial.papers.kedziera98 import names
from sundial.papers.kedziera98.curves import PAPER, curve_of
from sundial.papers.kedziera98.names import LAST
from sundial.papers.kedziera98.paper import Band, Extent, Kedziera98
from sundial.papers.kedziera98.results import Control, Fit, Results, Stream
from sundial.reproduce.fit import Point, nearest
from sundial.reproduce.measure import Measured
from sundial.reproduce.runs import Bench, Mips, Spec

SUN, SOLARIS_PC, LINUX_PC = "sun", "solaris_pc", "linux_pc"
FIRST_MIPS = {SUN: Decimal("62.5"), SOLARIS_PC: Decimal("7.8125"), LINUX_PC: Decimal("7.8125")}
"""Where the search for each speed begins, and where it has ended so far."""

ON_ATM, MIXED, ON_HUB = "two-hosts-lane", "pc-hub-lane", "two-hosts-10base-t"
"""Topologies. Each has the machines `client` and `server`; in MIXED the client is on the hub, the server on ATM."""

LIBRARY = {"send_buffer": 65536, "tcp_nodelay": True}
"""libtirpc's own record buffer and option, written out."""
LINUX_1998 = {"send_buffer": 4000, "tcp_nodelay": False}
"""Record buffer of the Linux PC's library, and Nagle's rule."""
PC_CLIENT = {**LINUX_1998, "serving": LIBRARY}
PC_SERVER = {**LIBRARY, "serving": LINUX_1998}
SOCKETS_1998 = {"tcp_nodelay": False, "serving": {"tcp_nodelay": True}}
"""Raw sockets have no record buffer."""


@dataclass(frozen=True)
class Plan:
    """One run with a curve, or without one."""

    key: str
    name: str
    about: str
    topology: str
    machines: tuple[str, str]
    """Which of the paper's machines `client` and `server` are."""
    transport: str
    workload: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)


_RPC = {"app": "sunrpc", "procedures": ["echo"]}
_EXCHANGED = {"clients": ["server"], "server": "client"}

CURVES = (
    Plan(names.ATM, "SUN-SUN-ATM", "figures 1, 2 and 4: two SUNs on ATM", ON_ATM, (SUN, SUN), "tcp", _RPC),
    Plan(names.LINUX, "Linux-SUN", "figure 1: Linux PC calls SUN", MIXED, (LINUX_PC, SUN), "tcp", _RPC, PC_CLIENT),
    Plan(names.SWAPPED, "Linux-SUN, exchanged", "figure 1: SUN calls Linux PC", MIXED, (LINUX_PC, SUN), "tcp",
         {**_RPC, **_EXCHANGED}, PC_SERVER),
    Plan(names.TCP, "Linux-SUN, TCP", "figure 3: Linux PC calls SUN", MIXED, (LINUX_PC, SUN), "tcp", _RPC, PC_CLIENT),
    Plan(names.UDP, "Linux-SUN, UDP", "figure 3: Linux PC calls SUN", MIXED, (LINUX_PC, SUN), "udp", _RPC),
    Plan(names.ETHERNET, "PC_Solaris-SUN-Ethernet", "figure 4: Solaris PC calls SUN", MIXED, (SOLARIS_PC, SUN), "tcp",
         _RPC),
    Plan(names.RAW_TCP, "raw TCP, Linux-SUN", "raw sockets, Linux PC to SUN", MIXED, (LINUX_PC, SUN), "tcp",
         {"app": "raw"}, SOCKETS_1998),
    Plan(names.RAW_UDP, "raw UDP, Linux-SUN", "raw sockets, Linux PC to SUN", MIXED, (LINUX_PC, SUN), "udp",
         {"app": "raw"}),
    Plan(names.PCS, "Linux-PC_Solaris", "Linux PC calls Solaris PC", ON_HUB, (LINUX_PC, SOLARIS_PC), "tcp",
         _RPC, PC_CLIENT),
)  # fmt: skip
SELECTED_ONLY = (names.TCP, names.UDP, names.RAW_TCP, names.RAW_UDP)
"""Measured at the sizes of figure 3."""

STREAMS = (
    Plan(names.STREAM_ATM, "SUN to SUN", "iperf3 over TCP, SUN to SUN", ON_ATM, (SUN, SUN), "tcp", {"app": "iperf3"}),
    Plan(names.STREAM_LINUX, "Linux PC to SUN", "iperf3 over TCP, Linux PC to SUN", MIXED, (LINUX_PC, SUN), "tcp",
         {"app": "iperf3"}),
)  # fmt: skip
FIRST_CALLS = 10

FITS = (
    (SUN, "atm", Plan("fit-sun", "SUN-SUN-ATM", "its speed", ON_ATM, (SUN, SUN), "tcp", _RPC)),
    (SOLARIS_PC, "ethernet",
     Plan("fit-solaris-pc", "PC_Solaris-SUN-Ethernet", "the PC's speed", MIXED, (SOLARIS_PC, SUN), "tcp", _RPC)),
    (LINUX_PC, "linux-udp",
     Plan("fit-linux-pc", "Linux-SUN, UDP", "the PC's speed", MIXED, (LINUX_PC, SUN), "udp", _RPC)),
)  # fmt: skip
"""Machines in the order in which they are fitted, each with the printed value."""
TRIED_EACH = 3
"""Speeds that a fit tries at least: the nearest and its neighbours."""


def perform(paper: Kedziera98, bench: Bench, extent: Extent, scale: str) -> Results:
    """All runs. Raises RunFailed where a machine's speed cannot be found."""
    after_fits = len(CURVES) + len(STREAMS) + 1
    bench.expect((TRIED_EACH if extent.search else 1) * len(FITS) + after_fits)
    results = Results(paper, scale)
    speeds: dict[str, Decimal] = {}
    for machine, value, plan in FITS:
        results.fits.append(fit_machine(results, bench, extent, speeds, machine, value, plan))
        speeds[machine] = results.fits[-1].mips
    bench.expect(after_fits)
    asked = [
        *(_run_of(extent, plan, speeds, _calling(plan, _bands(extent, plan), extent.series)) for plan in CURVES),
        *(
            _run_of(
                extent,
                plan,
                speeds,
                [{**plan.workload, "transports": [plan.transport], "duration": f"{extent.seconds} s"}],
            )
            for plan in STREAMS
        ),
        _control_run(extent, speeds),
    ]
    runs = bench.make_all(asked)
    for plan, run in zip(CURVES, runs, strict=False):
        if run is not None:
            results.curves[plan.key] = curve_of(plan.key, plan.name, run, plan.transport)
    for plan, run in zip(STREAMS, runs, strict=False):
        if run is not None:
            results.streams += _streams(plan, run)
    (last,) = runs
    results.control = None if last is None else _control(last)
    return results


def _bands(extent: Extent, plan: Plan) -> Sequence[Band]:
    return extent.selected if plan.key in SELECTED_ONLY else extent.bands


def fit_machine(
    results: Results,
    bench: Bench,
    extent: Extent,
    known: Mapping[str, Decimal],
    machine: str,
    value: str,
    plan: Plan,
) -> Fit:
    """The speed of one machine, those of others known. Raises RunFailed where one could not be measured."""
    printed = results.paper.value(value)
    rate_kBps = printed.one * {"kB/s": 1, "MB/s": 1000}[printed.unit]
    at: Point = (printed.figure or 0, LAST)
    printed_us = 2000 * LAST / rate_kBps

    def measure(mips: Decimal) -> dict[Point, float]:
        named = Plan(
            f"{plan.key}-{str(mips.normalize()).replace('.', '-')}-mips", plan.name, f"{plan.about}: {mips:f} mips",
            plan.topology, plan.machines, plan.transport, plan.workload, plan.options,
        )  # fmt: skip
        workloads = _calling(plan, [Band(sizes=(LAST,), calls=extent.fit_calls)], max(2, extent.series))
        run = bench.make(*_run_of(extent, named, {**known, machine: mips}, workloads))
        point = None if run is None else curve_of(plan.key, plan.name, run, plan.transport).points.get(LAST)
        if point is None:
            raise RunFailed(f"{named.key} was not measured, so the speed of {machine} is not known")
        return {at: point.time_us}

    first = FIRST_MIPS[machine]
    best, tried = nearest(IMAGES["linux"].speeds if extent.search else [first], first, {at: printed_us}, measure)
    of = f"{plan.name} over {plan.transport.upper()}, {LAST} B"
    return Fit(machine, value, of, printed_us, best, tuple(tried))


def _calling(plan: Plan, bands: Sequence[Band], series: int) -> list[dict[str, Any]]:
    """A workload for each number of calls."""
    common = {
        **plan.workload, "transports": [plan.transport], "series": series, "warmup": 1, "order": "seeded",
        "connection": "per-size", **plan.options,
    }  # fmt: skip
    return [{**common, "sizes": list(band.sizes), "calls": band.calls} for band in bands]


def _run_of(
    extent: Extent, plan: Plan, speeds: Mapping[str, Decimal], workloads: Sequence[Mapping[str, Any]]
) -> tuple[Spec, Mips]:
    cells = () if extent.cells or plan.topology == ON_HUB else ("segments.elan.capture.cells=false",)
    spec = Spec(
        plan.key, f"{plan.name}: {plan.about}", plan.topology, workloads, cells, deadline=extent.deadline,
        statistic=PAPER,
    )  # fmt: skip
    mips = {machine: speeds[is_one] for machine, is_one in zip(("client", "server"), plan.machines, strict=True)}
    return spec, mips


def _streams(plan: Plan, run: Measured) -> list[Stream]:
    found = []
    for record in run.reported("client", "iperf3"):
        end = record.get("result", {}).get("end", {})
        sent, received = end.get("sum_sent", {}), end.get("sum_received", {})
        if "bits_per_second" in received:
            rate = float(received["bits_per_second"]) / 1e6
            found.append(Stream(plan.name, plan.key, rate, int(sent.get("retransmits", 0))))
    return found


def _control_run(extent: Extent, speeds: Mapping[str, Decimal]) -> tuple[Spec, Mips]:
    """Two hosts that have never spoken: LAN emulation is asked for everything.

    Raw sockets, as a library of RPC would have the first exchange before the first call, when it binds.
    """
    raw = {"app": "raw"}
    plan = Plan(names.CONTROL, "SUN-SUN-ATM", "LAN emulation at the first calls", ON_ATM, (SUN, SUN), "udp", raw)
    workload = {**raw, "transports": ["udp"], "sizes": [16], "calls": FIRST_CALLS, "warmup": 0}
    return _run_of(extent, plan, speeds, [workload])


def _control(run: Measured) -> Control | None:
    times = run.calls(ok=True).sort("start_ns")["rtt_ns"]
    if times.len() < 2:
        return None
    counted = json.loads((run.folder / "wire" / "counters.json").read_text())["segments"]
    ports = {port: _whole(counts) for segment in counted.values() for port, counts in segment["ports"].items()}
    later = times.slice(1).median()
    assert isinstance(later, float)
    return Control(names.CONTROL, run.captures, times[0] / 1e3, later / 1e3, ports)


def _whole(counts: Mapping[str, Any]) -> dict[str, int]:
    return {name: value for name, value in counts.items() if isinstance(value, int)}
