# SPDX-License-Identifier: Apache-2.0
"""A scenario as written: which workloads run between which machines, how often, and what must hold of the capture.

The fields of a workload are defined by its kind (`sundial/workloads`).
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from sundial import kinds
from sundial.model.argv import Argv
from sundial.model.bounds import Bound, BoundField
from sundial.model.fields import NAMED, NAMED_OR_FILE, PROSE, In, Strict, Whole, written
from sundial.model.statistic import Mean, Statistic
from sundial.model.timeline import Event
from sundial.model.workload import CallsField, Series, SizesField, Warmup, WorkloadBase, WorkloadKind
from sundial.units import TIME

SEED_MOST = 2**63 - 1
_MINUTE_NS = 60 * 10**9


def _workload_kinds() -> dict[str, WorkloadKind[Any]]:
    found = kinds.load("workloads", "model", WorkloadKind)
    for name, kind in found.items():
        if kind.model.model_fields["app"].annotation != Literal[name]:
            raise TypeError(f"workload {name!r}: the field app of its model must be Literal[{name!r}]")
    return dict(sorted(found.items(), key=lambda named: named[1].order))


KINDS: Mapping[str, WorkloadKind[Any]] = _workload_kinds()
"""Kinds by the word in `app`, in the order of every list."""

MEAN = "mean"
STATISTICS: Mapping[str, Statistic] = {MEAN: Mean(), **kinds.load("papers", "statistic", Statistic)}
"""Statistics by the word in `statistic`."""

_Name = Annotated[str, NAMED]
_Time = Annotated[int, In(TIME.between("1 ms", "24 h", example="10 min"))]

if TYPE_CHECKING:
    Workload = WorkloadBase
    StatisticName = str
else:
    Workload = Annotated[reduce(or_, (kind.model for kind in KINDS.values())), Field(discriminator="app")]
    StatisticName = Literal[tuple(STATISTICS)]


class Scale(Strict):
    """Fields that a scale sets in every workload that has them, and for the whole run."""

    calls: CallsField | None = None
    """Measured calls for each size."""
    series: Series | None = None
    """Number of repetitions."""
    sizes: SizesField | None = None
    """Argument sizes."""
    warmup: Warmup | None = None
    """Calls for each size before the measured ones."""
    deadline: _Time | None = None
    """Deadline of the whole run, in virtual time."""


class Expect(Strict):
    """Requirements on the run beyond exact packets."""

    retransmissions: Literal["explained", "none", "allowed"] = "explained"
    """Retransmissions of calls over UDP. explained: before each, the capture shows a request or a reply of the call
    that was lost or still under way. In any case they must be those that the client counted."""
    failures: Literal["none", "allowed"] = "none"
    """Calls that ended without a reply."""
    metrics: tuple[Annotated[Bound, BoundField()], ...] = Field(default=(), exclude_if=operator.not_)
    """Bounds on what the run measured, one text each: `p99(rtt_us) < 900 where size = 1024 and transport = udp`. An
    unmet one is a mismatch, and so is one whose condition no row meets."""
    check: Annotated[tuple[str, ...], Argv()] | None = None
    """Program on the host and its arguments, which judges the run: the run's directory is its last argument. Exit
    status 0: pass. A path with / begins at the scenario's folder; a name is searched in PATH."""
    check_timeout: Annotated[int, In(TIME.between("1 ms", "24 h", example="1 min"))] = Field(
        default="1 min",  # type: ignore[assignment]
        exclude_if=lambda value: value == _MINUTE_NS,
    )
    """Time of the host for `check`. A program that takes longer is ended and is a mismatch."""


class VaryMatrix(Strict):
    """A run for each combination of values."""

    matrix: dict[str, list[Any]]
    """Fields as --set names them, with their values. `sundial matrix` has the first in rows, the second in columns."""
    exclude: list[dict[str, Any]] = Field(default_factory=list)
    """Combinations that are left out: each mapping has values of some of the fields."""


class Scenario(Strict):
    """Workloads on a topology."""

    name: _Name
    """The file's name without its ending."""
    description: Annotated[str, PROSE] | None = None
    """One sentence: what it is for."""
    topology: Annotated[str, NAMED_OR_FILE]
    """Default topology: a name, a file, or its fields."""
    seed: Annotated[int, Whole(0, SEED_MOST)] = 1
    """Seed for all random choices of the run."""
    start: Annotated[int, In(TIME.between("1 ms", "1 min", example="300 ms"))] | None = None
    """Earliest virtual time of the first call. Default: 300 ms, or 1 s if a machine is a bridge, and more for machines
    slower than 125 mips."""
    stagger: Annotated[int, In(TIME.between(most="1 min", example="3 ms"))] = Field(
        default="0 ns",  # type: ignore[assignment]
        exclude_if=operator.not_,
    )
    """Delay of each client's first call after that of the client before it in the topology, in virtual time."""
    linger: Annotated[int, In(TIME.between("1 ms", "1 min", example="1 s"))] = written("1 s")
    """Time for which wires stay open after the last client has finished."""
    deadline: _Time = written("10 min")
    """Deadline of each client's jobs, on the run's time axis. The run ends `linger` after it, at an exact instant in
    virtual time, and fails if a client has not finished."""
    timeline: list[Event] = Field(default_factory=list, exclude_if=operator.not_)
    """Events that change segments, cut the power of a machine, pause, kill or restart programs, at exact instants."""
    workloads: list[Workload] = Field(min_length=1)
    """Workloads, in sequence on each client."""
    scale: dict[Literal["smoke", "quick", "paper"], Scale] = Field(default_factory=dict)
    """Scales of the same experiment, by name."""
    default_scale: Literal["smoke", "quick", "paper"] | None = None
    """Scale to use if none is given; required if `scale` is present."""
    vary: list[dict[str, Any]] | VaryMatrix = Field(default_factory=list)
    """Overrides as for --set, one mapping for each run of the command. Empty: one run. Or a matrix of values."""
    statistic: StatisticName = Field(
        default=MEAN,
        description=f"Statistic over series. {'; '.join(f'{word}: {it.rule}' for word, it in STATISTICS.items())}.",
    )
    expect: Expect = Expect()
    """Requirements on the run."""
