# SPDX-License-Identifier: Apache-2.0
"""What a reproduction of khandker has measured, ready to be judged and shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean, median

import polars as pl

from sundial.papers.khandker import predict_sum, replay, table2
from sundial.papers.khandker.costs import Costs
from sundial.papers.khandker.counts import Policy, packets
from sundial.papers.khandker.paper import Khandker
from sundial.papers.khandker.sizes import PREDICTED
from sundial.papers.khandker.steps import Occurrence
from sundial.reproduce.fit import Candidate
from sundial.reproduce.verdicts import Undecidable

NULL = -1
"""In place of a size: the procedure without arguments."""
POLICIES: tuple[Policy, ...] = ("window", "halves")


@dataclass(frozen=True)
class Seen:
    """The later calls of one size."""

    times_us: tuple[float, ...]
    packets: tuple[int, ...]
    """IP packets of the request, of each different call."""
    bursts: tuple[tuple[int, ...], ...]
    """PDUs between facks, of each different call."""
    data: tuple[int, ...]
    """Bytes of the call in each packet of its first PDU."""
    facks: float
    """A call."""

    @property
    def mean_us(self) -> float:
        return mean(self.times_us)

    @property
    def median_us(self) -> float:
        return median(self.times_us)


@dataclass(frozen=True)
class StepSeen:
    """A step at one size."""

    times: float
    """A call."""
    work_us: float
    """A call."""
    path_us: float
    """Of it, on the path."""

    @property
    def once_us(self) -> float:
        return self.work_us / self.times


StepTable = Mapping[tuple[str, str], StepSeen]
"""By machine and step."""


@dataclass(frozen=True)
class Latency:
    """One run of calls that were traced."""

    run: str
    captures: tuple[str, ...]
    sizes: Mapping[int, Seen]
    steps: Mapping[int, StepTable]
    exact: int
    """Calls whose steps are their round trip."""
    calls: int
    slack_us: tuple[float, ...]
    """Of null calls: how long the client had slept when the response came."""

    def seen(self, size: int) -> Seen:
        """Raises Undecidable."""
        if size not in self.sizes:
            raise Undecidable(f"{size} bytes were not measured")
        return self.sizes[size]


@dataclass(frozen=True)
class Rate:
    """Calls by several threads."""

    calls: int
    span_s: float
    failed: int

    @property
    def per_s(self) -> float:
        return self.calls / self.span_s

    def mbps(self, size: int) -> float:
        return 8 * size * self.per_s / 1e6


@dataclass(frozen=True)
class Predicted:
    """A size, with what both predictors say of it."""

    size: int
    measured_us: float
    sum_us: float
    replay_us: float

    @property
    def sum_error(self) -> float:
        return table2.error_pct(self.measured_us, self.sum_us)

    @property
    def replay_error(self) -> float:
        return table2.error_pct(self.measured_us, self.replay_us)

    @property
    def out_of_sample(self) -> bool:
        """No unit cost is of this size."""
        return self.size in PREDICTED


@dataclass(frozen=True)
class Twins:
    """A run without a trace, and the same with one."""

    runs: tuple[str, str]
    compared: int
    """Files."""
    differ: tuple[str, ...]


@dataclass(frozen=True)
class Picture:
    """The call of figure 5: rows of steps.parquet with the paper's names."""

    client: str
    rtt_ns: int
    pieces: pl.DataFrame


