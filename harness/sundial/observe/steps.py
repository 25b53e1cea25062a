# SPDX-License-Identifier: Apache-2.0
"""A call's time divided into steps: its critical path, found backwards from its end; pure.

On a machine the path goes back stamp by stamp, and what is between two stamps is a step. Where the CPU was asleep and
a frame woke it, the path goes on at the frame's sender, at the instant at which that handed the frame in: before it are
the steps `send` (in the sender's adapter, where the wire was taken), `wire` and `receive` (until the first stamp). If a
timer woke it, the first frame that came before the CPU slept again, or the path left the machine, is taken; where there
is none, the idle time is a step like any other: what ended it is the timer, of a retransmission perhaps. So steps join
without gap or overlap from the call's beginning to its end, and their sum is its round trip.

Who polls is not woken. What a poll finds is the last that came before it ended: from the client of the call, where that
has sent anything, else from anyone. There the path goes on at the sender, at the instant of the store or of the frame.
A thread polls from the entry of a function of the role `poll` until it enters or leaves another of its program; and
where no function of a program was stamped since, what takes packets of a backplane has polled, for they wake no CPU.

A CPU is one thing that all threads wait for: what it did for others before it came to the call is on the path too.

What a machine did meanwhile beside the path is listed too. It belongs to the call that began last before it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import pairwise
from typing import NamedTuple

from sundial.observe.trace import EXIT, HALT, Trace

CALL, RETURN = "call", "return"
SEND, WIRE, RECEIVE = "send", "wire", "receive"
IDLE, HANDED_IN, ELSEWHERE = "idle", "handed in", "elsewhere"
ARROW = " → "
TRANSMIT_ROLE, CALL_ROLE, POLL_ROLE = "transmit", "call", "poll"


class Call(NamedTuple):
    """One call; times since zero."""

    number: int
    client: str
    start_ns: int
    end_ns: int


class Arrival(NamedTuple):
    """A frame or packet at a machine: when its last bit had come, and when its first left which machine's adapter."""

    at_ns: int
    sender: str
    sent_ns: int
    stored_ns: int = -1
    """When the store was made that a backplane's packet ends with; -1: a frame, which a driver has handed in."""
    wakes: bool = True
    """Whether a CPU that sleeps is interrupted."""


class Step(NamedTuple):
    """A part of a call's time. `thread`: number of the context on its machine; None for adapters and wires."""

    call: int
    node: str
    thread: int | None
    step: str
    occurrence: int
    start_ns: int
    end_ns: int
    on_path: bool


@dataclass
class Lane:
    """One machine's stamps, made ready for walking back."""

    name: str
    times: list[int]
    labels: list[str]
    halts: list[bool]
    threads: list[int]
    of_programs: list[bool]
    """Whether the stamp is one of a program's function."""
    polls: list[bool]
    """Whether the thread polls in what follows the stamp."""
    transmits: list[int]
    """Places of stamps at which a frame is handed to an adapter: of entries."""
    calls: list[tuple[int, bool]]
    """Times at which calls begin (True) and end."""
    arrivals: list[Arrival] = field(default_factory=list)
    handed: dict[int, int] = field(default_factory=dict)
    """When a frame was handed in, by when its first bit left."""
    used: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Of each stamp after which something is on a path: from when until when."""

    def mark(self, place: int, start_ns: int, end_ns: int) -> None:
        """What follows the stamp at `place` is on a path."""
        first, last = self.used.get(place, (start_ns, end_ns))
        self.used[place] = min(first, start_ns), max(last, end_ns)


def lane_of(name: str, trace: Trace) -> Lane:
    """A machine's trace as a lane, without what came over the wires."""
    stamps, points = trace.stamps, trace.points
    kinds, places = stamps["kind"].tolist(), stamps["point"].tolist()
    contexts: dict[tuple[int, int], int] = {}
    threads = [
        contexts.setdefault(context, len(contexts))
        for context in zip(stamps["page_table"].tolist(), stamps["thread"].tolist(), strict=True)
    ]
    labels, transmits, calls = [], [], []
    of_programs, polls = [False] * len(kinds), [False] * len(kinds)
    polling: dict[int, bool] = {}
    for number, (kind, place, ns) in enumerate(zip(kinds, places, stamps["ns"].tolist(), strict=True)):
        if kind == HALT:
            labels.append(IDLE)
            continue
        point, thread = points[place], threads[number]
        if point.program is not None:
            of_programs[number] = True
            polling[thread] = point.role == POLL_ROLE and kind != EXIT
        polls[number] = polling.get(thread, False)
        labels.append(f"{point.name} end" if kind == EXIT else point.name)
        if point.role == TRANSMIT_ROLE and kind != EXIT:
            transmits.append(number)
        if point.role == CALL_ROLE:
            calls.append((ns, kind != EXIT))
    halts = [kind == HALT for kind in kinds]
    return Lane(name, stamps["ns"].tolist(), labels, halts, threads, of_programs, polls, transmits, calls)


