# SPDX-License-Identifier: Apache-2.0
"""What a reproduction of santos18 has measured, ready to be judged and shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

import polars as pl

from sundial.papers.santos18.paper import Container, Place, Santos18, System
from sundial.papers.santos18.spread import Spread
from sundial.reproduce.verdicts import Undecidable
from sundial.workloads.functions import NAMES

FIRST_ELEVEN = NAMES[:11]
"""What all figures before 14 show: the paper leaves the distance out of them."""
DISTANCE = NAMES[11]


@dataclass(frozen=True)
class Case:
    """One function as it was called."""

    system: str
    """A word of `System`, or another system that is beside them."""
    place: Place
    function: str
    container: Container = "list"
    """Of arrays, and of the two points; it says nothing of a system that knows only one."""
    variant: str = "numpy"
    """How a server of RPyC computes the distance."""
    nodelay: bool = False
    """TCP_NODELAY; gRPC sets it, whatever this says."""

    @property
    def what(self) -> str:
        """The function, and how it was called where that makes a difference."""
        how = [self.container, self.variant] if self.function == DISTANCE and self.system == "rpyc" else []
        how += ["no Nagle"] if self.nodelay else []
        return f"{self.function} ({', '.join(how)})" if how else self.function


@dataclass(frozen=True)
class Cell:
    """What was measured of a case."""

    run: str
    captures: tuple[str, ...]
    spread: Spread
    in_order_ms: tuple[float, ...]
    """Of each call, as they followed one another."""
    packets: float
    """With data of the call, both ways, as captured, a call."""
    frames: float
    """Both ways, those without data too, a call."""
    frame_bytes: float
    """Of these, a call."""
    message_bytes: float
    """Of the system's protocol above TCP or UDP (MBCF: above Ethernet), both ways, a call."""
    exchanges: float | None
    """Requests that have an answer, of client and server, a call, warm-ups included; None: they were not counted, of
    other systems than RPyC, which have one a call."""
    context_switches: float | None
    """Of the client's and the server's process, a call; None: they do not count them, or not of this function alone."""
    instructions: float | None
    """That the machine's speed makes of the median time, with what it waits for timers (Nagle's algorithm and delayed
    acknowledgements); None: a wire is part of the time."""


@dataclass(frozen=True)
class Slope:
    """Median time by round trip of the link, both in ms."""

    points: Mapping[float, float]

    @property
    def round_trips(self) -> float:
        """Of the link, a call: the slope between the shortest and the longest."""
        (first, low), *_, (last, high) = sorted(self.points.items())
        return (high - low) / (last - first)


@dataclass
class Results:
    """Of all runs; cells of runs that failed are not there."""

    paper: Santos18
    scale: str
    mips: Decimal
    versions: Mapping[str, str] = field(default_factory=dict)
    """Of the libraries in the image."""
    cells: dict[Case, Cell] = field(default_factory=dict)
    slopes: dict[Case, Slope] = field(default_factory=dict)
    """By remote cases; the link's delay is in the slope."""

    def cell(self, case: Case) -> Cell:
        """Raises Undecidable for what was not measured."""
        if case not in self.cells:
            raise Undecidable(f"{case.what} over {case.system} was not measured {case.place}ly")
        return self.cells[case]

    def mean(self, system: str, place: Place, function: str, **how: object) -> float:
        """The paper's mean in ms. Raises Undecidable."""
        return self.cell(Case(system, place, function, **how)).spread.mean  # type: ignore[arg-type]

    def means(self, system: System, place: Place) -> dict[str, float]:
        """Of the first eleven functions. Raises Undecidable."""
        return {function: self.mean(system, place, function) for function in FIRST_ELEVEN}

    def __iter__(self) -> Iterator[tuple[Case, Cell]]:
        """In the order in which they are listed."""
        systems = list(dict.fromkeys(case.system for case in self.cells))
        keys = sorted(
            self.cells,
            key=lambda case: (
                systems.index(case.system), case.place, NAMES.index(case.function), case.container, case.variant,
                case.nodelay,
            ),
        )  # fmt: skip
        return iter([(key, self.cells[key]) for key in keys])


CALLS_COLUMNS = (
    "system", "place", "function", "container", "variant", "tcp_nodelay", "calls", "kept", "mean_ms",
    "standard_error_ms", "untrimmed_mean_ms", "least_ms", "quartile_1_ms", "median_ms", "quartile_3_ms", "most_ms",
    "median_low_ms", "median_high_ms", "packets", "frames", "frame_bytes", "message_bytes", "exchanges",
    "context_switches", "instructions", "run",
)  # fmt: skip
SLOPES_COLUMNS = (
    "system", "function", "container", "variant", "tcp_nodelay", "round_trip_ms", "median_ms", "round_trips_a_call",
)  # fmt: skip


def calls_table(results: Results) -> pl.DataFrame:
    """functions.csv: a row a case, times in ms."""
    rows = []
    for case, cell in results:
        times = cell.spread
        rows.append(
            (
                case.system, case.place, case.function, case.container,
                case.variant if case.function == DISTANCE else None, case.nodelay, times.calls, times.kept, times.mean,
                times.standard_error, times.whole_mean, times.least, times.quartiles[0], times.median,
                times.quartiles[2], times.most, *times.median_between, cell.packets, cell.frames, cell.frame_bytes,
                cell.message_bytes, cell.exchanges, cell.context_switches, cell.instructions, cell.run,
            )
        )  # fmt: skip
    return pl.DataFrame(rows, schema=CALLS_COLUMNS, orient="row", infer_schema_length=None)


def slopes_table(results: Results) -> pl.DataFrame:
    """slopes.csv: a row for each round trip time of the link, in ms."""
    rows = [
        (
            case.system, case.function, case.container, case.variant if case.function == DISTANCE else None,
            case.nodelay, trip, median, slope.round_trips,
        )
        for case, slope in results.slopes.items()
        for trip, median in sorted(slope.points.items())
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=SLOPES_COLUMNS, orient="row", infer_schema_length=None)
