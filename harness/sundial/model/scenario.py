# SPDX-License-Identifier: Apache-2.0
"""A scenario as written: which workloads run between whom, how often, and what must be true of the capture.

What a workload may say is its kind's (`sundial/workloads`).
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from sundial import kinds
from sundial.model.fields import NAMED, NAMED_OR_FILE, PROSE, In, Strict, Whole, written
from sundial.model.statistic import Mean, Statistic
from sundial.model.workload import CallsField, Series, SizesField, Warmup, WorkloadBase, WorkloadKind
from sundial.units import TIME

SEED_MOST = 2**63 - 1


def _workload_kinds() -> dict[str, WorkloadKind[Any]]:
    found = kinds.load("workloads", "model", WorkloadKind)
    for name, kind in found.items():
        if kind.model.model_fields["app"].annotation != Literal[name]:
            raise TypeError(f"workload {name!r}: the field app of its model must be Literal[{name!r}]")
    return dict(sorted(found.items(), key=lambda named: named[1].order))


KINDS: Mapping[str, WorkloadKind[Any]] = _workload_kinds()
"""By the word in `app`, in the order in which they are listed everywhere."""

MEAN = "mean"
STATISTICS: Mapping[str, Statistic] = {MEAN: Mean(), **kinds.load("papers", "statistic", Statistic)}
"""By the word in `statistic`."""

_Name = Annotated[str, NAMED]
_Time = Annotated[int, In(TIME.between("1 ms", "24 h", example="10 min"))]

if TYPE_CHECKING:
    Workload = WorkloadBase
    StatisticName = str
else:
    Workload = Annotated[reduce(or_, (kind.model for kind in KINDS.values())), Field(discriminator="app")]
    StatisticName = Literal[tuple(STATISTICS)]


class Scale(Strict):
    """What a scale sets in every workload that has the field, and for the whole run."""

    calls: CallsField | None = None
    """Measured calls for each size."""
    series: Series | None = None
    """Times the whole is repeated."""
    sizes: SizesField | None = None
    """Argument sizes."""
    warmup: Warmup | None = None
    """Calls for each size before those measured."""
    deadline: _Time | None = None
    """Of the whole run, in virtual time."""


class Expect(Strict):
    """What must be true of the run beyond exact packets."""

    retransmissions: Literal["explained", "none", "allowed"] = "explained"
    """Of calls over UDP. Explained: before each the capture shows a request or a reply of the call that did not
    arrive, or not yet. Whatever is said here, they must be the ones that the client counted."""
    failures: Literal["none", "allowed"] = "none"
    """Calls that ended without a reply."""


class Scenario(Strict):
    """Workloads on a topology."""

    name: _Name
    """The file's name without its ending."""
    description: Annotated[str, PROSE]
    """One sentence: what it is for."""
    topology: Annotated[str, NAMED_OR_FILE]
    """Where it runs unless another is named."""
    seed: Annotated[int, Whole(0, SEED_MOST)] = 1
    """Of everything random in the run."""
    start: Annotated[int, In(TIME.between("1 ms", "1 min", example="300 ms"))] | None = None
    """When the first call may leave in virtual time; left out: 300 ms, 1 s where a
    machine is a bridge, more for machines slower than 125 mips."""
    stagger: Annotated[int, In(TIME.between(most="1 min", example="3 ms"))] = Field(
        default="0 ns",  # type: ignore[assignment]
        exclude_if=operator.not_,
    )
    """How much later than that of the client before it, in the topology, a client's first call may leave in virtual
    time."""
    linger: Annotated[int, In(TIME.between("1 ms", "1 min", example="1 s"))] = written("1 s")
    """How long the wires stay open after the last client is done."""
    deadline: _Time = written("10 min")
    """When each client must be done, on the run's axis; if not, the run fails. It ends `linger` after that, at an exact
    instant in virtual time."""
    workloads: list[Workload] = Field(min_length=1)
    """One after the other on each client."""
    scale: dict[Literal["smoke", "quick", "paper"], Scale] = Field(default_factory=dict)
    """Sizes of the same experiment."""
    default_scale: Literal["smoke", "quick", "paper"] | None = None
    """Which scale holds when none is asked for; needed where `scale` is."""
    vary: list[dict[str, Any]] = Field(default_factory=list)
    """Overrides as for --set, one mapping for each run of the command; empty: one run."""
    statistic: StatisticName = Field(
        default=MEAN, description=f"Over series. {'; '.join(f'{word}: {it.rule}' for word, it in STATISTICS.items())}."
    )
    expect: Expect = Expect()
    """What must be true of the run."""
