# SPDX-License-Identifier: Apache-2.0
"""Results of bilas97, made up so that each statement holds."""

from __future__ import annotations

from decimal import Decimal

from sundial.papers.bilas97.packets import Counts
from sundial.papers.bilas97.reproduce import KIND
from sundial.papers.bilas97.results import (
    CLIENT,
    FLOOR,
    HARDWARE,
    SERVER,
    SYSTEMS,
    Compared,
    Divided,
    Part,
    Results,
)
from sundial.reproduce.cells import Cell, Row
from sundial.reproduce.shares import Share
from sundial.segments.vmmc.wire import REASONS

PAPER = KIND.paper()
NULL_US = {
    FLOOR: 8.9, "shrimprpc": 9.4, "vrpc": 31.0, "vrpc-mbcf": 70.0, "mbcf3b": 80.0, "udp": 112.0, "linux-udp": 545.0,
}  # fmt: skip
INSTRUCTION_NS = 16.0


def cell(us: float, hardware_us: float = 8.5) -> Cell:
    software_ns = round(1e3 * (us - hardware_us))
    share = Share(round(1e3 * us), round(1e3 * hardware_us), software_ns // 2, software_ns - software_ns // 2, 2, 96)
    return Cell(us, "us", "run", 20, share, (INSTRUCTION_NS, INSTRUCTION_NS), ("wire/backplane.pcapng",))


def rate(value: float) -> Cell:
    return Cell(value, "MB/s", "run", 16, captures=("wire/backplane.pcapng",))


def holding() -> Results:
    results = Results(PAPER, "smoke", Decimal("62.5"), {key: cell(NULL_US[key]) for key in SYSTEMS})
    results.steps["vrpc"] = [Part("until the request begins to leave", "client", 9600, 600)]
    results.steps["vrpc"].append(Part("request", "hardware", 4250, None))
    parts = (
        Part("prepare", CLIENT, 9600, 600.0, "call → handed in"), Part("wire", HARDWARE, 4250, None, "wire"),
        Part("receive", SERVER, 1400, 87.5, "receive"),
    )  # fmt: skip
    results.traced["vrpc"] = Divided(parts, 15_250)
    results.traced_calls = (23, 23)
    reasons = dict.fromkeys(REASONS.values(), 2)
    results.packets["null-calls"] = Counts(reasons, 1, 3, 0, 4, 16)
    results.dma_rate_bps = 184_000_000
    for size in ("64", "65536"):
        results.streams += [Row((name, size), rate(22.5)) for name in ("au", "au-combined", "du")]
        results.sizes += [Row((name, size), cell(40.0)) for name in ("ShrimpRPC IN", "vrpc", "udp")]
    for system in ("shrimprpc", "vrpc"):
        results.latencies.append(Row((system, "4250"), cell(NULL_US[system])))
        results.waits.append(Row((system, "poll"), cell(NULL_US[system])))
    results.compared = {"null-calls": Compared(100, 0)}
    return results
