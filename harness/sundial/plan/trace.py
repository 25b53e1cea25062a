# SPDX-License-Identifier: Apache-2.0
"""Functions that a run stamps, by machine; their addresses follow from its images and snapshots.

Functions come from the kinds of the workloads that are traced: module `plan_trace` of a kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

from sundial import kinds
from sundial.errors import BadInput
from sundial.model.experiment import Experiment
from sundial.model.workload import NO_TRACE, Traced
from sundial.plan.workload import Host
from sundial.seams.trace import Role

Stamps = Literal["entry", "exit", "both"]
POINTS_MOST = 4096
"""Most points of one machine (harness/clock/points.h)."""
_KERNEL = "kernel:"


@dataclass(frozen=True)
class Function:
    """A function to stamp."""

    names: tuple[str, ...]
    """Its names in kernels and libraries; the first that exists is used."""
    application: str | None = None
    """Application whose program has it; None: the kernel."""
    stamps: Stamps = "both"
    role: Role = None
    needed: bool = True
    """False: left out if no name exists, because other kernels have other functions between the same two."""
    anywhere: bool = False
    """True: look in the kernel if the program has none of the names."""


TracedT_contra = TypeVar("TracedT_contra", bound=Traced, contravariant=True)


@runtime_checkable
class WorkloadTrace(Protocol[TracedT_contra]):
    """A kind of workload that can be traced."""

    def functions(self, workload: TracedT_contra, host: Host, *, serves: bool) -> Iterator[Function]:
        """Functions that separate steps, on the server or on a client, in the order of a call."""

    def application(self, workload: TracedT_contra, host: Host, *, serves: bool) -> str:
        """Application whose program is searched first for functions that a user names."""


TRACES: Mapping[str, WorkloadTrace[Any]] = kinds.load("workloads", "plan_trace", WorkloadTrace)
"""By the word in `app`."""


def traced_functions(experiment: Experiment) -> dict[str, tuple[Function, ...]]:
    """Functions by machine, each once; machines without any are left out. Raises BadInput for too many."""
    found: dict[str, dict[Function, None]] = {}
    for workload in experiment.workloads:
        if not isinstance(workload, Traced) or workload.trace == NO_TRACE:
            continue
        for name in (workload.server, *workload.clients):
            host = Host(experiment.network, experiment.network.node(name))
            functions = _functions(workload, host, serves=name == workload.server)
            found.setdefault(name, {}).update(dict.fromkeys(functions))
    for name, functions_of in found.items():
        if len(functions_of) > POINTS_MOST:
            what = f"{len(functions_of)} functions to trace on machine {name!r} are too many"
            raise BadInput(what, field="trace", allowed=f"up to {POINTS_MOST}")
    return {name: tuple(functions_of) for name, functions_of in found.items()}


def _functions(workload: Traced, host: Host, *, serves: bool) -> Iterator[Function]:
    kind = TRACES[workload.app]
    if isinstance(workload.trace, str):
        yield from kind.functions(workload, host, serves=serves)
        return
    application = kind.application(workload, host, serves=serves)
    for name in workload.trace:
        if name.startswith(_KERNEL):
            yield Function((name.removeprefix(_KERNEL),))
        else:
            yield Function((name,), application, anywhere=True)
