# SPDX-License-Identifier: Apache-2.0
"""A sweep as written: which runs of a scenario are made, and what is read from them."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from sundial.errors import BadInput
from sundial.model.bounds import Bound, BoundField, parse_measure
from sundial.model.fields import NAMED, PROSE, Marker, Percent, Strict, Whole, written
from sundial.model.scenario import SEED_MOST

SEEDS = re.compile(r"(\d+)(?:\.\.(\d+))?")
SEEDS_ALLOWED = "a seed, or a range such as 1..50"
SEEDS_MOST = 100_000
AXES_MOST = 12
POINTS_MOST = 1_000_000
EXAMPLE = "p50(rtt_us) where transport = udp"


class Seeds(Marker):
    """Seeds in a row; the value is a range."""

    def parse(self, value: object) -> range:
        if isinstance(value, range):
            return value
        found = None if isinstance(value, bool) else SEEDS.fullmatch(str(value))
        if found is None:
            raise BadInput(f"{value!r} is not a range of seeds", allowed=SEEDS_ALLOWED)
        first, last = int(found[1]), int(found[2] or found[1])
        if not first <= last <= SEED_MOST or last - first >= SEEDS_MOST:
            raise BadInput(f"{value!r} is out of range", allowed=f"up to {SEEDS_MOST} seeds from 0 to {SEED_MOST}")
        return range(first, last + 1)

    def show(self, value: range) -> str:
        return f"{value.start}..{value.stop - 1}"

    def schema(self) -> dict[str, Any]:
        return {"type": ["string", "integer"], "pattern": f"^(?:{SEEDS.pattern})$", "x-allowed": SEEDS_ALLOWED}


class MeasureField(Marker):
    """A bound without its limit."""

    def parse(self, value: object) -> Bound:
        return value if isinstance(value, Bound) else parse_measure(value)

    def show(self, value: Bound) -> str:
        return f"{value.of}{value.conditions}"

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "x-allowed": f"text such as {EXAMPLE!r}"}


_Name = Annotated[str, NAMED]
_Text = Annotated[str, PROSE]
_Least = Annotated[int, Whole(2, 1000)]


class SweepAxis(Strict):
    """One field of scenario or topology that varies: values, or both ends of a range."""

    key: _Text
    """The field, as `--set` names it."""
    values: list[Any] | None = Field(default=None, min_length=1)
    """Values; the first is the simplest one, to which `sundial search` shrinks."""
    start: Any = Field(default=None, alias="from")
    """One end of a range, for random points and thresholds; the simplest value."""
    end: Any = Field(default=None, alias="to")
    """The other end."""
    scale: Literal["linear", "log"] = "linear"
    """Distribution of points between the ends."""

    @model_validator(mode="after")
    def _has_values(self) -> Self:
        if (self.start is None) != (self.end is None) or (self.values is not None and self.start is not None):
            raise BadInput("has one end of a range, or values beside it", allowed="values, or both from and to")
        return self


class Until(Strict):
    """Seeds are added until the interval of a metric's median is narrow."""

    metric: _Name
    """One of `metrics`."""
    halfwidth: Annotated[Decimal, Percent()] = written("2 %")
    """Half the width of the 95 % interval, relative to the median."""
    least: _Least = 6
    """Seeds of each point before the interval counts."""
    most: _Least = 50
    """Seeds of each point after which it stays as wide as it is."""


class Threshold(Strict):
    """Where a metric, or the difference of two, reaches a level: found by bisection of an axis."""

    axis: _Name
    """An axis with `from` and `to`."""
    metric: _Name
    """One of `metrics`."""
    minus: _Name | None = None
    """Another metric, whose value is subtracted run by run."""
    level: Decimal = Decimal(0)
    """What is to be reached, in the unit of the metric."""
    within: Annotated[Decimal, Percent()] = written("5 %")
    """Width at which bisection ends, relative to the range of the axis."""
    least: _Least = 4
    """Seeds of each step; up to all `seeds` are added while the sign is not certain."""


class Search(Strict):
    """Runs are drawn until one fails; then it is made small."""

    runs: Annotated[int, Whole(1, POINTS_MOST)] = 200
    """Most runs that are drawn."""
    probes: Annotated[int, Whole(0, POINTS_MOST)] = 200
    """Most runs that make the failing one smaller."""


class Sweep(Strict):
    """Many runs of one scenario."""

    name: _Name
    """The file's name without its ending."""
    description: _Text | None = None
    """The question, in one sentence."""
    scenario: _Text
    """A scenario's name or file."""
    topology: _Text | None = None
    """A topology's name or file. Default: the scenario's."""
    scale: _Name | None = None
    """A scale of the scenario."""
    set: dict[str, Any] = Field(default_factory=dict)
    """Fields of all runs, by their keys as `--set` names them."""
    axes: dict[_Name, SweepAxis] = Field(default_factory=dict, max_length=AXES_MOST)
    """Fields that vary, by the names that tables and figures give them."""
    design: Literal["grid", "zip", "random", "halton", "sobol"] = "grid"
    """grid: all combinations of values; zip: first values, second values and so on; random, halton and sobol: `count`
    points over the ranges, halton more evenly, sobol most evenly where `count` is a power of 2."""
    count: Annotated[int, Whole(1, POINTS_MOST)] | None = None
    """Points of the designs random, halton and sobol."""
    points: list[dict[str, Any]] = Field(default_factory=list)
    """Points one by one instead of a design: a value for each axis, of which only `key` is needed then."""
    seeds: Annotated[range, Seeds()] = written("1")
    """Seeds of each point."""
    metrics: dict[_Name, Annotated[Bound, MeasureField()]] = Field(default_factory=dict)
    """What is read from each run, such as `p50(rtt_us) where transport = udp`."""
    expect: tuple[Annotated[Bound, BoundField()], ...] = ()
    """Bounds that each run must meet, as in `expect.metrics` of a scenario. They do not change the run."""
    until: Until | None = None
    """Add seeds until an interval is narrow."""
    threshold: Threshold | None = None
    """Bisect an axis."""
    search: Search | None = None
    """What `sundial search` may spend."""
    check: Annotated[Decimal, Percent()] = written("2 %")
    """Share of the runs that are made again and compared, at least one. 0 %: none."""
    keep: Literal["all", "failed", "none"] = "failed"
    """Runs whose captures are kept. Others are made again when they are asked for."""
    retries: Annotated[int, Whole(0, 20)] = 3
    """How often a run is begun again that the host did not bring to its end."""
