# SPDX-License-Identifier: Apache-2.0
"""All benchmarks by name, in the order in which they run."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import (
    boot,
    fabric,
    forwarding,
    hub,
    mutation,
    quickstart,
    recipes,
    repetition,
    shaping,
    sss,
    verification,
    virtual_time,
)
from benchmarks.context import Cannot, Context
from benchmarks.figure import Outcome, Unmeasured
from sundial.errors import SundialError


@dataclass(frozen=True)
class Benchmark:
    """One subject: `measure` yields its figures as they become known."""

    name: str
    what: str
    measure: Callable[[Context], Iterator[Outcome]]


BENCHMARKS = (
    Benchmark("fabric", "frames a second through the models, with capture", fabric.measure),
    Benchmark("hub", "a saturated hub, beside Metcalfe and Boggs 1976", hub.measure),
    Benchmark("forwarding", "real time, beside vde_switch and wirefilter", forwarding.measure),
    Benchmark("shaping", "rates kept, in virtual and in real time", shaping.measure),
    Benchmark("boot", "from the command to the first call", boot.measure),
    Benchmark("virtual-time", "wall seconds for a virtual second", virtual_time.measure),
    Benchmark("growth", "the same with 4 and 8 guests", virtual_time.measure_growth),
    Benchmark("verification", "calls verified in a minute", verification.measure),
    Benchmark("captures", "memory for a large capture from elsewhere", verification.measure_capture),
    Benchmark("mutation", "damages to runs that verification does not notice", mutation.measure),
    Benchmark("quickstart", "the main job as a whole, and memory", quickstart.measure),
    Benchmark("repetition", "the same run five times, to the byte", repetition.measure),
    Benchmark("recipes", "the Linux image by its recipes: boot, calls, memory, sizes", recipes.measure),
    Benchmark("sss", "SSS-CORE: MBCF beside UDP, instructions, boot, memory", sss.measure),
)


def run_benchmark(benchmark: Benchmark, quick: bool) -> Iterator[Outcome]:
    """Its figures; one that fails says why and leaves the others alone."""
    folder = Path(tempfile.mkdtemp(prefix="sbench-"))
    try:
        yield from benchmark.measure(Context(quick, folder))
    except (Cannot, SundialError) as error:
        yield Unmeasured(benchmark.name, benchmark.what, str(error))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
