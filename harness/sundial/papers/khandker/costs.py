# SPDX-License-Identifier: Apache-2.0
"""Unit costs: what each step costs once, as warm calls of one PDU show it. Pure.

Means, as the paper's are, for what is rare and dear belongs to them (a receive ring that is filled again), at the sizes
that table 2 has for one PDU; between them linear. S15 and C22 do not occur in such a call: they are those of 4017
bytes, the least call with an acknowledgement. None of these sizes is predicted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean, median

from sundial.papers.khandker.counts import MTU
from sundial.papers.khandker.steps import IDLE_TICK, KERNEL, TICK, Occurrence
from sundial.workloads.dce.expect import pdu_packets

SIZES = (0, 1392, 4016)
WITH_FACK = 4017
OF_FACK = ("S15", "C22")
BESIDE = (TICK, IDLE_TICK, KERNEL)
TICK_US = 4000.0
"""Between two interrupts of the clock, where a trace has not two of them in a call: 250 Hz."""
PREAMBLE_AND_FCS, ETHERNET = 12, 14
BYTE_US, GAP_US = 0.8, 9.6
"""IEEE 802.3 at 10 Mbit/s."""
IP_AND_UDP = 28


def frame_us(ip_bytes: int) -> float:
    """A frame on the wire, without the gap that follows it."""
    return BYTE_US * (ip_bytes + ETHERNET + PREAMBLE_AND_FCS)


def between(points: Mapping[int, float], size: int) -> float:
    """Linear between the sizes that were measured; beyond them the nearest."""
    listed = sorted(points.items())
    for (low, low_us), (high, high_us) in pairwise(listed):
        if low <= size <= high:
            return low_us + (high_us - low_us) * (size - low) / (high - low)
    return listed[0][1] if size < listed[0][0] else listed[-1][1]


@dataclass(frozen=True)
class Costs:
    """In us."""

    steps: Mapping[str, Mapping[int, float]]
    """By step and size."""
    ticks: Mapping[str, Mapping[int, float]]
    """Of an interrupt of the clock with all that the kernel's own threads do, by machine and size. A mean: few are
    dear."""
    tick_every_us: float

    def at(self, step: str, size: int = 0) -> float:
        """Of one step. Raises KeyError for a step that was not seen."""
        return between(self.steps[step], size)

    def tick(self, machine: str, size: int) -> float:
        """Of an interrupt of the clock; 0 where none was seen."""
        return between(self.ticks[machine], size) if self.ticks.get(machine) else 0.0

    def sum(self, *steps: str, size: int = 0) -> float:
        """Of these steps, once each."""
        return sum(self.at(step, size) for step in steps)


def unit_costs(calls: Iterable[tuple[int, Sequence[Occurrence]]]) -> Costs:
    """From calls by their sizes. Those of other sizes than are asked for are left out."""
    seen: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    ticks: dict[str, Counter[int]] = defaultdict(Counter)
    beside: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    apart: list[float] = []
    for size, occurrences in calls:
        if size not in (*SIZES, WITH_FACK):
            continue
        began: dict[str, list[float]] = defaultdict(list)
        spent: dict[str, float] = defaultdict(float)
        for each in occurrences:
            us = each.work_ns / 1e3
            if each.step not in BESIDE:
                spent[each.step] += us
                continue
            if size in SIZES:
                beside[each.node][size] += us
                ticks[each.node][size] += each.step != KERNEL
            if each.step != KERNEL:
                began[each.node].append(each.start_ns / 1e3)
        apart += [later - earlier for starts in began.values() for earlier, later in pairwise(starts)]
        for step, us in _each_once(spent, size).items():
            if (size == WITH_FACK) == (step in OF_FACK):
                seen[step][0 if size == WITH_FACK else size].append(us)
    return Costs(
        {step: {size: mean(values) for size, values in of.items()} for step, of in seen.items()},
        {
            node: {size: us / ticks[node][size] for size, us in of.items() if ticks[node][size]}
            for node, of in beside.items()
        },
        median(apart) if apart else TICK_US,
    )


def _each_once(spent: dict[str, float], size: int) -> dict[str, float]:
    """A call's steps for one time each: a call of one PDU has most of them once, and these for each of its packets."""
    packets = sum(len(each) for each in pdu_packets(size, MTU))
    times = {"S1 without waking": packets - 1, "C12": packets}
    found = dict(spent)
    for name, by in times.items():
        if name in found and by:
            found[name] /= by
    if packets == 1:  # nothing is fetched apart from the packet that is waited for
        for name in ("S1", "C15"):
            found[name] = found.get(name, 0.0) + found.pop(f"{name} without waking", 0.0)
    return found
