# SPDX-License-Identifier: Apache-2.0
"""Frames against a machine: each PDU that a side sent follows from what it knew, and all that follows was sent.

A capture shows when a PDU was whole at a port, not when its machine read it: between the two is its own work. So all
that may have happened is followed at once, as long as it explains what was sent; that is one history almost always, and
some where a timer was due while something came.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

from sundial.workloads.dce.expect_pdu import Flags, Pdu, Type
from sundial.workloads.dce.verify_stream import Arrival, Machine, encode, field_at

LATE_NS = 5_000_000_000
"""So long after it was due a PDU may be on the wire: 32 callers' windows on 10 Mb/s take 0.9 s."""
_HISTORIES = 64
"""That are followed at once."""
_STEPS = 2_000
"""Of a machine until the next thing that is known; in recorded runs 82 in all. A damaged setting, such as a timer of a
negative time, would let it go on for ever."""
_SHOWN = 8

M = TypeVar("M", bound=Machine)

Finding = tuple[int | None, str, str, str, list[int]]


@dataclass(frozen=True)
class Sent:
    """A PDU that left a port."""

    at_ns: int
    pdu: Pdu
    payload: bytes
    rows: tuple[int, ...] = ()


Item = Sent | Arrival
Histories = Sequence[Counter[str]]
"""The counts of each history that explains the frames of an activity."""


def name_of(pdu: Pdu) -> tuple[Hashable, ...]:
    """What tells a PDU from others of its side."""
    control = pdu.body if pdu.type in (Type.FACK, Type.NOCALL) else b""
    asks = pdu.flags & (Flags.FRAGMENT | Flags.NO_FACK)
    return pdu.type, pdu.activity, pdu.sequence, pdu.fragment, pdu.serial, asks, control


def words(pdu: Pdu) -> str:
    """A PDU in words."""
    name = pdu.type.name.lower().replace("_", " ")
    text = f"{name} of call {pdu.sequence}"
    if pdu.type in (Type.REQUEST, Type.RESPONSE):
        text += f", fragment {pdu.fragment}, serial {pdu.serial}" + (", asking for a fack" if pdu.asks else "")
    elif pdu.type in (Type.FACK, Type.NOCALL) and pdu.body:
        text += f" up to fragment {pdu.fragment}, body {pdu.body[12:].hex(' ')}"
    return text


class _GaveUp(Exception):
    """What may have become of a machine cannot be tried out."""


