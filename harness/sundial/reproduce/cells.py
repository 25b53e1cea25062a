# SPDX-License-Identifier: Apache-2.0
"""Measured values and what they are made of, beside printed ones. Pure data and arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from sundial.reproduce.shares import Share

if TYPE_CHECKING:
    from sundial.reproduce.measure import Measured, RoundTrip, Stream
    from sundial.reproduce.paper import Column, Table


@dataclass(frozen=True)
class Cell:
    """One measured value, and what it is made of."""

    value: float | None
    unit: str
    run: str
    """The run directory below runs/."""
    calls: int = 0
    parts: Share | None = None
    """Of the median call."""
    instruction_ns: tuple[float, float] | None = None
    """Of the client and of the server."""
    captures: tuple[str, ...] = ()
    """Below the run directory."""
    rtt_us: float | None = None
    """Of a rate: the median round trip."""
    used: float | None = None
    """Of a stream: share of the time in which the wire was occupied."""
    most: float | None = None
    """Of a stream: what the wire carries with these headers."""

    @property
    def instructions(self) -> int | None:
        """Of both ends, without what the wire hides."""
        if self.parts is None or self.instruction_ns is None:
            return None
        return self.parts.instructions(*self.instruction_ns)

    @property
    def by_end(self) -> tuple[int, int]:
        """Instructions of the client and of the server, without what the wire hides; only where both are known."""
        assert self.parts is not None
        assert self.instruction_ns is not None
        times = self.parts.client_ns, self.parts.server_ns
        client, server = (round(ns / each) for ns, each in zip(times, self.instruction_ns, strict=True))
        return client, server


@dataclass(frozen=True)
class Row:
    """A measured value beyond the paper: what it is of, and the value."""

    names: tuple[str, ...]
    cell: Cell


Beside = tuple[int, "Column", float | None, Cell | None]
"""Size, column, printed value, measured value."""
Cells = Mapping[tuple[int, str, int], Cell]
"""Measured values by table, column and size."""


def of_table(table: Table, cells: Cells) -> Iterator[Beside]:
    """By size, then by column."""
    for size in table.sizes:
        for column in table.columns:
            yield size, column, table.printed(column, size), cells.get((table.number, column.key, size))


def cell_of_round_trip(trip: RoundTrip, run: Measured) -> Cell:
    name = run.folder.name
    return Cell(trip.median_us, "us", name, trip.calls, trip.parts, trip.instruction_ns, captures=run.captures)


def cell_of_stream(stream: Stream, run: Measured) -> Cell:
    return Cell(
        stream.megabytes_per_s,
        "MB/s",
        run.folder.name,
        stream.operations,
        captures=run.captures,
        used=stream.used,
        most=stream.most_megabytes_per_s,
    )


def cell_of_rate(run: Measured, **where: object) -> Cell:
    """Calls a second of all clients together, and the median round trip."""
    table = run.calls(**where)
    done = table.filter("ok")
    if done.is_empty():
        return Cell(None, "calls/s", run.folder.name, captures=run.captures)
    span_ns = int(table["end_ns"].max()) - int(table["start_ns"].min())  # type: ignore[arg-type]
    median_us = float(done["rtt_ns"].median()) / 1e3  # type: ignore[arg-type]
    rate = done.height / span_ns * 1e9
    return Cell(rate, "calls/s", run.folder.name, table.height, captures=run.captures, rtt_us=median_us)


SUMMARY = {
    "experiment": pl.String, "system": pl.String, "of": pl.String, "unit": pl.String, "printed": pl.Float64,
    "measured": pl.Float64, "ratio": pl.Float64, "calls": pl.Int64, "wire_us": pl.Float64, "client_us": pl.Float64,
    "server_us": pl.Float64, "instructions": pl.Int64, "frames": pl.Int64, "wire_bytes": pl.Int64,
    "wire_used": pl.Float64, "run": pl.String,
}  # fmt: skip
"""Columns of summary.csv."""


def summary_row(experiment: str, system: str, of: str, printed: float | None, cell: Cell | None) -> tuple[object, ...]:
    """One row of summary.csv."""
    if cell is None:
        return (experiment, system, of, None, printed, *[None] * 11)
    parts = cell.parts
    ratio = cell.value / printed if cell.value is not None and printed else None
    times = (parts.wire_ns / 1e3, parts.client_ns / 1e3, parts.server_ns / 1e3) if parts else (None, None, None)
    frames = (parts.frames, parts.wire_bytes) if parts else (None, None)
    return (
        experiment, system, of, cell.unit, printed, cell.value, ratio, cell.calls, *times, cell.instructions, *frames,
        cell.used, cell.run,
    )  # fmt: skip
