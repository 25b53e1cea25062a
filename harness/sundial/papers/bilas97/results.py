# SPDX-License-Identifier: Apache-2.0
"""What a reproduction of bilas97 has measured, ready to be judged and shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

import polars as pl

from sundial.papers.bilas97.packets import Counts
from sundial.papers.bilas97.paper import Bilas97
from sundial.reproduce.cells import SUMMARY, Cell, Row, summary_row
from sundial.reproduce.verdicts import Undecidable
from sundial.segments.vmmc.wire import REASONS

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


CLIENT, SERVER, HARDWARE = "client", "server", "hardware"


@dataclass(frozen=True)
class Part:
    """A step of a call: who does it, and how long it takes."""

    step: str
    of: str
    """CLIENT, SERVER or HARDWARE."""
    ns: int
    instructions: float | None
    """Not whole where a message's arrival begins the step; None: of the hardware."""
    function: str = ""
    """Where its call was traced: what it begins and ends with."""


@dataclass(frozen=True)
class Divided:
    """A traced call."""

    parts: tuple[Part, ...]
    """That take all of its time, the last of them what is in no step, if there is such a thing."""
    rtt_ns: int
    """As the client's clock has it."""

    def of(self, *who: str) -> tuple[int, float]:
        """ns and instructions of these."""
        chosen = [part for part in self.parts if part.of in who]
        return sum(part.ns for part in chosen), sum(part.instructions or 0 for part in chosen)


@dataclass(frozen=True)
class Compared:
    """Messages of vRPC checked against those of Sun RPC over UDP in one run."""

    calls: int
    """Of vRPC, warm-ups included."""
    mismatches: int
    """Of all that verification found in the run."""


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
    """Of the median null call as its packets divide it, by system."""
    traced: dict[str, Divided] = field(default_factory=dict)
    """The median null call as functions divide it, by system."""
    traced_calls: tuple[int, int] = (0, 0)
    """Calls of traced runs whose steps are their round trip to the nanosecond, and all."""
    packets: dict[str, Counts] = field(default_factory=dict)
    """Of each run over a backplane."""
    dma_rate_bps: int | None = None
    """Of the backplane that was run; None: no run over it has ended."""
    compared: dict[str, Compared] = field(default_factory=dict)
    """By run, of those that ended."""

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
    "system": pl.String, "seen": pl.String, "step": pl.String, "function": pl.String, "of": pl.String, "ns": pl.Int64,
    "instructions": pl.Float64,
}  # fmt: skip
PACKETS = {
    "run": pl.String, **dict.fromkeys(REASONS.values(), pl.Int64), "deliberate": pl.Int64, "control": pl.Int64,
    "nack": pl.Int64, "notified": pl.Int64, "seen": pl.Int64, "fabric": pl.Int64,
}  # fmt: skip


def steps_table(results: Results) -> pl.DataFrame:
    """steps.csv: by packets, and by functions where calls were traced."""
    listed = [("packets", system, parts) for system, parts in results.steps.items()]
    listed += [("trace", system, list(divided.parts)) for system, divided in results.traced.items()]
    rows = [
        (system, seen, part.step, part.function, part.of, part.ns, part.instructions)
        for seen, system, parts in listed
        for part in parts
    ]
    return pl.DataFrame(rows, schema=STEPS, orient="row")


def packets_table(results: Results) -> pl.DataFrame:
    """packets.csv."""
    rows = [
        (
            run, *counts.by_reason.values(), counts.deliberate, counts.control, counts.refused, counts.notified,
            counts.seen, counts.fabric,
        )
        for run, counts in results.packets.items()
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=PACKETS, orient="row")
