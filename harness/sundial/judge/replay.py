# SPDX-License-Identifier: Apache-2.0
"""Frames against a machine: each message that a side sent follows from what it knew, and all that follows was sent.

A capture shows when a message was whole at a port, not when its machine read it: between the two is its own work. So
all that may have happened is followed at once, as long as it explains what was sent; that is one history almost always,
and some where a timer was due while something came.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from sundial.judge.machine import NEVER, Arrival, Machine

LATE_NS = 5_000_000_000
"""So long after it was due a message may be on the wire: 32 callers' windows on 10 Mb/s take 0.9 s."""
_HISTORIES = 64
"""That are followed at once; in recorded runs of DCE RPC at most 2 (`Replay.followed`)."""
_STEPS = 2_000
"""Of a machine until the next thing that is known; in recorded runs 82 in all. A damaged setting, such as a timer of a
negative time, would let it go on for ever."""
_SHOWN = 8

M = TypeVar("M", bound=Machine[Any])
T = TypeVar("T")


@dataclass(frozen=True)
class Sent(Generic[T]):
    """A message that left a port."""

    at_ns: int
    message: T
    payload: bytes
    rows: tuple[int, ...] = ()


class Difference(NamedTuple):
    """What is wrong with a message, which the kind turns into a finding about its call."""

    message: Any
    """None: no message is meant."""
    field: str
    expected: str
    seen: str
    rows: tuple[int, ...] = ()


Item = Sent[Any] | Arrival
Histories = Sequence[Counter[str]]
"""The counts of each history that explains the frames."""


class _GaveUp(Exception):
    """What may have become of a machine cannot be tried out."""


