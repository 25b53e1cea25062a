# SPDX-License-Identifier: Apache-2.0
"""Unit costs: what each step costs once, as warm calls of one PDU show it. Pure.

Medians, at the sizes that table 2 has for one PDU; between them linear. S15 and C22 do not occur in such a call: they are
those of 4017 bytes, the least call with an acknowledgement. None of these sizes is predicted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean, median

from sundial.papers.khandker.steps import IDLE_TICK, TICK, Occurrence

SIZES = (0, 1392, 4016)
WITH_FACK = 4017
OF_FACK = ("S15", "C22")
TICK_US = 4000.0
"""Between two interrupts of the clock, where a trace has not two of them in a call: 250 Hz."""
PREAMBLE_AND_FCS, ETHERNET = 12, 14
BYTE_US, GAP_US = 0.8, 9.6
"""IEEE 802.3 at 10 Mbit/s."""
IP_AND_UDP = 28


def frame_us(ip_bytes: int) -> float:
    """A frame on the wire, without the gap that follows it."""
    return BYTE_US * (ip_bytes + ETHERNET + PREAMBLE_AND_FCS)


@dataclass(frozen=True)
class Costs:
    """In us."""

    steps: Mapping[str, Mapping[int, float]]
    """By step and size."""
    ticks: Mapping[str, float]
    """Of an interrupt of the clock, with what it wakes, by machine: the mean, since few are dear."""
    tick_every_us: float

    def at(self, step: str, size: int = 0) -> float:
        """Of one step. Raises KeyError for a step that was not seen."""
        points = sorted(self.steps[step].items())
        for (low, low_us), (high, high_us) in pairwise(points):
            if low <= size <= high:
                return low_us + (high_us - low_us) * (size - low) / (high - low)
        return points[0][1] if size < points[0][0] else points[-1][1]

    def sum(self, *steps: str, size: int = 0) -> float:
        """Of these steps, once each."""
        return sum(self.at(step, size) for step in steps)


def unit_costs(calls: Iterable[tuple[int, Sequence[Occurrence]]]) -> Costs:
    """From calls by their sizes. Those of other sizes than are asked for are left out."""
    seen: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    ticks: dict[str, list[float]] = defaultdict(list)
    apart: list[float] = []
    for size, occurrences in calls:
        if size not in (*SIZES, WITH_FACK):
            continue
        began: dict[str, list[float]] = defaultdict(list)
        for each in occurrences:
            if each.step in (TICK, IDLE_TICK):
                began[each.node].append(each.start_ns / 1e3)
                if each.step == TICK and size in SIZES:
                    ticks[each.node].append(each.work_ns / 1e3)
            elif (size == WITH_FACK) == (each.step in OF_FACK):
                seen[each.step][0 if size == WITH_FACK else size].append(each.work_ns / 1e3)
        apart += [later - earlier for starts in began.values() for earlier, later in pairwise(starts)]
    return Costs(
        {step: {size: median(values) for size, values in of.items()} for step, of in seen.items()},
        {node: mean(values) for node, values in ticks.items()},
        median(apart) if apart else TICK_US,
    )