def join(
    lanes: Mapping[str, Lane], arrivals: Mapping[str, Sequence[Arrival]], sent: Mapping[str, Sequence[int]]
) -> None:
    """Give each lane the frames that reached its machine, and when those were handed in that it sent (`sent`: when
    their first bits left, ascending)."""
    for name, lane in lanes.items():
        lane.arrivals = sorted(arrivals.get(name, ()))
        lane.handed = _handed_in(lane, sent.get(name, ()))


def _handed_in(lane: Lane, sent: Sequence[int]) -> dict[int, int]:
    """An adapter sends in order. So the last frame was handed in by the last driver's call before it, and so on
    backwards; what the driver sends and no capture shows, the harness's own frames, comes when nothing waits."""
    found: dict[int, int] = {}
    free = len(lane.transmits)
    for sent_ns in reversed(sent):
        while free and lane.times[lane.transmits[free - 1]] > sent_ns:
            free -= 1
        if not free:
            break
        free -= 1
        found[sent_ns] = min(sent_ns, _driver_end(lane, lane.transmits[free]))
    return found


def _driver_end(lane: Lane, place: int) -> int:
    """When the driver had handed in the frame at the latest: when it returned, else its thread's next stamp."""
    end = f"{lane.labels[place]} end"
    following = None
    for later in range(place + 1, len(lane.times)):
        if lane.threads[later] != lane.threads[place] or lane.halts[later]:
            continue
        if lane.labels[later] == end:
            return lane.times[later]
        following = lane.times[later] if following is None else following
        if lane.labels[later] == lane.labels[place]:
            break
    return lane.times[place] if following is None else following


class _Path:
    """One call's path in the making, from its end to its beginning."""

    def __init__(self, lanes: Mapping[str, Lane], call: Call) -> None:
        self._lanes = lanes
        self._call = call
        self._now = call.end_ns
        self._steps: list[Step] = []
        self._places: list[tuple[Lane, int] | None] = []
        """Of each step: the stamp that it begins at."""
        self._enter()

    def _enter(self) -> None:
        """The path comes to a machine."""
        self._entered = len(self._steps), self._now
        """How many steps there were when it came there, and when that was."""
        self._found: Arrival | None = None
        """What was polled for."""
        self._bare = True
        """Whether the path has met no stamp of a program yet."""

    def walk(self) -> list[Step]:
        """The steps, the last first. What is on the path is marked in the lanes."""
        lane: Lane | None = self._lanes[self._call.client]
        follows = RETURN
        while lane is not None and self._now > self._call.start_ns:
            place = bisect_left(lane.times, self._now) - 1
            before = place < 0 or lane.times[place] <= self._call.start_ns
            arrival = self._polled(lane, place, before)
            if arrival is None and place >= 0 and lane.halts[place]:
                arrival = self._cause(lane, place)
            if arrival is not None:
                lane, follows = self._over_the_wire(lane, place, arrival)
                continue
            if before:
                begins = place < 0 or lane.name == self._call.client
                thread = None if place < 0 else lane.threads[place]
                self._add(lane.name, thread, f"{CALL if begins else lane.labels[place]}{ARROW}{follows}", 0)
                break
            step = f"{lane.labels[place]}{ARROW}{follows}"
            self._add(lane.name, lane.threads[place], step, lane.times[place], (lane, place))
            follows = lane.labels[place]
        for found, each in zip(self._places, self._steps, strict=True):
            if found is not None:
                found[0].mark(found[1], each.start_ns, each.end_ns)
        return self._steps

    def _polled(self, lane: Lane, place: int, before: bool) -> Arrival | None:
        """What was polled for, if it came after the stamp at `place` and before the path; `before`: that stamp is the
        last before the call."""
        if place >= 0 and not before:
            self._bare = self._bare and not lane.of_programs[place]
        if self._found is None:
            if place >= 0 and lane.polls[place]:
                self._found = self._last(lane, stored=False)
            elif self._bare:
                self._found = self._last(lane, stored=True)
        found = self._found
        return found if found is not None and (place < 0 or found.at_ns >= lane.times[place]) else None

    def _last(self, lane: Lane, *, stored: bool) -> Arrival | None:
        """The last that came within the call and before the path; `stored`: of a backplane alone."""
        first = bisect_left(lane.arrivals, (self._call.start_ns + 1,))
        came = [
            each
            for each in lane.arrivals[first : bisect_left(lane.arrivals, (self._now,))]
            if each.stored_ns >= 0 or not stored
        ]
        own = [each for each in came if each.sender == self._call.client]
        return next(reversed(own or came), None)

    def _cause(self, lane: Lane, place: int) -> Arrival | None:
        """The frame that woke the CPU from a sleep that began at `place`; else the first that came while it was awake
        for another reason, a timer, and before the path came here."""
        first = bisect_left(lane.arrivals, (lane.times[place],))
        last = bisect_left(lane.arrivals, (self._entered[1],))
        woke = next((lane.arrivals[each] for each in range(first, last) if lane.arrivals[each].wakes), None)
        return woke if woke is not None and self._call.start_ns < woke.at_ns else None

    def _over_the_wire(self, lane: Lane, place: int, arrival: Arrival) -> tuple[Lane | None, str]:
        self._back_to(arrival.at_ns)
        slept = place < 0 or lane.halts[place]
        self._add(lane.name, None, RECEIVE, arrival.at_ns, None if slept else (lane, place))
        self._add("", None, WIRE, arrival.sent_ns)
        sender = self._lanes.get(arrival.sender)
        if sender is None:
            self._add(arrival.sender, None, ELSEWHERE, self._call.start_ns)
            return None, ""
        handed = arrival.stored_ns
        if handed < 0:
            handed = sender.handed.get(arrival.sent_ns, arrival.sent_ns)
        self._add(sender.name, None, SEND, handed)
        self._enter()
        return sender, HANDED_IN

    def _back_to(self, at_ns: int) -> None:
        """Take back what the machine did before a frame came that it had not waited for."""
        while len(self._steps) > self._entered[0] and self._steps[-1].start_ns < at_ns:
            last, place = self._steps.pop(), self._places.pop()
            self._now = last.end_ns
            if at_ns < last.end_ns:
                self._add(last.node, last.thread, last.step, at_ns, place)

    def _add(
        self, node: str, thread: int | None, step: str, start_ns: int, place: tuple[Lane, int] | None = None
    ) -> None:
        """What ends now and began at `start_ns`, or with the call."""
        start_ns = max(start_ns, self._call.start_ns)
        if start_ns < self._now:
            self._steps.append(Step(self._call.number, node, thread, step, 0, start_ns, self._now, True))
            self._places.append(place)
            self._now = start_ns


