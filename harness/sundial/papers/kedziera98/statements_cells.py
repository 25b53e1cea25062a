# SPDX-License-Identifier: Apache-2.0
"""A6, A7 and A11: what of a call goes by cells. Pure.

Wire time decides first, as it has no noise: the time of the frames that carry data, from the capture. Then the least of
the round trips, which software is part of. Teeth, where throughput falls from one size of the grid to the next, need a
step of more than 32 us divided by the throughput in MB/s: 16 bytes more, both ways, must be outweighed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from sundial.papers.kedziera98 import names
from sundial.papers.kedziera98.arithmetic import ByCells, by_cells, by_steps, neighbours
from sundial.papers.kedziera98.curves import Curve
from sundial.papers.kedziera98.names import GRID
from sundial.papers.kedziera98.results import Results
from sundial.reproduce.verdicts import MET, NOT_MET, UNDECIDABLE, Judged, Undecidable, listed

PERIOD = 48
"""Bytes of a cell's payload."""
EXACT = 0.02
"""Of a cell time: stamps are whole ns, latencies of hops are not."""
HALF = 0.5
"""Round trips that grow by less than so much of a cell time with each cell, or by as much more, do not go by cells."""
STEPS = (0, 1, 1)
"""Cells that a round trip gains by 16 bytes, repeating: two cells of 48 bytes, one in each direction."""
LEAST_STEPS = 6
EXAMPLES = (1024, 8192)
"""Sizes at which the share of one cell is said."""


@dataclass(frozen=True)
class Step:
    """From one size of the grid to the next one with as many packets."""

    size: int
    """The second."""
    cell_times: float
    """By which the wire time grows."""

    @property
    def cells(self) -> int:
        return round(self.cell_times)

    @property
    def whole(self) -> bool:
        return abs(self.cell_times - self.cells) <= EXACT


def cell_time_us(curve: Curve) -> float:
    """Raises Undecidable where no cells are on the way."""
    if curve.cell_us is None:
        raise Undecidable(f"{curve.key} ran on wires without cells")
    return curve.cell_us


def tooth_us(curve: Curve, size: int) -> float:
    """A step of more than this lowers throughput from one size of the grid to the next."""
    return 32_000 / curve.points[size].paper_kBps


def wire_times_us(curve: Curve) -> dict[int, float]:
    return curve.of_grid(lambda point: None if point.wire is None else point.wire.carried_us)


def packets_of(curve: Curve) -> dict[int, int]:
    """Of both directions, as captured."""
    found = curve.of_grid(lambda point: None if point.wire is None else point.wire.packets)
    return {size: int(value) for size, value in found.items()}


def cells_of(curve: Curve) -> dict[int, int]:
    """Of both directions, by the protocols' arithmetic."""
    of_grid = {size: each.all_cells for size, each in curve.expected.items() if size % GRID == 0}
    return {size: cells for size, cells in of_grid.items() if cells is not None}


def steps_of(curve: Curve, step: int = GRID) -> list[Step]:
    """Those from one size to the next one that was measured, so many bytes on, where packets do not change."""
    times, packets, cell = wire_times_us(curve), packets_of(curve), cell_time_us(curve)
    return [
        Step(high, (times[high] - times[low]) / cell)
        for low, high in neighbours(list(times), step)
        if packets[low] == packets[high]
    ]


def grown_by_cells(curve: Curve, values_us: Mapping[int, float]) -> ByCells:
    """Raises Undecidable where the sizes measured do not tell."""
    found = by_cells(values_us, cells_of(curve), packets_of(curve), cell_time_us(curve))
    if found is None:
        raise Undecidable(f"{curve.key} has too few sizes to tell cells from bytes")
    return found


def grown_at_steps(curve: Curve, values_us: Mapping[int, float]) -> ByCells:
    """The same from one size of the grid to the next. Raises Undecidable where the sizes measured do not tell."""
    cells, packets = cells_of(curve), packets_of(curve)
    gained = {
        (low, high): cells[high] - cells[low]
        for low, high in neighbours(list(values_us), GRID)
        if low in cells and high in cells and packets.get(low) == packets.get(high)
    }
    found = by_steps(values_us, gained, cell_time_us(curve))
    if found is None:
        raise Undecidable(f"{curve.key} has too few steps of {GRID} B to tell cells from bytes")
    return found


def teeth(curve: Curve) -> tuple[list[int], list[int]]:
    """Sizes of the grid at which throughput is lower than at the one before: measured, and where the cells of the
    wire alone would make it so."""
    rates, cells, cell = curve.rates_kBps, cells_of(curve), cell_time_us(curve)
    pairs = neighbours(list(rates), GRID)
    fallen = [high for low, high in pairs if rates[high] < rates[low]]
    expected = [
        high for low, high in pairs
        if low in cells and high in cells and (cells[high] - cells[low]) * cell > tooth_us(curve, low)
    ]  # fmt: skip
    return fallen, expected


def packet_steps(curve: Curve) -> list[tuple[int, float, bool]]:
    """Where a size has more packets than the one measured before it: the size, by how many us its least round trip is
    longer, and whether its throughput is lower."""
    packets, rates = packets_of(curve), curve.rates_kBps
    return [
        (high, curve.points[high].least_us - curve.points[low].least_us, rates[high] < rates[low])
        for low, high in pairwise(sorted(packets))
        if packets[high] > packets[low]
    ]