@dataclass
class Results:
    """Everything of one reproduction."""

    paper: Khandker
    scale: str
    best: Candidate
    tried: Sequence[Candidate]
    costs: Costs | None = None
    """Of a run of its own."""
    first_us: dict[int, float] = field(default_factory=dict)
    """First calls of activities, by size."""
    latency: dict[Policy, Latency] = field(default_factory=dict)
    rates: dict[tuple[str, str, int], Rate] = field(default_factory=dict)
    """By topology, procedure and threads."""
    rate_runs: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    """By topology: the run and its captures."""
    twins: Twins | None = None
    picture: Picture | None = None

    def of(self, policy: Policy) -> Latency:
        """Raises Undecidable."""
        if policy not in self.latency:
            raise Undecidable(f"latency-{policy} was not measured")
        return self.latency[policy]

    def unit_costs(self) -> Costs:
        """Raises Undecidable."""
        if self.costs is None:
            raise Undecidable("unit-costs was not measured")
        return self.costs

    def series(self, wire: str, procedure: str) -> dict[int, Rate]:
        """By threads. Raises Undecidable for fewer than two numbers of threads."""
        found = {n: rate for (of, name, n), rate in self.rates.items() if (of, name) == (wire, procedure)}
        if len(found) < 2:
            raise Undecidable(f"{procedure} by threads was not measured on {wire}")
        return dict(sorted(found.items()))

    def predicted(self, policy: Policy) -> list[Predicted]:
        """All sizes of PDUs that are full or alone, out of the sample and in it. Raises Undecidable."""
        latency, costs = self.of(policy), self.unit_costs()
        chosen = [size for size in (*self.paper.sizes, *PREDICTED) if size in latency.sizes]
        return [
            Predicted(
                size,
                latency.sizes[size].mean_us,
                predict_sum.predict(costs, size, policy),
                replay.predict(costs, size, policy),
            )
            for size in sorted(set(chosen))
        ]


def step_table(calls: Sequence[Sequence[Occurrence]]) -> dict[tuple[str, str], StepSeen]:
    """What calls of one size did, on the mean."""
    found: dict[tuple[str, str], list[float]] = {}
    for occurrences in calls:
        for each in occurrences:
            sums = found.setdefault((each.node, each.step), [0, 0, 0])
            for place, value in enumerate((1, each.work_ns / 1e3, each.path_ns / 1e3)):
                sums[place] += value
    number = max(1, len(calls))
    return {key: StepSeen(*(value / number for value in sums)) for key, sums in found.items()}


def curves_table(results: Results) -> pl.DataFrame:
    """curves.csv: each size of each policy."""
    rows = []
    for policy, latency in results.latency.items():
        predicted = {each.size: each for each in results.predicted(policy)} if results.costs is not None else {}
        for size, seen in sorted(latency.sizes.items()):
            said = predicted.get(size)
            rows.append(
                (
                    policy, "null" if size == NULL else "put", max(size, 0), len(seen.times_us), seen.mean_us,
                    seen.median_us, min(seen.times_us), max(seen.times_us), results.first_us.get(size),
                    seen.packets[0],
                    packets(max(size, 0)), " ".join(map(str, seen.bursts[0])), seen.facks,
                    said.sum_us if said else None, said.replay_us if said else None,
                )
            )  # fmt: skip
    kinds = {
        "policy": pl.String, "procedure": pl.String, "size": pl.Int64, "calls": pl.Int64, "mean_us": pl.Float64,
        "median_us": pl.Float64, "least_us": pl.Float64, "most_us": pl.Float64, "first_us": pl.Float64,
        "packets": pl.Int64, "packets_expected": pl.Int64, "bursts": pl.String, "facks": pl.Float64,
        "sum_us": pl.Float64, "replay_us": pl.Float64,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=kinds, orient="row")


def steps_table(results: Results) -> pl.DataFrame:
    """steps.csv."""
    rows = [
        (policy, "null" if size == NULL else "put", max(size, 0), node or "wire", step, seen.times, seen.once_us,
         seen.work_us, seen.path_us)
        for policy, latency in results.latency.items()
        for size, table in sorted(latency.steps.items())
        for (node, step), seen in sorted(table.items())
    ]  # fmt: skip
    kinds = {
        "policy": pl.String, "procedure": pl.String, "size": pl.Int64, "at": pl.String, "step": pl.String,
        "times": pl.Float64, "once_us": pl.Float64, "call_us": pl.Float64, "path_us": pl.Float64,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=kinds, orient="row")


def threads_table(results: Results) -> pl.DataFrame:
    """threads.csv."""
    rows = [
        (wire, procedure, threads, rate.calls, rate.span_s, rate.per_s, rate.failed)
        for (wire, procedure, threads), rate in sorted(results.rates.items())
    ]
    kinds = {
        "topology": pl.String, "procedure": pl.String, "threads": pl.Int64, "calls": pl.Int64, "seconds": pl.Float64,
        "calls_per_s": pl.Float64, "failed": pl.Int64,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=kinds, orient="row")
