# SPDX-License-Identifier: Apache-2.0
"""All benchmarks by name, in the order in which they run."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks import (
    backplane,
    boot,
    dce,
    fabric,
    forwarding,
    free,
    hub,
    mutation,
    quickstart,
    recipes,
    repetition,
    shaping,
    sss,
    sweeping,
    tracing,
    verdict,
    verification,
    virtual_time,
    width,
)
from benchmarks.context import STORE, Cannot, Context, say
from benchmarks.figure import Figure, Outcome, Unmeasured
from benchmarks.host import host_name
from benchmarks.quiet import Meter
from sundial.errors import SundialError
from sundial.machines.recipes import chosen
from sundial.model.catalog import ROOT


@dataclass(frozen=True)
class Benchmark:
    """One subject: `measure` yields its figures as they become known."""

    name: str
    what: str
    measure: Callable[[Context], Iterator[Outcome]]
    timed: bool = True
    """Some of its figures depend on how fast the host is at that moment."""


BENCHMARKS = (
    Benchmark("fabric", "frames a second through the models, with capture", fabric.measure),
    Benchmark("hub", "a saturated hub, beside Metcalfe and Boggs 1976", hub.measure, timed=False),
    Benchmark("forwarding", "real time, beside vde_switch and wirefilter", forwarding.measure),
    Benchmark("shaping", "rates kept, in virtual and in real time", shaping.measure),
    Benchmark("boot", "from the command to the first call", boot.measure),
    Benchmark("verdict", "from the command to the verdict: 8 calls from a snapshot", verdict.measure),
    Benchmark("virtual-time", "wall seconds for a virtual second", virtual_time.measure),
    Benchmark("growth", "the same with 4 and 8 guests", virtual_time.measure_growth),
    Benchmark("width", "2 to 64 nodes, all but one call one: wall time and memory", width.measure),
    Benchmark("verification", "calls verified in a minute", verification.measure),
    Benchmark("captures", "memory for a large capture from elsewhere", verification.measure_capture),
    Benchmark("mutation", "damages to runs that verification does not notice", mutation.measure, timed=False),
    Benchmark("quickstart", "the main job as a whole, and memory", quickstart.measure),
    Benchmark("repetition", "the same run five times, to the byte", repetition.measure, timed=False),
    Benchmark("recipes", "the Linux image by its recipes: boot, calls, memory, sizes", recipes.measure, timed=False),
    Benchmark("dce", "DCE RPC beside Sun RPC: instructions of a null call", dce.measure, timed=False),
    Benchmark("tracing", "what a trace costs: the same calls traced and untraced in turns", tracing.measure),
    Benchmark("sweeping", "sweeps of 100,000 runs, simulated: the schedule, and Dask's scheduler", sweeping.measure),
    Benchmark("backplane", "SHRIMP: a store on a backplane, and guests that poll", backplane.measure),
    Benchmark("sss", "SSS-CORE: MBCF beside UDP, instructions, boot, memory", sss.measure),
)


def meter_of_this_host() -> Meter:
    """Its best is of this kind of host with this kind of guest."""
    host = f"{host_name()}, guests by {chosen(ROOT).recipe or 'the first recipe'}"
    return Meter(_free_running, host, STORE / "free-running.json")


def run_benchmark(benchmark: Benchmark, quick: bool, meter: Meter) -> Iterator[Outcome]:
    """Its figures; one that fails says why and leaves the others alone."""
    folder = Path(tempfile.mkdtemp(prefix="sbench-"))
    minutes = meter.begin()
    try:
        if benchmark.timed:
            meter.look()
        for outcome in benchmark.measure(Context(quick, folder, meter if benchmark.timed else None)):
            if not isinstance(outcome, Figure):
                yield outcome
            elif benchmark.timed:
                yield replace(outcome, minutes=minutes)
            else:
                yield replace(outcome, anywhere=True)
        if benchmark.timed:
            meter.look()
    except (Cannot, SundialError) as error:
        yield Unmeasured(benchmark.name, benchmark.what, str(error))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _free_running() -> float | None:
    try:
        return free.wall_per_virtual()
    except (Cannot, SundialError) as error:
        say(f"guests cannot run free: {error}")
        return None