def paths(lanes: Mapping[str, Lane], calls: Sequence[Call]) -> list[Step]:
    """The steps of all calls whose client has a lane, in order of call and time; those off the path behind them."""
    steps: list[Step] = []
    for call in calls:
        if call.client in lanes:
            steps += reversed(_Path(lanes, call).walk())
    for lane in lanes.values():
        steps += _beside(lane, [call for call in calls if call.client in lanes])
    return _numbered(steps)


def _beside(lane: Lane, calls: Sequence[Call]) -> list[Step]:
    """What the machine did that is on no path, each part once."""
    found: list[Step] = []
    waiting = sorted(calls, key=lambda call: call.start_ns, reverse=True)
    latest: list[tuple[int, int, Call]] = []
    for place, (begin, end) in enumerate(pairwise(lane.times)):
        while waiting and waiting[-1].start_ns <= begin:
            call = waiting.pop()
            heappush(latest, (-call.start_ns, call.number, call))
        while latest and latest[0][2].end_ns <= begin:
            heappop(latest)
        if not latest or lane.halts[place]:
            continue
        call, label, following = latest[0][2], lane.labels[place], lane.labels[place + 1]
        first, last = lane.used.get(place, (end, end))
        for name, start_ns, end_ns in ((label, begin, first), (HANDED_IN, last, end)):
            until = min(end_ns, call.end_ns)
            if start_ns < until:
                step = f"{name}{ARROW}{following}"
                found.append(Step(call.number, lane.name, lane.threads[place], step, 0, start_ns, until, False))
    return found


def _numbered(steps: list[Step]) -> list[Step]:
    """In order, with the number of times that a step has come before in its call on its machine."""
    seen: Counter[tuple[int, str, str]] = Counter()
    numbered = []
    for step in sorted(steps, key=lambda each: (each.call, not each.on_path, each.start_ns, each.node)):
        key = (step.call, step.node, step.step)
        numbered.append(step._replace(occurrence=seen[key]))
        seen[key] += 1
    return numbered


def marked(lane: Lane, call: Call) -> bool:
    """Whether a stamp says that a call began, and a later one that it ended, within the call's own times."""
    first = bisect_left(lane.calls, (call.start_ns, False))
    within = []
    for ns, begins in lane.calls[first:]:
        if ns > call.end_ns:
            break
        within.append(begins)
    return True in within and False in within[within.index(True) :]


def sums(steps: Sequence[Step]) -> dict[int, int]:
    """The time on the path of each call; only of calls whose steps join without gap or overlap."""
    totals: dict[int, int] = {}
    ends: dict[int, int] = {}
    broken = set()
    for step in steps:
        if not step.on_path:
            continue
        if step.start_ns != ends.get(step.call, step.start_ns):
            broken.add(step.call)
        ends[step.call] = step.end_ns
        totals[step.call] = totals.get(step.call, 0) + step.end_ns - step.start_ns
    return {call: total for call, total in totals.items() if call not in broken}
