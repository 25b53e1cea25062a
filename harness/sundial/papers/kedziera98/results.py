# SPDX-License-Identifier: Apache-2.0
"""What a reproduction of kedziera98 has measured, and its CSV files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

import polars as pl

from sundial.papers.kedziera98 import names
from sundial.papers.kedziera98.curves import Curve
from sundial.papers.kedziera98.paper import Kedziera98
from sundial.reproduce.fit import Candidate
from sundial.reproduce.verdicts import Undecidable


@dataclass(frozen=True)
class Fit:
    """One machine's speed, and what was tried for it."""

    machine: str
    """As in the paper's data."""
    value: str
    """The printed value that it was fitted to, by its id."""
    of: str
    """What was measured, in words."""
    printed_us: float
    best: Candidate
    tried: tuple[Candidate, ...]

    @property
    def mips(self) -> Decimal:
        return self.best.mips

    @property
    def left_pct(self) -> float:
        """Of the time of a call, measured less printed."""
        (measured,) = self.best.measured.values()
        return 100 * (measured / self.printed_us - 1)


@dataclass(frozen=True)
class Stream:
    """What iperf3 found over TCP, one way."""

    name: str
    run: str
    megabits_per_s: float
    retransmits: int


@dataclass(frozen=True)
class Control:
    """LAN emulation before and during the first calls."""

    run: str
    captures: tuple[str, ...]
    first_us: float
    """Of the first call."""
    later_us: float
    """Of the calls after it, the median."""
    ports: Mapping[str, Mapping[str, int]]
    """What the adapters counted, by port."""


@dataclass
class Results:
    """Everything of one reproduction."""

    paper: Kedziera98
    scale: str
    fits: list[Fit] = field(default_factory=list)
    curves: dict[str, Curve] = field(default_factory=dict)
    streams: list[Stream] = field(default_factory=list)
    control: Control | None = None

    def curve(self, key: str) -> Curve:
        """Raises Undecidable where that run failed or has no calls."""
        found = self.curves.get(key)
        if found is None or not found.points:
            raise Undecidable(f"{key} was not measured")
        return found

    def several(self, *keys: str) -> list[Curve]:
        """Those of these that were measured."""
        return [self.curves[key] for key in keys if key in self.curves]

    def machine(self, fit: Fit) -> str:
        """Its name without what it runs."""
        name: str = getattr(self.paper.machines, fit.machine)
        return name.split(",")[0]

    def exchanged_pct(self) -> dict[int, float]:
        """By how much the exchanged curve is beside the other, by size."""
        if not {names.LINUX, names.SWAPPED} <= set(self.curves):
            return {}
        one, other = self.curves[names.LINUX].rates_kBps, self.curves[names.SWAPPED].rates_kBps
        return {size: 100 * (other[size] / one[size] - 1) for size in one if size in other}

    def ratios(self) -> dict[str, dict[int, float]]:
        """Raw sockets by RPC, by size."""
        found: dict[str, dict[int, float]] = {}
        for raw, rpc in names.PAIRS:
            curves = self.several(raw, rpc)
            over, under = (curve.rates_kBps for curve in curves) if len(curves) == 2 else ({}, {})
            found[raw] = {size: over[size] / under[size] for size in over if size in under}
        return found


COLUMNS = {
    "curve": pl.String, "name": pl.String, "transport": pl.String, "size": pl.Int64, "calls": pl.Int64,
    "series": pl.Int64, "paper_kBps": pl.Float64, "mean_kBps": pl.Float64, "sd_pct": pl.Float64,
    "time_us": pl.Float64, "median_us": pl.Float64, "least_us": pl.Float64, "bound_us": pl.Float64,
    "bound_kBps": pl.Float64, "packets": pl.Int64, "cells": pl.Int64, "cells_expected": pl.Int64,
    "carried_us": pl.Float64, "wire_us": pl.Float64, "client_us": pl.Float64, "server_us": pl.Float64,
}  # fmt: skip
"""Of curves.csv."""


def curves_table(results: Results) -> pl.DataFrame:
    """curves.csv: one row for each size of each run."""
    rows = [row for curve in results.curves.values() for row in _rows(curve)]
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def _rows(curve: Curve) -> Iterator[tuple[object, ...]]:
    for size, point in sorted(curve.points.items()):
        bound, expected, wire = curve.bound_us.get(size), curve.expected.get(size), point.wire
        parts = None if wire is None else wire.parts
        yield (
            curve.key, curve.name, curve.transport, size, point.calls, point.series, point.paper_kBps, point.mean_kBps,
            point.sd_pct, point.time_us, point.median_us, point.least_us, bound,
            2000 * size / bound if bound else None,
            wire.packets if wire else None, wire.cells if wire else None, expected.all_cells if expected else None,
            wire.carried_us if wire else None,
            *((ns / 1e3 for ns in (parts.wire_ns, parts.client_ns, parts.server_ns)) if parts else (None,) * 3),
        )  # fmt: skip
