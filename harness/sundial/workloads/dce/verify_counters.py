# SPDX-License-Identifier: Apache-2.0
"""What both programs counted, against what the replayed machines count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sundial.workloads.dce.verify_server import EITHER, EXECUTED

COUNTED = (
    "fragments", "fragments_resent", "facks", "facks_received", "pings", "working", "nocall", "rejects", "faults",
    "acks", "cancels", "cancel_acks", "who_are_you", "duplicates", "malformed", "strays", "dropped", "overruns",
)  # fmt: skip
NOT_TAKEN = ("dropped", "duplicates", "strays")
"""Of requests."""
PAUSE_NS = 200_000_000
"""A server reports after so long without a packet."""
_SURE_NS = 50_000_000
"""Its own work beside: a pause that is longer by so much is one for the server, too."""

Finding = tuple[int | None, str, str, str, list[int]]
Histories = Sequence[Counter[str]]
"""The counts of each history that explains the frames of an activity."""


@dataclass(frozen=True)
class Bounds:
    """What a number may be."""

    least: int
    most: int

    def __str__(self) -> str:
        return str(self.least) if self.least == self.most else f"{self.least} to {self.most}"

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int) and self.least <= value <= self.most


def bounds(parts: Sequence[Histories], name: str) -> Bounds:
    """Of the sum of a count over some activities."""
    return Bounds(
        sum(min(each[name] for each in part) for part in parts), sum(max(each[name] for each in part) for part in parts)
    )


def check_batch(where: str, line: Mapping[str, Any], counts: Histories) -> Iterator[Finding]:
    """A client's counters of one batch."""
    said = line.get("counters")
    said = said if isinstance(said, Mapping) else {}
    for name in COUNTED:
        expected = bounds([counts], name)
        if said.get(name) not in expected:
            yield None, f"{where} counters {name}", str(expected), str(said.get(name)), []
    for name in said.keys() - set(COUNTED):
        yield None, f"{where} counters {name}", "no such counter", str(said[name]), []


@dataclass(frozen=True)
class Snapshot:
    """A server in a pause: the counts of its activities, and of those of its mapper, when the pause began and when it
    ended."""

    served: Sequence[tuple[Histories, Histories]]
    mapped: Sequence[tuple[Histories, Histories]]
    sure: bool
    """The server must have noticed the pause."""


def pauses(arrivals_ns: Sequence[int], end_ns: int, *, exact: bool = True) -> list[tuple[int, int, bool]]:
    """When nothing came for so long that the server reported: some time after it begins, when it ends, and whether it
    was surely long enough. `arrivals_ns`: sorted. Not `exact`: a server that waits for its host may see a longer pause
    than the capture shows, or none."""
    found = []
    ends = [*arrivals_ns[1:], *([end_ns] if arrivals_ns else [])]
    least = PAUSE_NS if exact else PAUSE_NS // 4
    for begin, end in zip(arrivals_ns, ends, strict=True):
        if end - begin >= least:
            found.append((begin + least - least // 4, end - 1, exact and end - begin >= PAUSE_NS + _SURE_NS))
    return found


def check_server(where: str, lines: Sequence[Mapping[str, Any]], snapshots: Sequence[Snapshot]) -> Iterator[Finding]:
    """A server's lines, each of which is of one of its pauses; the last may be of its end."""
    place = 0
    for number, line in enumerate(lines):
        fit = next((at for at in range(place, len(snapshots)) if not _differences(line, snapshots[at])), None)
        if fit is None and number == len(lines) - 1 and snapshots and not _differences(line, snapshots[-1]):
            return
        if fit is None:
            nearest = snapshots[min(place, len(snapshots) - 1)] if snapshots else Snapshot((), (), True)
            name, expected, seen = next(iter(_differences(line, nearest)), ("line", "none", "one"))
            yield None, f"{where} counters {name}", expected, seen, []
            fit = place
        if any(each.sure for each in snapshots[place:fit]):
            yield None, f"{where} counters", "a line for each pause", f"none before line {number}", []
        place = fit + 1
    if any(each.sure for each in snapshots[place:]):
        yield None, f"{where} counters", "a line for each pause", f"{len(lines)} lines", []


def _differences(line: Mapping[str, Any], snapshot: Snapshot) -> list[tuple[str, str, str]]:
    served = [[*before, *after] for before, after in snapshot.served]
    mapped = [[*before, *after] for before, after in snapshot.mapped]
    found = []
    for name in (*COUNTED, "kept"):
        expected = bounds(served, name)
        if name in NOT_TAKEN:
            expected = Bounds(expected.least, expected.most + _sum(served, EITHER).most)
        found.append((name, expected, line.get(name)))
    operations = line.get("by_opnum")
    operations = operations if isinstance(operations, Mapping) else {}
    numbers = {
        name.split()[1] for part in served for each in part for name in each if name.startswith((EXECUTED, EITHER))
    }
    for number in sorted({*numbers, *operations}):
        sure, either = bounds(served, f"{EXECUTED}{number}"), bounds(served, f"{EITHER}{number}")
        found.append((f"by_opnum {number}", Bounds(sure.least, sure.most + either.most), operations.get(number, 0)))
    executed = sum(each for each in operations.values() if isinstance(each, int))
    found.append(("executed", Bounds(executed, executed), line.get("executed")))
    mapping = _sum(mapped, EXECUTED)
    found += [("mapped", mapping, line.get("mapped"))]
    found += [(name, Bounds(0, 0), line.get(name)) for name in ("bad_payload", "undecodable")]
    # A request of a maybe call was executed or counted as one of the others.
    together = [_sum(served, EXECUTED, EITHER), *(bounds(served, name) for name in NOT_TAKEN)]
    either = Bounds(sum(each.least for each in together), sum(each.most for each in together))
    seen = executed + sum(_number(line.get(name)) for name in NOT_TAKEN)
    found.append((f"executed, {', '.join(NOT_TAKEN)}", either, seen))
    return [(name, str(expected), str(seen)) for name, expected, seen in found if seen not in expected]


def _sum(parts: Sequence[Histories], *words: str) -> Bounds:
    """Of all counts whose names begin with one of some words."""
    sums = [[sum(n for name, n in each.items() if name.startswith(words)) for each in part] for part in parts]
    return Bounds(sum(map(min, sums)), sum(map(max, sums)))


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
