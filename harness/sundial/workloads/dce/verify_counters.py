# SPDX-License-Identifier: Apache-2.0
"""What both programs counted, against what the replayed machines count."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sundial.judge.replay import Histories
from sundial.verify.findings import Finding
from sundial.workloads.dce.verify_server import EITHER, EXECUTED

COUNTED = (
    "fragments", "fragments_resent", "facks", "facks_received", "pings", "working", "nocall", "rejects", "faults",
    "acks", "cancels", "cancel_acks", "who_are_you", "duplicates", "malformed", "strays", "dropped", "overruns",
)  # fmt: skip
NOT_TAKEN = ("dropped", "duplicates", "strays")
"""Of requests."""
PAUSE_NS = 200_000_000
"""A server reports after so long without a packet."""
_WORK_INSTRUCTIONS = 6_250_000
"""Of its machine's other work: a pause that is longer by so many is one for the server, too."""
_SHARED = 8
"""So many times as long if the machine runs other programs, too: iperf3 keeps a machine busy for 40 million."""
_STALLED_NS = 1_000_000
"""Under the real clock its host may stop a machine: what is so short in the capture may be a pause for the server."""


@dataclass(frozen=True)
class Bounds:
    """What a number may be."""

    least: int
    most: int

    def __str__(self) -> str:
        return str(self.least) if self.least == self.most else f"{self.least} to {self.most}"

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int) and self.least <= value <= self.most


def check_batch(where: str, line: Mapping[str, Any], counts: Histories) -> Iterator[Finding]:
    """A client's counters of one batch."""
    said = line.get("counters")
    said = said if isinstance(said, Mapping) else {}
    for name in COUNTED:
        expected = Bounds(min(each[name] for each in counts), max(each[name] for each in counts))
        if said.get(name) not in expected:
            yield Finding(None, f"{where} counters {name}", str(expected), str(said.get(name)))
    for name in said.keys() - set(COUNTED):
        yield Finding(None, f"{where} counters {name}", "no such counter", str(said[name]))


