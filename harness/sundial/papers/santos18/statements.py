# SPDX-License-Identifier: Apache-2.0
"""G1 to D3: what the paper says, and whether it is so here. Pure.

All go by the paper's mean and quartiles: of what is within its percentiles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import pairwise
from statistics import median

from sundial.papers.santos18.paper import Container, Place, System
from sundial.papers.santos18.results import DISTANCE, FIRST_ELEVEN, Case, Results
from sundial.reproduce.verdicts import Judged, Statement, listed

NEAR = 0.05
ALIKE = 0.10
"""Parts by which values that the paper calls nearly the same, or very like, may differ."""
THREE_ALIKE = 1.05
AS_DEAR = 0.9
FLAT = 1.1
STRINGS = ("string_32", "string_512", "string_1024")
ARRAYS = ("int_array", "float_array", "string_array")
PRIMITIVES = ("boolean", "int", "long", *STRINGS)
TENFOLD = (5.0, 20.0)
SYSTEMS: tuple[System, System] = ("grpc", "rpyc")


def _ms(value: float) -> str:
    return f"{value:.2f} ms"


def _dearest(results: Results, system: System, place: Place) -> Judged:
    means = results.means(system, place)
    most = max(means, key=means.__getitem__)
    rest = [value for name, value in means.items() if name != "string_array"]
    what = f"{_ms(means['string_array'])}, the others {min(rest):.2f} to {_ms(max(rest))}"
    return Judged.of(most == "string_array", what, f"the dearest is {most}")


def _void_cheap(results: Results) -> Judged:
    means = results.means("grpc", "local")
    least = min(means, key=means.__getitem__)
    above = means["void"] / means[least] - 1
    reason = f"the cheapest is {least}, {_ms(means[least])}"
    return Judged.of(above <= NEAR, f"{100 * above:.1f} % above the cheapest", reason)


def _strings_alike(results: Results) -> Judged:
    means = results.means("grpc", "local")
    strings = [means[name] for name in STRINGS]
    apart = max(strings) / min(strings)
    person = means["person"] / means["string_32"]
    good = apart <= 1 + ALIKE and abs(person - 1) <= ALIKE
    what = f"longest by shortest {apart:.3f}, object by string of 32 {person:.3f}"
    return Judged.of(good, what, f"means of {listed(f'{name} {_ms(means[name])}' for name in (*STRINGS, 'person'))}")


def _grows(means: Mapping[str, float], names: Iterable[str]) -> tuple[bool, str]:
    """Whether each is above the one before it."""
    found = [(name, means[name]) for name in names]
    rising = all(low < high for (_, low), (_, high) in pairwise(found))
    return rising, listed(f"{name} {_ms(value)}" for name, value in found)


def _grows_remotely(results: Results) -> Judged:
    means = results.means("grpc", "remote")
    (strings, of_strings), (arrays, of_arrays) = _grows(means, STRINGS), _grows(means, ARRAYS)
    return Judged.of(strings and arrays, f"{of_strings}; {of_arrays}", "each must be above the one before it")


def _object_remotely(results: Results) -> Judged:
    means = results.means("grpc", "remote")
    ratio = means["person"] / means["string_32"]
    return Judged.of(abs(ratio - 1) <= ALIKE, f"{ratio:.3f} times", "the mean of the object by that of string 32")


def _arrays(results: Results) -> Judged:
    means = results.means("rpyc", "local")
    arrays, simple = [means[name] for name in ARRAYS], [means[name] for name in PRIMITIVES]
    apart = max(arrays) / min(arrays)
    good = min(arrays) > max(simple) and apart < THREE_ALIKE
    what = f"arrays {min(arrays):.2f} to {_ms(max(arrays))}, primitives {min(simple):.2f} to {_ms(max(simple))}"
    cell = results.cell(Case("rpyc", "local", "int_array"))
    return Judged.of(good, what, f"no element of a list crosses the wire: {cell.message_bytes:.0f} bytes a call")


def _void_dear(results: Results) -> Judged:
    means = results.means("rpyc", "local")
    ratio = means["void"] / median(means.values())
    return Judged.of(ratio > AS_DEAR, f"{ratio:.2f} times", "the mean of void by the median of all eleven means")


def _flat(results: Results) -> Judged:
    means = results.means("rpyc", "remote")
    most, least = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
    ratio = means[most] / means[least]
    ten = [value for name, value in means.items() if name != "person"]
    took = results.cell(Case("rpyc", "remote", "person")).exchanges
    object_ = "the object" if took is None else f"the object, of {took:.0f} exchanges,"
    reason = f"{most} {_ms(means[most])}, {least} {_ms(means[least])}; without {object_} {max(ten) / min(ten):.3f}"
    return Judged.of(ratio < FLAT, f"dearest by cheapest {ratio:.3f}", reason)


def _faster(results: Results, place: Place, winner: System) -> Judged:
    loser = SYSTEMS[1 - SYSTEMS.index(winner)]
    fast, slow = results.means(winner, place), results.means(loser, place)
    ratios = {name: fast[name] / slow[name] for name in FIRST_ELEVEN}
    wins = [name for name, ratio in ratios.items() if ratio < 1]
    what = f"{len(wins)} of 11; {winner} by {loser} {min(ratios.values()):.2f} to {max(ratios.values()):.2f}"
    return Judged.of(len(wins) == len(ratios), what, f"void: {_costs(results, place)}")


def _costs(results: Results, place: Place) -> str:
    """What a void call takes of machines, by system."""
    words = []
    for system in SYSTEMS:
        cell = results.cell(Case(system, place, "void"))
        parts = [] if cell.instructions is None else [f"{cell.instructions:,.0f} instructions"]
        parts += [f"{cell.packets:.1f} packets", f"{cell.message_bytes:.0f} bytes"]
        parts += [] if cell.exchanges is None else [f"{cell.exchanges:.0f} exchanges"]
        parts += [] if cell.context_switches is None else [f"{cell.context_switches:.1f} context switches"]
        words.append(f"{system} {_ms(cell.spread.mean)}, {', '.join(parts)}")
    return "; ".join(words)


def _remote_slower(results: Results) -> Judged:
    ratios, wider = {}, []
    for system in SYSTEMS:
        for function in FIRST_ELEVEN:
            near, far = (results.cell(Case(system, place, function)).spread for place in ("local", "remote"))
            ratios[system, function] = far.mean / near.mean
            wider.append(far.trimmed_box > near.trimmed_box)
    most = max(ratios, key=ratios.__getitem__)
    good = round(math.log10(ratios[most])) == 1 and all(wider)
    what = f"{min(ratios.values()):.1f} to {ratios[most]:.1f} times; spread greater in {sum(wider)} of {len(wider)}"
    reason = f"the greatest is {most[1]} over {most[0]}; it must be nearest to ten in powers of ten"
    return Judged.of(good, what, f"{reason}, and each distance of quartiles greater than locally")


def _distance(results: Results, container: Container) -> float:
    """With numpy, as in the paper."""
    return results.mean("rpyc", "local", DISTANCE, container=container)


def _zipped(results: Results, container: Container) -> float | None:
    """The distance without numpy, which is shown and not judged; None: it was not measured."""
    cell = results.cells.get(Case("rpyc", "local", DISTANCE, container, "zip"))
    return None if cell is None else cell.spread.mean


def _proxies(results: Results) -> Judged:
    grpc = results.mean("grpc", "local", DISTANCE)
    ratio = _distance(results, "list") / grpc
    good = round(math.log10(ratio)) == 1
    what = f"numpy {ratio:.1f} times"
    if (zipped := _zipped(results, "list")) is not None:
        what += f", zip {zipped / grpc:.1f} times"
    waits = results.cells.get(Case("rpyc", "local", DISTANCE, nodelay=True))
    more = "" if waits is None else f"; with TCP_NODELAY {waits.spread.mean / grpc:.1f} times"
    return Judged.of(good, what, f"numpy, as in the paper, must be nearest to ten in powers of ten{more}")


def _tuples(results: Results) -> Judged:
    gain = _distance(results, "list") / _distance(results, "tuple")
    good = TENFOLD[0] <= gain <= TENFOLD[1]
    what = f"numpy {gain:.1f} times"
    of_lists, of_tuples = _zipped(results, "list"), _zipped(results, "tuple")
    if of_lists is not None and of_tuples is not None:
        what += f", zip {of_lists / of_tuples:.1f} times"
    return Judged.of(good, what, f"numpy, as in the paper, must gain {TENFOLD[0]:g} to {TENFOLD[1]:g} times")


def _tuples_slower(results: Results) -> Judged:
    ratio = _distance(results, "tuple") / results.mean("grpc", "local", DISTANCE)
    return Judged.of(ratio > 1, f"{ratio:.2f} times", "the mean over RPyC with tuples by that over gRPC")


STATEMENTS: tuple[Statement[Results], ...] = (
    Statement("G1", "2, 3", "gRPC, local: the list of strings costs most", "the greatest mean of functions 1 to 11",
              lambda results: _dearest(results, "grpc", "local")),
    Statement("G2", "2, 3", "gRPC, local: void is one of the cheapest", f"within {100 * NEAR:g} % of the least mean",
              _void_cheap),
    Statement("G3", "3", "gRPC, local: strings of all lengths cost the same, and an object what a string costs",
              f"ratios within {100 * ALIKE:g} %", _strings_alike),
    Statement("G4", "4", "gRPC, remote: the list of strings still costs most", "the greatest mean of functions 1 to 11",
              lambda results: _dearest(results, "grpc", "remote")),
    Statement("G5", "4, 5",
              "gRPC, remote: longer strings cost more; ints less than floats, and these less than strings",
              "both orders of means", _grows_remotely),
    Statement("G6", "5", "gRPC, remote: an object costs what the shortest string costs",
              f"within {100 * ALIKE:g} %", _object_remotely),
    Statement("R1", "7, 8", "RPyC, local: arrays cost more than primitives, and all three the same",
              f"each array above each primitive; dearest by cheapest array below {THREE_ALIKE}", _arrays),
    Statement("R2", "8", "RPyC: void costs as much as the others", f"above {AS_DEAR} of the median", _void_dear),
    Statement("R3", "9, 10", "RPyC, remote: all functions cost nearly the same",
              f"dearest by cheapest of functions 1 to 11 below {FLAT}", _flat),
    Statement("X1", "12", "locally RPyC is faster", "RPyC below gRPC in functions 1 to 11",
              lambda results: _faster(results, "local", "rpyc")),
    Statement("X2", "13", "remotely gRPC is faster", "gRPC below RPyC in functions 1 to 11",
              lambda results: _faster(results, "remote", "grpc")),
    Statement("X3", "6, 11", "remotely calls take up to ten times as long, and spread more",
              "greatest ratio nearest to ten; wider quartiles in each function", _remote_slower),
    Statement("D1", "14", "the distance with lists is about ten times slower over RPyC than over gRPC",
              "nearest to ten in powers of ten", _proxies),
    Statement("D2", "15", "tuples instead of lists gain about ten times", f"{TENFOLD[0]:g} to {TENFOLD[1]:g} times",
              _tuples),
    Statement("D3", "16", "with tuples RPyC is still slower than gRPC", "above 1", _tuples_slower),
)  # fmt: skip
