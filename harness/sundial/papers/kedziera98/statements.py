# SPDX-License-Identifier: Apache-2.0
"""A1 to A13: what the paper says, and whether it is so here. Pure.

A statement is judged by what can be measured; where the numbers of a run do not suffice it is undecidable, and why.
`statements_cells.py` has those about cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from sundial.papers.kedziera98 import names, statements_cells
from sundial.papers.kedziera98.arithmetic import Run, correlation, even, slow_runs, spearman
from sundial.papers.kedziera98.curves import Curve
from sundial.papers.kedziera98.names import GRID
from sundial.papers.kedziera98.results import Results
from sundial.reproduce.verdicts import MET, NOT_MET, UNDECIDABLE, Judged, Statement, Undecidable, listed

END_PCT = 5
"""The last sizes of a curve, where its maximum is looked for."""
MONOTONE = 0.98
"""Least rank correlation of a curve that rises with its sizes, and of curves that are alike with one another."""
FALLING = -0.9
"""Greatest rank correlation of a ratio that falls."""
SLOW = 2.0
"""A size of a drop takes at least so many times what its surroundings take."""
DROP_CLIENT, DROP_SERVER = (3968, 5392), (3984, 5408)
"""Where a record is written as 4000 bytes and a rest below the segment size: with the Linux PC as client, as server."""
LEAST_SIZES = 12
"""To tell a run from its surroundings."""
FEW_PCT = 30
"""More sizes than that are no limited range."""
FIT_LEAVES = math.sqrt(2)
"""Speeds are powers of two."""


@dataclass(frozen=True)
class Peak:
    """Where a curve is greatest."""

    size: int
    kBps: float
    at_end: bool

    @property
    def text(self) -> str:
        return f"{self.kBps:,.0f} kB/s at {self.size} B"


def peak(curve: Curve) -> Peak:
    rates = curve.rates_kBps
    if not rates:
        raise Undecidable(f"{curve.key} has no sizes of the grid")
    size = max(rates, key=lambda each: rates[each])
    return Peak(size, rates[size], size >= max(rates) * (1 - END_PCT / 100))


def drops(curve: Curve) -> tuple[list[Run], list[int]]:
    """Runs of slow sizes, and single ones. Raises Undecidable where a run cannot be told apart from the rest."""
    times = curve.times_us
    if len(times) < LEAST_SIZES:
        raise Undecidable(f"{curve.key} has {len(times)} sizes of the grid; {LEAST_SIZES} are needed to see a run")
    return slow_runs(times, SLOW)


def inside(size: int, runs: Iterable[Run]) -> bool:
    return any(run.first <= size <= run.last for run in runs)


def _a1(results: Results) -> Judged:
    top = peak(results.curve(names.ATM))
    printed = results.paper.value("atm")
    ratio = top.kBps / 1000 / printed.one
    what = f"{top.text}, {ratio:.2f} times the printed {printed.one:g} {printed.unit}"
    where = "within" if top.at_end else "not within"
    reason = f"the maximum is {where} the last {END_PCT} % of sizes; the SUN's speed is fitted to the printed value"
    return Judged.of(top.at_end, what, reason)


def _a2(results: Results) -> Judged:
    curve = results.curve(names.LINUX)
    runs, single = drops(curve)
    rates = even(curve.rates_kBps, GRID)
    left = {size: rate for size, rate in rates.items() if not inside(size, runs) and size not in single}
    found = spearman(left)
    if math.isnan(found):
        raise Undecidable("no two sizes are left outside the drops")
    return Judged.of(found >= MONOTONE, f"{found:.4f}", f"rank correlation of throughput with size, {len(left)} sizes")


def _a3(results: Results) -> Judged:
    curve = results.curve(names.LINUX)
    outcome, what, reason = _drop(curve, DROP_CLIENT)
    others = []
    for key, expected in ((names.SWAPPED, DROP_SERVER), (names.PCS, DROP_CLIENT)):
        if key in results.curves:
            try:
                _, seen, _ = _drop(results.curve(key), expected)
            except Undecidable as error:
                seen = str(error)
            others.append(f"{results.curves[key].name}: {seen} (expected {expected[0]}..{expected[1]})")
    return Judged(outcome, what, "; ".join([reason, *others]))


def _drop(curve: Curve, expected: tuple[int, int]) -> tuple[Literal["met", "not met"], str, str]:
    """Whether there is one run of slow sizes, where it is expected, as far as sizes were measured."""
    runs, single = drops(curve)
    sizes = sorted(curve.times_us)
    wanted = [size for size in sizes if expected[0] <= size <= expected[1]]
    if len(wanted) < 3:
        raise Undecidable(f"{curve.key} has {len(wanted)} sizes from {expected[0]} to {expected[1]}")
    slow = 100 * sum(run.sizes for run in runs) / len(sizes)
    there = [(run.first, run.last) for run in runs]
    good = there == [(wanted[0], wanted[-1])] and slow <= FEW_PCT
    seen = listed(f"{run.first}..{run.last} ({run.factor:.1f} times its surroundings)" for run in runs) or "no run"
    around = [max((size for size in sizes if size < wanted[0]), default=None),
              min((size for size in sizes if size > wanted[-1]), default=None)]  # fmt: skip
    reason = (
        f"expected of the sizes measured: {wanted[0]}..{wanted[-1]}, next to {around[0]} and {around[1]}; "
        f"{slow:.0f} % of the sizes are slow"
    )
    if single:
        reason += f"; single slow sizes besides: {listed(map(str, single))}"
    return (MET if good else NOT_MET), seen, reason


def _a4(results: Results) -> Judged:
    one, other = results.curve(names.LINUX), results.curve(names.SWAPPED)
    limit = results.paper.value("exchange").one
    runs = [*drops(one)[0], *drops(other)[0]]
    here, there = one.rates_kBps, other.rates_kBps
    common = sorted(set(here) & set(there))
    borders = _borders(common, runs)
    rest = {size: 100 * abs(there[size] / here[size] - 1) for size in common if size not in borders}
    if not rest:
        raise Undecidable("no size was measured in both directions")
    return _within(
        rest, limit, {size: _together(one, other, size) for size in rest},
        f"{len(rest)} sizes, without {listed(map(str, sorted(borders))) or 'any'} at the ends of the drops",
    )  # fmt: skip


def _borders(sizes: list[int], runs: Iterable[Run]) -> set[int]:
    """Two sizes at each end of the drops of both directions together."""
    slow = [size for size in sizes if inside(size, runs)]
    return {*slow[:2], *slow[-2:]}


def _together(one: Curve, other: Curve, size: int) -> float | None:
    """Standard error of the difference of two curves, in percent."""
    errors = [curve.points[size].error_pct for curve in (one, other)]
    return None if None in errors else math.hypot(*(error for error in errors if error is not None))


def _within(
    values: Mapping[int, float], limit: float, errors: Mapping[int, float | None], reason: str
) -> Judged:  # fmt: skip
    """All below a limit; a value beyond it by less than two standard errors decides nothing."""
    worst = max(values, key=lambda size: values[size])
    beyond = [size for size, value in values.items() if value >= limit]
    clear = [size for size in beyond if (error := errors.get(size)) is None or values[size] - limit > 2 * error]
    what = f"at most {values[worst]:.1f} %, at {worst} B"
    if not beyond:
        return Judged(MET, what, reason)
    reason += f"; {len(beyond)} at {limit:g} % or more, {len(clear)} of them by more than two standard errors"
    return Judged(NOT_MET if clear else UNDECIDABLE, what, reason)


def _a5(results: Results) -> Judged:
    atm, linux = results.curve(names.ATM).rates_kBps, results.curve(names.LINUX).rates_kBps
    common = sorted(set(atm) & set(linux))
    if not common:
        raise Undecidable("the two curves have no size in common")
    below = [size for size in common if atm[size] <= linux[size]]
    ratios = [atm[size] / linux[size] for size in common]
    reason = f"{len(common)} sizes" + (f"; not above at {listed(map(str, below))}" if below else "")
    return Judged.of(not below, f"{min(ratios):.1f} to {max(ratios):.1f} times", reason)


def _a8(results: Results) -> Judged:
    tcp, udp = results.curve(names.TCP).rates_kBps, results.curve(names.UDP).rates_kBps
    low, high = results.paper.value("tcp-below-udp").both
    slow = range(DROP_CLIENT[0], DROP_CLIENT[1] + 1)
    below = {size: 100 * (1 - tcp[size] / udp[size]) for size in sorted(set(tcp) & set(udp)) if size not in slow}
    if not below:
        raise Undecidable("the two curves have no size in common outside the drop")
    outside = [size for size, value in below.items() if not low <= value <= high]
    what = f"{min(below.values()):.1f} to {max(below.values()):.1f} % below"
    reason = f"{len(below)} sizes outside {slow[0]}..{slow[-1]}; {len(outside)} not within {low:g} to {high:g} %"
    if outside:
        reason += ": " + listed(f"{size} B {below[size]:.1f} %" for size in outside)
    bounds = [results.curve(key).bound_us for key in (names.TCP, names.UDP)]
    apart = [100 * (1 - bounds[1][size] / bounds[0][size]) for size in below if all(size in each for each in bounds)]
    if apart:
        reason += f"; of the wires alone TCP would be {min(apart):.1f} to {max(apart):.1f} % below UDP"
    return Judged.of(not outside, what, reason)


def _a9(results: Results) -> Judged:
    tcp, udp = peak(results.curve(names.TCP)), peak(results.curve(names.UDP))
    least, most = results.paper.value("linux-tcp"), results.paper.value("linux-udp")
    ratio = udp.kBps / most.one
    good = tcp.kBps > least.one and tcp.at_end and 1 / FIT_LEAVES <= ratio <= FIT_LEAVES
    what = f"TCP {tcp.text}, UDP {udp.text}"
    reason = (
        f"printed {least.text} and {most.text}: {tcp.kBps / least.one:.2f} and {ratio:.2f} times; UDP is what the PC's "
        f"speed is fitted to, and powers of two leave a factor of {FIT_LEAVES:.2f}"
    )
    return Judged.of(good, what, reason)


def _a10(results: Results) -> Judged:
    atm, ethernet = results.curve(names.ATM), results.curve(names.ETHERNET)
    tops = peak(atm), peak(ethernet)
    rates = [even(curve.rates_kBps, GRID) for curve in (atm, ethernet)]
    alike = correlation(*rates)
    if math.isnan(alike):
        raise Undecidable("the two curves have fewer than two sizes in common")
    runs = [run for curve in (atm, ethernet) for run in drops(curve)[0]]
    printed = [results.paper.value(name) for name in ("atm", "ethernet")]
    ratio = printed[0].one * 1000 / printed[1].one
    what = f"Ethernet path {tops[1].text}, ATM {tops[0].text}: ratio {tops[0].kBps / tops[1].kBps:.2f}"
    slow = f"slow runs: {listed(f'{run.first}..{run.last}' for run in runs)}" if runs else "no run of slow sizes"
    reason = (
        f"printed ratio {ratio:.2f}; rank correlation of the two curves {alike:.4f}, with size "
        f"{spearman(rates[0]):.4f} (ATM) and {spearman(rates[1]):.4f}; {slow}"
    )
    return Judged.of(alike >= MONOTONE and not runs, what, reason)


def _a12(results: Results) -> Judged:
    pairs = [
        (results.curve(raw), results.curve(rpc), results.paper.value(value))
        for raw, rpc, value in ((names.RAW_TCP, names.TCP, "raw-tcp"), (names.RAW_UDP, names.UDP, "raw-udp"))
    ]
    said, falling = [], []
    for raw, rpc, value in pairs:
        over, under = raw.rates_kBps, rpc.rates_kBps
        slow = range(DROP_CLIENT[0], DROP_CLIENT[1] + 1) if rpc.transport == "tcp" else range(0)
        ratios = {size: over[size] / under[size] for size in sorted(set(over) & set(under)) if size not in slow}
        if len(ratios) < 2:
            raise Undecidable(f"{raw.key} and {rpc.key} have fewer than two sizes in common")
        found = spearman(ratios)
        first, last = min(ratios), max(ratios)
        falling.append(found <= FALLING and ratios[last] < ratios[first])
        low, high = value.both
        said.append(
            f"{rpc.transport.upper()} {ratios[first]:.2f} at {first} B to {ratios[last]:.2f} at {last} B "
            f"(printed {high:g} to {low:g}; rank correlation {found:.2f})"
        )
    reason = (
        "judged is that both fall with size; the printed ratios are no limits: three times the printed maxima is more "
        "than either wire carries"
    )
    return Judged.of(all(falling), "; ".join(said), reason)


def _a13(results: Results) -> Judged:
    limit = results.paper.value("spread").one
    worst, said, over, series = 0.0, [], 0, 0
    for key in names.OF_FIGURES:
        curve = results.curves.get(key)
        spread = curve.of_grid(lambda point: point.sd_pct) if curve else {}
        if curve is None or not spread:
            raise Undecidable(f"{key} has fewer than two series without the lowest")
        most = max(spread, key=lambda size: spread[size])
        over += sum(value > limit for value in spread.values())
        worst, series = max(worst, spread[most]), curve.points[most].series
        said.append(f"{curve.name} {spread[most]:.1f} % at {most} B")
    reason = f"{series} series less the lowest; {over} sizes above {limit:g} %; greatest: {listed(said)}"
    return Judged.of(worst <= limit, f"at most {worst:.1f} %", reason)


STATEMENTS = (
    Statement("A1", "1", "SUN-SUN-ATM rises with N, to 7 MB/s.", f"maximum in the last {END_PCT} % of sizes", _a1),
    Statement("A2", "1", "Linux-SUN rises with N.", f"rank correlation >= {MONOTONE} outside the drops", _a2),
    Statement("A3", "1", "Linux-SUN has sudden drops in a limited range of sizes.",
              f"one run with T >= {SLOW:g} times its surroundings, {DROP_CLIENT[0]}..{DROP_CLIENT[1]}", _a3),
    Statement("A4", "1", "Client and server exchanged differ by no more than 5 %.",
              "below 5 % at every size but two at each end of the drops", _a4),
    Statement("A5", "1", "ATM is above Linux-SUN.", "at every size", _a5),
    Statement("A6", "1, 2", "SUN-SUN-ATM has a series of regular, sharp variations.",
              "wire time grows by one cell time with each cell, every 48 B in each direction", statements_cells.a6),
    Statement("A7", "2", "Points come in groups of three; by 16 B not every jump shows.",
              "cells gained by a round trip a step: 0, 1, 1, repeating", statements_cells.a7),
    Statement("A8", "3", "TCP is 10 to 40 % below UDP.", "at each size outside the drop", _a8),
    Statement("A9", "3", "Greatest over TCP above 500 kB/s, at the longest blocks; over UDP to 800 kB/s.",
              "TCP above 500 kB/s at the last sizes; UDP near 800", _a9),
    Statement("A10", "4", "The Ethernet path reaches 800 kB/s, ATM 7 MB/s; alike in shape.",
              f"rank correlation of the two >= {MONOTONE}, no slow run; ratio beside 8.75", _a10),
    Statement("A11", "4", "Effects of cells do not show on the Ethernet path.",
              "one cell is 0.15 % of T at 1024 B, 0.02 % at 8192 B", statements_cells.a11),
    Statement("A12", "text", "Raw TCP is 3 to 18 times RPC over TCP, raw UDP 1.4 to 4 times RPC over UDP; less with N.",
              "falling with N", _a12),
    Statement("A13", "all", "Standard deviation not above 5 % over the whole range.",
              "at most 5 % at each size", _a13),
)  # fmt: skip
"""In the paper's order."""
