# SPDX-License-Identifier: Apache-2.0
"""Makes the runs that a plan wants, by an engine that may lose, repeat and reorder them. Pure but for the engine.

The engine only places runs. What counts is in the store: a run is over when it is there.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from sundial.errors import HostLacks

RunT = TypeVar("RunT")
"""What identifies a run."""
ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class Lost:
    """A run that did not reach its end for reasons of the host, with the reason in words."""

    why: str


@dataclass(frozen=True)
class Done:
    """A run that is in the store now."""


class Engine(Protocol[RunT]):
    """Places runs on workers."""

    @property
    def slots(self) -> int:
        """How many runs it makes at a time."""

    def begin(self, run: RunT, attempt: int) -> None:
        """Begin a run; fewer than `slots` are under way. `attempt`: how often it was lost before."""

    def ended(self) -> tuple[RunT, int, Done | Lost]:
        """A run that has ended, and which attempt. Waits for one.

        Raises BadInput, HostLacks, Interrupted: the end of the sweep.
        """


@dataclass
class Progress:
    """How far a sweep is."""

    wanted: int = 0
    made: int = 0
    had: int = 0
    lost: int = 0
    """Attempts that did not reach their end."""
    given_up: int = 0


@dataclass
class Schedule(Generic[RunT, ResultT]):
    """Runs under way, those that wait, and what the others came to."""

    engine: Engine[RunT]
    find: Callable[[RunT], ResultT | None]
    """What the store has of a run."""
    retries: int
    show: Callable[[Progress], None]
    seen: dict[RunT, ResultT] = field(default_factory=dict)
    given_up: dict[RunT, str] = field(default_factory=dict)
    """Runs that the host did not bring to their end, with the last reason."""
    progress: Progress = field(default_factory=Progress)
    _known: set[RunT] = field(default_factory=set)
    _waiting: deque[RunT] = field(default_factory=deque)
    _under_way: set[tuple[RunT, int]] = field(default_factory=set)
    _attempts: Counter[RunT] = field(default_factory=Counter)
    _lost_in_a_row: int = 0

    def perform(self, wanted: Callable[[], Sequence[RunT]], *, had: bool = True) -> None:
        """Make all runs that are wanted, which is asked again after each. Without `had` a run that the store has is
        made again.

        Raises what the engine raises, and HostLacks where nothing reaches its end any more.
        """
        for _ in self.steps(wanted, had=had):
            pass

    def steps(self, wanted: Callable[[], Sequence[RunT]], *, had: bool = True) -> Iterator[None]:
        """The same in steps: one before each wait for a run, while all slots are busy."""
        before: Sequence[RunT] = ()
        while True:
            found, runs = self.progress.had, wanted()
            if runs is not before:  # a plan whose runs are all known answers the same list
                for run in runs:
                    if run not in self._known:
                        self._take(run, had=had)
            before = runs
            self.progress.wanted = len(self._known)
            self.show(self.progress)
            while self._waiting and len(self._under_way) < self.engine.slots:
                run = self._waiting.popleft()
                self._under_way.add((run, self._attempts[run]))
                self.engine.begin(run, self._attempts[run])
            if self._under_way:
                yield
                self._hear()
            elif found == self.progress.had:  # else the plan may go on from what was had
                return

    def _take(self, run: RunT, *, had: bool) -> None:
        self._known.add(run)
        found = self.find(run) if had else None
        if found is None:
            self._waiting.append(run)
        else:
            self.seen[run] = found
            self.progress.had += 1

    def _hear(self) -> None:
        run, attempt, end = self.engine.ended()
        if (run, attempt) not in self._under_way:
            return  # an engine may repeat itself
        self._under_way.discard((run, attempt))
        found = self.find(run) if isinstance(end, Done) else None
        if found is not None:
            self.seen[run] = found
            self.progress.made += 1
            self._lost_in_a_row = 0
            return
        why = end.why if isinstance(end, Lost) else "its result is not in the store"
        self.progress.lost += 1
        self._lost_in_a_row += 1
        self._attempts[run] += 1
        if self._lost_in_a_row > 2 * self.engine.slots + 1:
            hint = "mend the host and give the same command again: what was made is kept"
            raise HostLacks(f"{self._lost_in_a_row} runs in sequence did not reach their end: {why}", hint=hint)
        if self._attempts[run] > self.retries:
            self.given_up[run] = why
            self.progress.given_up += 1
        else:
            self._waiting.append(run)


def drawn(keys: Sequence[str], share: float) -> list[str]:
    """The keys of runs that are made again: those below a share of all digests, and at least the smallest. The draw
    depends on nothing but the keys, so each command draws the same."""
    if not keys or share <= 0:
        return []
    limit = int(share * 16**16)
    return sorted({min(keys), *(key for key in keys if int(key[:16], 16) < limit)})
