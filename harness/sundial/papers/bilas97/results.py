# SPDX-License-Identifier: Apache-2.0
"""What a reproduction of bilas97 has measured, ready to be judged and shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

import polars as pl

from sundial.papers.bilas97.paper import Bilas97
from sundial.reproduce.cells import SUMMARY, Cell, Row, summary_row
from sundial.reproduce.verdicts import Undecidable

FLOOR = "hardware"
"""A word by automatic update, there and back, both ends polling: what no call can be below."""
ECHOES = "vrpc-echoes"
"""Bytes both ways of echoes over vRPC."""
SYSTEMS = {
    FLOOR: "Hardware: a word there and back",
    "shrimprpc": "ShrimpRPC",
    "vrpc": "vRPC",
    "vrpc-mbcf": "vRPC over remote WRITEs",
    "mbcf3b": "Sun RPC over MBCF, SIGNAL",
    "udp": "Sun RPC over UDP, SSS-CORE",
    "linux-udp": "Sun RPC over UDP, Linux",
}
"""Of null calls, in the order of the table. Those behind vRPC go over 100 Mbit/s Ethernet."""


@dataclass(frozen=True)
class Part:
    """A step of a call: who does it, and how long it takes."""

    step: str
    of: str
    """client, server, or hardware."""
    ns: int
    instructions: int | None
    """None: of the hardware."""


@dataclass
class Results:
    """Of all runs; what failed is not there."""

    paper: Bilas97
    scale: str
    mips: Decimal
    null: dict[str, Cell] = field(default_factory=dict)
    """By `SYSTEMS`."""
    sizes: list[Row] = field(default_factory=list)
    """Round trips: system, size."""
    streams: list[Row] = field(default_factory=list)
    """Bytes that arrive by time: operation, size."""
    latencies: list[Row] = field(default_factory=list)
    """Null calls: system, the backplane's latency of a word in ns."""
    waits: list[Row] = field(default_factory=list)
    """Null calls: system, poll or notify."""
    steps: dict[str, list[Part]] = field(default_factory=dict)
    """Of the median null call, by system."""
    dma_rate_bps: int = 0
    """Of the backplane that was run."""
    compared: dict[str, int] = field(default_factory=dict)
    """Calls whose bytes were compared with those of Sun RPC, by run; of runs without a mismatch."""

    def null_us(self, system: str) -> float:
        """Raises Undecidable where it was not measured."""
        cell = self.null.get(system)
        if cell is None or cell.value is None:
            raise Undecidable(f"no null call of {SYSTEMS[system]} was measured")
        return cell.value

    def stream(self, operation: str, size: int) -> float:
        """MB/s. Raises Undecidable where it was not measured."""
        for row in self.streams:
            if row.names == (operation, str(size)) and row.cell.value is not None:
                return row.cell.value
        raise Undecidable(f"{operation} of {size} bytes was not measured")


def summary_table(results: Results) -> pl.DataFrame:
    """summary.csv."""
    printed = {"shrimprpc": results.paper.null_us.shrimprpc, "vrpc": results.paper.null_us.vrpc}
    printed[FLOOR] = results.paper.floor_us
    rows = [summary_row("null", key, "0", printed.get(key), results.null.get(key)) for key in SYSTEMS]
    for title, listed in (
        ("size", results.sizes), ("stream", results.streams), ("word_latency_ns", results.latencies),
        ("wait", results.waits),
    ):  # fmt: skip
        rows += [summary_row(title, row.names[0], row.names[1], None, row.cell) for row in listed]
    return pl.DataFrame(rows, schema=SUMMARY, orient="row")


STEPS = {
    "system": pl.String, "step": pl.String, "of": pl.String, "ns": pl.Int64, "instructions": pl.Int64,
}  # fmt: skip


def steps_table(results: Results) -> pl.DataFrame:
    """steps.csv."""
    rows = [
        (system, part.step, part.of, part.ns, part.instructions)
        for system, parts in results.steps.items()
        for part in parts
    ]
    return pl.DataFrame(rows, schema=STEPS, orient="row")