@dataclass
class Replay(Generic[M]):
    """One side of an activity."""

    histories: list[M]
    late_ns: int = LATE_NS
    agrees: Callable[[M], bool] | None = None
    """Whether a history agrees with what the machine's program has reported so far; such histories are preferred."""
    findings: list[tuple[Pdu | None, str, str, str, tuple[int, ...]]] = field(default_factory=list)
    """The PDU that is meant; field, expected, seen, rows."""
    explained: list[Sent] = field(default_factory=list)
    counted: list[tuple[int, Histories]] = field(default_factory=list)
    """The counts of all histories, from which mark on (by its number) until the next one here."""

    def run(self, items: Iterable[Item], end_ns: int, marks_ns: Sequence[int] = ()) -> None:
        """All of them, in the order of their time; `end_ns`: what was due by then must have been sent. `marks_ns`, in
        order: when counts are asked for, behind all else of the same instant."""
        try:
            self._run(items, end_ns, marks_ns)
        except _GaveUp:
            self.findings.append((None, "sent", "what its program can have sent", "more ways than can be tried", ()))

    def _run(self, items: Iterable[Item], end_ns: int, marks_ns: Sequence[int]) -> None:
        marked = 0
        for item in items:
            marked = self._count(marks_ns, marked, bisect_left(marks_ns, item.at_ns, lo=marked))
            self._force(item.at_ns - self.late_ns)
            if isinstance(item, Arrival):
                for each in self.histories:
                    each.inbox.append(item)
            else:
                self._explain(item)
        self._count(marks_ns, marked, len(marks_ns))
        self._force(end_ns)

    def _count(self, marks_ns: Sequence[int], begin: int, end: int) -> int:
        """The counts at some marks between which nothing comes and nothing is sent; answers `end`."""
        while begin < end:
            counts = self.counts(marks_ns[begin])
            if not self.counted or not _same(counts, self.counted[-1][1]):
                self.counted.append((begin, counts))
            # While nothing comes, time only adds to what may have happened: counts that differ at a mark differ at all
            # later ones. Of an activity that is over, most of thousands of marks are alike.
            begin = bisect_left(marks_ns, True, begin + 1, end, key=partial(self._differ, counts))
        return end

    def _differ(self, counts: Histories, at_ns: int) -> bool:
        return not _same(self.counts(at_ns), counts)

    def counts(self, until_ns: int) -> list[Counter[str]]:
        """What the machine may have counted at an instant in a pause, in which all that it sent has been seen."""
        leaves = [leaf for each in self.histories for leaf in _explore(each.clone(), until_ns, stops_at_output=False)]
        quiet = [leaf for leaf in leaves if not leaf.outbox]
        return [counts for leaf in quiet or leaves for counts in leaf.tally()]

    # ---- what was sent ----

    def _explain(self, sent: Sent) -> None:
        name = name_of(sent.pdu)
        leaves = [leaf for each in self.histories for leaf in _explore(each, sent.at_ns)]
        found = self._matching(leaves, name)
        if not found:
            found = self._without_missing(leaves, sent, name)
        if not found:
            alike = [each for each in leaves if each.outbox and _alike(each.outbox[0], sent.pdu)]
            found = alike or [each for each in leaves if each.outbox and each.outbox[0].type == sent.pdu.type][:1]
        if not found:
            expected = words(leaves[0].outbox[0]) if leaves[0].outbox else "nothing before something comes or is due"
            self.findings.append((sent.pdu, "sent", expected, words(sent.pdu), sent.rows))
            self.histories = leaves
            return
        self._compare(found[0].outbox[0], sent)
        for each in found:
            each.outbox.popleft()
        self.explained.append(sent)
        if self.agrees is not None and len(found) > 1:
            found = [each for each in found if self.agrees(each)] or found
        self.histories = _distinct(found)

    @staticmethod
    def _matching(leaves: Sequence[M], name: tuple[Hashable, ...]) -> list[M]:
        return [each for each in leaves if each.outbox and name_of(each.outbox[0]) == name]

    def _without_missing(self, leaves: Sequence[M], sent: Sent, name: tuple[Hashable, ...]) -> list[M]:
        """Histories that explain it if something before was not captured."""
        for leaf in leaves:
            missing: list[Pdu] = []
            others = [leaf.clone()]
            for _ in range(_HISTORIES):
                if not others or not others[0].outbox:
                    break
                missing.append(others[0].outbox.popleft())
                others = list(_explore(others[0], sent.at_ns))
                found = self._matching(others, name)
                if found:
                    self._missing(missing, sent.rows)
                    return found
        return []

    def _missing(self, missing: Sequence[Pdu], rows: tuple[int, ...]) -> None:
        for pdu in missing:
            self.findings.append((pdu, "sent", words(pdu), "nothing", rows))

    def _compare(self, expected: Pdu, sent: Sent) -> None:
        right = encode(expected)
        if right == sent.payload:
            return
        pairs = enumerate(zip(right, sent.payload, strict=False))
        first = next((place for place, (one, other) in pairs if one != other), None)
        if first is None:
            self.findings.append((sent.pdu, "length", f"{len(right)} bytes", f"{len(sent.payload)}", sent.rows))
        else:
            shown = slice(first, first + _SHOWN)
            self.findings.append(
                (
                    sent.pdu,
                    field_at(first),
                    f"{right[shown].hex(' ')} at byte {first} of {words(expected)}",
                    f"{sent.payload[shown].hex(' ')} in {words(sent.pdu)}",
                    sent.rows,
                )
            )

    # ---- what was not sent ----

    def _force(self, until_ns: int) -> None:
        """What was due by then has happened, and what followed from it was sent."""
        for _ in range(_HISTORIES):
            if not any(_is_due(each, until_ns) for each in self.histories):
                return
            leaves = [leaf for each in self.histories for leaf in _explore(each, until_ns)]
            alive = [each for each in leaves if not (each.outbox and each.now_ns <= until_ns)]
            if not alive:
                self._missing([leaves[0].outbox.popleft()], ())
                alive = leaves[:1]
            self.histories = _distinct(alive)


def _is_due(machine: Machine, until_ns: int) -> bool:
    if machine.outbox:
        return machine.now_ns <= until_ns
    return next(machine.steps(until_ns), None) is not None


def _alike(one: Pdu, other: Pdu) -> bool:
    return (one.type, one.sequence, one.fragment) == (other.type, other.sequence, other.fragment)


def _explore(machine: M, until_ns: int, *, stops_at_output: bool = True) -> Iterator[M]:
    """All that may have become of a machine by `until_ns`; up to its next output, if there is one. Raises _GaveUp."""
    waiting, taken = [machine], 0
    while waiting:
        each = waiting.pop()
        steps = [] if each.outbox and stops_at_output else list(each.steps(until_ns))
        if not steps:
            yield each
            continue
        if not stops_at_output and "arrival" not in steps and "result" not in steps:
            yield each.clone()  # a timer may be late
        taken += len(steps)
        if taken > _STEPS:
            raise _GaveUp
        others = [each.clone() for _ in steps[1:]]
        for one, step in zip([each, *others], steps, strict=True):
            one.take(step)
            waiting.append(one)


def _same(one: Histories, other: Histories) -> bool:
    return len(one) == len(other) and all(map(dict.__eq__, one, other))


def _distinct(machines: Sequence[M]) -> list[M]:
    if len(machines) == 1:
        return list(machines)
    found: list[M] = []
    for each in machines:
        if not any(one.joins(each) for one in found):
            found.append(each)
    return found[:_HISTORIES]
