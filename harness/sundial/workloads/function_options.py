# SPDX-License-Identifier: Apache-2.0
"""Steps of workloads that call by size or the twelve functions."""

from __future__ import annotations

from sundial.plan.calling import Band, bands
from sundial.plan.workload import Options
from sundial.workloads.function_calls import SizesOrFunctions


def turns(
    workload: SizesOrFunctions, series: int, seed: int, *, sizeless: bool = False, most: int | None = None
) -> list[Band]:
    """What each step calls: bands of sizes, or all functions in one."""
    if workload.functions is None:
        return bands(workload, series, seed, sizeless=sizeless, most=most)
    return [(workload.calls[0][1], [])]


def function_options(workload: SizesOrFunctions) -> Options:
    """In place of the options of a step that calls by size."""
    return {} if workload.functions is None else {"sizes": None, "functions": list(workload.functions)}