class Totals:
    """What the sums of some activities' counts may be, in each of a server's pauses: from its beginning to its end.

    Only what changes from pause to pause is kept, and one pause at a time is looked at (`move`): a run may have tens of
    thousands of pauses, and an interface hundreds of operations.
    """

    def __init__(self, activities: Iterable[Sequence[tuple[int, Histories]]], pauses: int) -> None:
        """`activities`: of each, from which mark on it counted what; a pause has two marks, its begin and its end."""
        self._changes: list[list[tuple[str, int, int]]] = [[] for _ in range(pauses)]
        """By pause: a name, and by how much the least and the most of it differ from those in the pause before."""
        for counted in activities:
            self._add(counted)
        self._place = -1
        self._least: Counter[str] = Counter()
        self._most: Counter[str] = Counter()
        self.executed: dict[str, int] = {}
        """Of each operation: how often it surely ran. Those that never did are left out."""

    def _add(self, counted: Sequence[tuple[int, Histories]]) -> None:
        marks = [mark for mark, _ in counted]
        least: Mapping[str, int] = {}
        most: Mapping[str, int] = {}
        # What a pause ended with is what the next one begins with.
        for place in sorted({(mark + late) // 2 for mark in marks for late in (0, 1)}):
            if place == len(self._changes):
                break
            begin, end = (counted[bisect_right(marks, 2 * place + late) - 1][1] for late in (0, 1))
            before = (least, most)
            least, most = _span(begin if begin is end else [*begin, *end])
            changed = (least.items() ^ before[0].items()) | (most.items() ^ before[1].items())
            for name in {name for name, _ in changed}:
                more = [new.get(name, 0) - old.get(name, 0) for old, new in zip(before, (least, most), strict=True)]
                self._changes[place].append((name, more[0], more[1]))

    def move(self, place: int) -> None:
        """To another pause."""
        while self._place < place:
            self._place += 1
            self._change(1)
        while self._place > place:
            self._change(-1)
            self._place -= 1

    def _change(self, sign: int) -> None:
        for name, least, most in self._changes[self._place]:
            self._least[name] += sign * least
            self._most[name] += sign * most
            if name.startswith(EXECUTED):
                number = name.removeprefix(EXECUTED)
                self.executed[number] = self._least[name]
                if not self.executed[number]:
                    del self.executed[number]

    def __getitem__(self, name: str) -> Bounds:
        return Bounds(self._least[name], self._most[name])

    @property
    def operations(self) -> set[str]:
        """All that ran, or may have run."""
        return {name.split()[1] for name in self._most if name.startswith((EXECUTED, EITHER))}


_RAN, _EITHER, _ALL = "ran", "may have run", "came"
"""Sums over all operations: of those that ran, of those that ran or were not taken, and of both."""


def _span(histories: Histories) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """The least and the most of each count, and of the sums over operations."""
    every = []
    for each in histories:
        ran = sum(count for name, count in each.items() if name.startswith(EXECUTED))
        either = sum(count for name, count in each.items() if name.startswith(EITHER))
        every.append({**each, _RAN: ran, _EITHER: either, _ALL: ran + either})
    if all(each == every[0] for each in every):
        return every[0], every[0]
    names = set().union(*every)
    least = {name: min(each.get(name, 0) for each in every) for name in names}
    return least, {name: max(each.get(name, 0) for each in every) for name in names}


@dataclass(frozen=True)
class Reports:
    """What a server may report in each pause."""

    served: Totals
    mapped: Totals
    """Of its endpoint mapper."""
    sure: Sequence[bool]
    """By pause: the server must have noticed it."""
    works: bool = False
    """Its procedures take a time, so that a request of a maybe call may wait in no count yet."""


def pauses(
    arrivals_ns: Sequence[int],
    end_ns: int,
    *,
    mips: float,
    alone: bool = True,
    exact: bool = True,
    seen_ns: int | None = None,
) -> list[tuple[int, int, bool]]:
    """When nothing came for so long that the server reported: some time after it begins, when it ends, and whether it
    was surely long enough. `arrivals_ns`: sorted; `seen_ns`: until when the run surely went on, if that is not
    `end_ns`; `mips`: of its machine, which runs nothing else if it is `alone`. Not `exact`: a server that waits for its
    host may see a longer pause than the capture shows, or none."""
    found = []
    ends = [*arrivals_ns[1:], *([end_ns] if arrivals_ns else [])]
    least = PAUSE_NS if exact else _STALLED_NS
    work_ns = int(_WORK_INSTRUCTIONS * 1000 / mips) * (1 if alone else _SHARED)
    for begin, end in zip(arrivals_ns, ends, strict=True):
        if end - begin >= least:
            surely = end if seen_ns is None else min(end, seen_ns)
            found.append((begin + least - least // 4, end - 1, exact and surely - begin >= PAUSE_NS + work_ns))
    return found


def check_server(where: str, lines: Sequence[Mapping[str, Any]], reports: Reports) -> Iterator[Finding]:
    """A server's lines, each of which is of one of its pauses; the last may be of its end."""
    place, last = 0, len(reports.sure) - 1
    for number, line in enumerate(lines):
        fit, nearest = None, _differences(line, reports, min(place, last))
        for at in range(place, last + 1):
            found = _differences(line, reports, at)
            if not found:
                fit = at
                break
            nearest = min(nearest, found, key=len)
        if fit is None and number == len(lines) - 1 and last >= 0 and not _differences(line, reports, last):
            return
        if fit is None:
            name, expected, seen = next(iter(nearest), ("line", "none", "one"))
            yield Finding(None, f"{where} counters {name}", expected, seen)
            fit = place
        if any(reports.sure[place:fit]):
            yield Finding(None, f"{where} counters", "a line for each pause", f"none before line {number}")
        place = fit + 1
    if any(reports.sure[place:]):
        yield Finding(None, f"{where} counters", "a line for each pause", f"{len(lines)} lines")


def _differences(line: Mapping[str, Any], reports: Reports, place: int) -> list[tuple[str, str, str]]:
    """`place`: of the pause; -1: before the first, when nothing was counted."""
    served, mapped = reports.served, reports.mapped
    served.move(place)
    mapped.move(place)
    found = []
    for name in (*COUNTED, "kept"):
        expected = served[name]
        if name in NOT_TAKEN:
            expected = Bounds(expected.least, expected.most + served[_EITHER].most)
        found.append((name, expected, line.get(name)))
    operations = line.get("by_opnum")
    operations = operations if isinstance(operations, Mapping) else {}
    if operations != served.executed:
        for number in sorted({*served.operations, *operations}):
            sure, either = served[f"{EXECUTED}{number}"], served[f"{EITHER}{number}"]
            bounds = Bounds(sure.least, sure.most + either.most)
            found.append((f"by_opnum {number}", bounds, operations.get(number, 0)))
    executed = sum(each for each in operations.values() if isinstance(each, int))
    found.append(("executed", Bounds(executed, executed), line.get("executed")))
    found.append(("mapped", mapped[_RAN], line.get("mapped")))
    found += [(name, Bounds(0, 0), line.get(name)) for name in ("bad_payload", "undecodable")]
    # A request of a maybe call was executed or counted as one of the others.
    not_taken = [served[name] for name in NOT_TAKEN]
    least = served[_RAN if reports.works else _ALL].least + sum(each.least for each in not_taken)
    either = Bounds(least, served[_ALL].most + sum(each.most for each in not_taken))
    seen = executed + sum(_number(line.get(name)) for name in NOT_TAKEN)
    found.append((f"executed, {', '.join(NOT_TAKEN)}", either, seen))
    return [(name, str(expected), str(seen)) for name, expected, seen in found if seen not in expected]


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