def _packets_text(curve: Curve) -> str:
    steps = packet_steps(curve)
    if not steps:
        return "no size has more packets than the one before"
    lower = sum(falls for _, _, falls in steps)
    times = [grown for _, grown, _ in steps]
    return (
        f"where more packets are needed ({len(steps)} sizes) least round trips are {min(times):.0f} to "
        f"{max(times):.0f} us longer, software of a packet included, and throughput is lower at {lower}"
    )


def a6(results: Results) -> Judged:
    curve = results.curve(names.ATM)
    cell = cell_time_us(curve)
    on_wire = grown_by_cells(curve, wire_times_us(curve))
    least = grown_at_steps(curve, curve.of_grid(lambda point: point.least_us))
    mean = grown_at_steps(curve, curve.times_us)
    periods = steps_of(curve, PERIOD)
    if not periods:
        raise Undecidable(f"{curve.key} has no two sizes that are {PERIOD} B apart")
    broken = [step.size for step in periods if abs(step.cell_times - sum(STEPS)) > EXACT]
    what = f"cell times a cell: wire {on_wire.text}, least round trips {least.text}, the paper's T {mean.text}"
    reason = (
        f"{len(periods)} steps of {PERIOD} B, {len(broken)} not of {sum(STEPS)} cells; {_packets_text(curve)}; "
        f"{_teeth_text(curve, cell)}"
    )
    if abs(on_wire.cell_times - 1) > EXACT or broken:
        return Judged(NOT_MET, what, reason)
    if least.shows and abs(least.cell_times - 1) <= HALF:
        return Judged(MET, what, reason)
    if abs(least.cell_times - 1) - 2 * least.error > HALF:
        return Judged(NOT_MET, what, f"wire time goes by cells, round trips do not; {reason}")
    return Judged(UNDECIDABLE, what, f"wire time goes by cells; in round trips noise hides it; {reason}")


def _teeth_text(curve: Curve, cell_us: float) -> str:
    """The condition for teeth with its number, where the curve is highest, and what was seen."""
    rates = curve.rates_kBps
    top = max(rates, key=lambda size: rates[size])
    limit = tooth_us(curve, top)
    can = [
        f"{words} of {count * cell_us:.2f} us {'can' if count * cell_us > limit else 'cannot'}"
        for count, words in ((1, "one cell"), (2, "two cells"))
    ]
    fallen, expected = teeth(curve)
    both = len(set(fallen) & set(expected))
    return (
        f"throughput can only fall from one size to the next where a step is above {limit:.2f} us (32 by "
        f"{rates[top] / 1000:.2f} MB/s): {' and '.join(can)}; it falls at {len(fallen)} of "
        f"{len(neighbours(list(rates), GRID))} steps, {both} of the {len(expected)} that the wire makes"
    )


def a7(results: Results) -> Judged:
    steps = steps_of(results.curve(names.ATM))
    if len(steps) < LEAST_STEPS:
        what = f"{len(steps)} steps of {GRID} B between sizes with as many packets"
        raise Undecidable(f"{what}; {LEAST_STEPS} are needed")
    torn = [step.size for step in steps if not step.whole]
    threes = [
        group for group in zip(steps, steps[1:], steps[2:], strict=False) if group[2].size - group[0].size == 2 * GRID
    ]
    if not threes:
        raise Undecidable(f"no three steps of {GRID} B follow one another")
    other = [group[0].size for group in threes if sorted(step.cells for step in group) != sorted(STEPS)]
    counts = {count: sum(step.cells == count for step in steps) for count in sorted({step.cells for step in steps})}
    what = listed(f"{times} steps of {count}" for count, times in counts.items())
    reason = (
        f"wire time, {len(threes)} groups of three steps, {len(other)} of them not 0, 1, 1 in some order"
        + (f": from {listed(map(str, other))}" if other else "")
        + (f"; {len(torn)} steps are no whole cells" if torn else "")
        + "; steps where the number of packets changes left out"
    )
    return Judged.of(not other and not torn, what, reason)


def a11(results: Results) -> Judged:
    curve = results.curve(names.ETHERNET)
    cell = cell_time_us(curve)
    shares = {size: 100 * cell / point.time_us for size, point in curve.points.items()}
    spread = curve.of_grid(lambda point: point.sd_pct)
    if not spread:
        raise Undecidable(f"{curve.key} has fewer than two series without the lowest")
    found = grown_at_steps(curve, curve.times_us)
    hidden = [size for size, value in spread.items() if shares[size] < value]
    of_cell = listed(f"{shares[size]:.3f} % of T at {size} B" for size in EXAMPLES if size in shares)
    what = f"one cell: {of_cell}; the paper's T grows by {found.text} cell times a cell"
    reason = (
        f"a cell is less than the standard deviation of the series at {len(hidden)} of {len(spread)} sizes; a step "
        f"must be above {tooth_us(curve, max(curve.rates_kBps)):.0f} us to lower throughput, a cell is {cell:.2f}"
    )
    return Judged.of(not found.shows or len(hidden) == len(spread), what, reason)