@dataclass
class Replay(Generic[M]):
    """One side of a conversation."""

    histories: list[M]
    late_ns: int = LATE_NS
    agrees: Callable[[M], bool] | None = None
    """Whether a history agrees with what the machine's program has reported so far; such histories are preferred."""
    drops: Callable[[int], bool] = lambda at_ns: False
    """Whether what the machine sends at an instant is dropped before it comes to the port."""
    findings: list[Difference] = field(default_factory=list)
    explained: list[Sent[Any]] = field(default_factory=list)
    counted: list[tuple[int, Histories]] = field(default_factory=list)
    """The counts of all histories, from which mark on (by its number) until the next one here."""
    followed: Counter[int] = field(default_factory=Counter)
    """Messages sent, by the number of histories that explained them."""
    marks_ns: Sequence[int] = ()
    """When counts are asked for, in order, behind all else of the same instant."""

    def __post_init__(self) -> None:
        self._reading = self.histories[0].reading
        self._marked = 0
        self._gave_up = False

    def run(self, items: Iterable[Item], end_ns: int, marks_ns: Sequence[int] = ()) -> None:
        """All of them, in the order of their time; `end_ns`: as of `finish`."""
        self.marks_ns, self._marked = marks_ns, 0
        for item in items:
            self.feed(item)
        self.finish(end_ns)

    def feed(self, item: Item) -> None:
        """The next thing that came or was sent."""
        self._try(partial(self._take, item))

    def finish(self, end_ns: int) -> None:
        """Nothing more came or was sent; what was due by `end_ns` must have been."""
        self._try(partial(self._end, end_ns))

    def leaves(self, until_ns: int) -> list[M]:
        """All that may have become of the machine by an instant by which all that it sent has been seen."""
        try:
            return self._leaves(until_ns)
        except _GaveUp:
            return self.histories

    def _leaves(self, until_ns: int) -> list[M]:
        return [leaf for each in self.histories for leaf in _explore(each.clone(), until_ns, stops_at_output=False)]

    def _try(self, step: Callable[[], None]) -> None:
        if self._gave_up:
            return
        try:
            step()
        except _GaveUp:
            self._gave_up = True
            self.findings.append(
                Difference(None, "sent", "what its program can have sent", "more ways than can be tried")
            )

    def _take(self, item: Item) -> None:
        self._count(bisect_left(self.marks_ns, item.at_ns, lo=self._marked))
        self._force(item.at_ns - self.late_ns)
        if isinstance(item, Sent):
            self._explain(item)
        else:
            for each in self.histories:
                each.inbox.append(item)

    def _end(self, end_ns: int) -> None:
        self._count(len(self.marks_ns))
        self._force(end_ns)

    def _count(self, end: int) -> None:
        """The counts at some marks between which nothing comes and nothing is sent."""
        begin, self._marked, marks_ns = self._marked, end, self.marks_ns
        while begin < end:
            counts = self.counts(marks_ns[begin])
            if not self.counted or not _same(counts, self.counted[-1][1]):
                self.counted.append((begin, counts))
            # While nothing comes, time only adds to what may have happened: counts that differ at a mark differ at all
            # later ones. Of a conversation that is over, most of thousands of marks are alike.
            begin = bisect_left(marks_ns, True, begin + 1, end, key=partial(self._differ, counts))

    def _differ(self, counts: Histories, at_ns: int) -> bool:
        return not _same(self.counts(at_ns), counts)

    def counts(self, until_ns: int) -> list[Counter[str]]:
        """What the machine may have counted at an instant in a pause, in which all that it sent has been seen."""
        leaves = self._leaves(until_ns)
        quiet = [leaf for leaf in leaves if not leaf.outbox]
        return [counts for leaf in quiet or leaves for counts in leaf.tally()]

    # ---- what was sent ----

    def _explain(self, sent: Sent[Any]) -> None:
        reading = self._reading
        name = reading.name(sent.message)
        leaves = [leaf for each in self.histories for leaf in _explore(each, sent.at_ns)]
        found = self._matching(leaves, name)
        if not found:
            found = self._without_missing(leaves, sent, name)
        found += self._with_another_dropped(found, sent, name)
        if not found:
            speaking = [each for each in leaves if each.outbox]
            kind = reading.kind(sent.message)
            found = [each for each in speaking if reading.alike(each.outbox[0], sent.message)]
            found = found or [each for each in speaking if reading.kind(each.outbox[0]) == kind][:1]
        if not found:
            first = leaves[0].outbox
            expected = reading.words(first[0]) if first else "nothing before something comes or is due"
            self.findings.append(Difference(sent.message, "sent", expected, reading.words(sent.message), sent.rows))
            self.histories = leaves
            return
        if len(found) > 1:
            found = [each for each in found if reading.encode(each.outbox[0]) == sent.payload] or found
        self._compare(found[0].outbox[0], sent)
        for each in found:
            each.left(sent.at_ns)
            each.outbox.popleft()
        self.explained.append(sent)
        self.histories = _distinct(self._agreeing(found))
        self.followed[len(self.histories)] += 1

    def _agreeing(self, histories: list[M]) -> list[M]:
        """Those that agree with what the program has reported, if any does."""
        if self.agrees is None or len(histories) == 1:
            return histories
        return [each for each in histories if self.agrees(each)] or histories

    def _matching(self, leaves: Sequence[M], name: Hashable) -> list[M]:
        return [each for each in leaves if each.outbox and self._reading.name(each.outbox[0]) == name]

    def _without_missing(self, leaves: Sequence[M], sent: Sent[Any], name: Hashable) -> list[M]:
        """Histories that explain it if something before was not captured."""
        for leaf in leaves:
            missing: list[tuple[int, Any]] = []
            others = [leaf.clone()]
            for _ in range(_HISTORIES):
                if not others or not others[0].outbox:
                    break
                missing.append((others[0].now_ns, others[0].outbox.popleft()))
                others = list(_explore(others[0], sent.at_ns))
                found = self._matching(others, name)
                if found:
                    self._missing(missing, sent.rows)
                    return found
        return []

    def _with_another_dropped(self, found: Sequence[M], sent: Sent[Any], name: Hashable) -> list[M]:
        """Histories in which the like of a message was dropped, and this is what the machine has sent again."""
        others: list[M] = []
        for each in found:
            place = each
            while self.drops(place.now_ns) and len(others) < _HISTORIES:
                after = place.clone()
                after.outbox.popleft()
                later = self._matching(list(_explore(after, sent.at_ns)), name)
                others += later[:1]
                if not later or later[0].now_ns <= place.now_ns:
                    break
                place = later[0]
        return others

    def _missing(self, missing: Iterable[tuple[int, Any]], rows: tuple[int, ...]) -> None:
        """`missing`: with when they were due."""
        for due_ns, each in missing:
            if not self.drops(due_ns):
                self.findings.append(Difference(each, "sent", self._reading.words(each), "nothing", rows))

    def _compare(self, expected: Any, sent: Sent[Any]) -> None:
        right, seen, words = self._reading.encode(expected), sent.payload, self._reading.words
        if right == seen:
            return
        first = next((place for place, (one, other) in enumerate(zip(right, seen, strict=False)) if one != other), None)
        if first is None:
            difference = ("length", f"{len(right)} bytes", f"{len(seen)}")
        else:
            shown = slice(first, first + _SHOWN)
            difference = (
                self._reading.field_at(first),
                f"{right[shown].hex(' ')} at byte {first} of {words(expected)}",
                f"{seen[shown].hex(' ')} in {words(sent.message)}",
            )
        self.findings.append(Difference(sent.message, *difference, sent.rows))

    # ---- what was not sent ----

    def _force(self, until_ns: int) -> None:
        """What was due by then has happened, and what followed from it was sent."""
        missing, dropped_ns = 0, -NEVER
        while missing < _HISTORIES and any(_is_due(each, until_ns) for each in self.histories):
            leaves = [leaf for each in self.histories for leaf in _explore(each, until_ns)]
            due = [each for each in leaves if each.outbox and each.now_ns <= until_ns]
            alive = [each for each in leaves if not (each.outbox and each.now_ns <= until_ns)]
            dropped = [each for each in due if self.drops(each.now_ns)]
            for each in dropped:
                each.outbox.popleft()
            if dropped:
                # This may go on for minutes; but a machine whose time stands still has damaged settings.
                latest_ns = max(each.now_ns for each in dropped)
                missing += latest_ns <= dropped_ns
                dropped_ns = max(dropped_ns, latest_ns)
            elif not alive:
                missing += 1
                self._missing([(due[0].now_ns, due[0].outbox.popleft())], ())
                alive = due[:1]
            self.histories = _distinct(self._agreeing([*alive, *dropped]))


def _is_due(machine: Machine[Any], until_ns: int) -> bool:
    if machine.outbox:
        return machine.now_ns <= until_ns
    return next(machine.steps(until_ns), None) is not None


def _explore(machine: M, until_ns: int, *, stops_at_output: bool = True) -> Iterator[M]:
    """All that may have become of a machine by `until_ns`; up to its next output, if there is one. Raises _GaveUp."""
    waiting, taken = [machine], 0
    while waiting:
        each = waiting.pop()
        steps = [] if each.outbox and stops_at_output else list(each.steps(until_ns))
        if not steps:
            yield each
            continue
        if not stops_at_output and each.PROMPT.isdisjoint(steps):
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
