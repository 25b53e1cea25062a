# SPDX-License-Identifier: Apache-2.0
"""Events of a timeline that meet the clock of a machine: what they say, and which machines they fit.

A machine of `app: command` carries them out by adjtimex(2). They meet what programs read: CLOCK_REALTIME, and with a
drift CLOCK_MONOTONIC and timers. Records are on CLOCK_MONOTONIC_RAW, which follows virtual time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from sundial.model.fields import NAMED, In, Strict
from sundial.model.invalid import Invalid, Path
from sundial.model.machine_events import check_carried_out
from sundial.units import TIME, Quantity

if TYPE_CHECKING:
    from sundial.model.timeline import Event
    from sundial.model.topology import Topology
    from sundial.model.workload import WorkloadBase

STEP, DRIFT = "step_clock", "drift_clock"
CLOCK_VERBS = (STEP, DRIFT)
_WAYS = {STEP: ("forward", "back"), DRIFT: ("fast", "slow")}

DRIFT_RATE = Quantity("a rate of drift", {"ppb": 1, "ppm": 10**3, "%": 10**7}, 1, 10**8, example="200 ppm")
"""Rates in parts per 10^9. Linux' clock takes up to 10 %."""
_STEP_TIME = TIME.between("1 ns", example="30 s")


class OnClocks(Strict):
    """What an event does to the clock of a machine."""

    step_clock: Annotated[str, NAMED] | None = None
    """Machine whose clock is set forward or back. With `for` it is set back when that time is over."""
    forward: Annotated[int, In(_STEP_TIME)] | None = None
    """Time by which step_clock sets the clock forward."""
    back: Annotated[int, In(_STEP_TIME)] | None = None
    """Time by which step_clock sets the clock back."""
    drift_clock: Annotated[str, NAMED] | None = None
    """Machine whose clock runs fast or slow, with its timers. With `for` it runs at its own rate afterwards."""
    fast: Annotated[int, In(DRIFT_RATE)] | None = None
    """Rate by which the clock of drift_clock is fast."""
    slow: Annotated[int, In(DRIFT_RATE)] | None = None
    """Rate by which the clock of drift_clock is slow."""

    @property
    def clock_of(self) -> str:
        """The machine whose clock it meets; empty for other events."""
        return self.step_clock or self.drift_clock or ""


@dataclass(frozen=True)
class ClockChange:
    """What is to be done to a clock at an instant."""

    number: int
    """Place of its event in the timeline."""
    at_ns: int
    by_ns: int
    """Time by which the clock is set forward; negative: back."""
    ppb: int | None
    """Rate in parts per 10^9 at which the clock is fast from then on; negative: slow; None: the rate stays."""


def clock_changes(events: Sequence[Event], machine: str) -> list[ClockChange]:
    """What events do to the clock of `machine`, in time. These are valid."""
    found = []
    for number, event in enumerate(events):
        if event.clock_of != machine:
            continue
        by_ns, end_ns = (event.forward or 0) - (event.back or 0), event.ends_ns()
        rate = None if event.verb == STEP else (event.fast or 0) - (event.slow or 0)
        found.append(ClockChange(number, event.at, by_ns, rate))
        if end_ns is not None:
            found.append(ClockChange(number, end_ns, -by_ns, None if rate is None else 0))
    return sorted(found, key=lambda change: change.at_ns)


def check_clock_fields(event: Event, verb: str, path: Path) -> Iterator[Invalid]:
    """Fields that do not go with what an event does to a clock."""
    for of, ways in _WAYS.items():
        has = [name for name in ways if getattr(event, name) is not None]
        if verb != of:
            for name in has:
                yield Invalid((*path, name), f"{verb} has no {name}", f"{name} together with {of}")
        elif len(has) != 1:
            yield Invalid(path, f"{verb} has either {ways[0]} or {ways[1]}", f"one of {' and '.join(ways)}")


def check_clocks(events: Sequence[Event], topology: Topology, workloads: Sequence[WorkloadBase]) -> Iterator[Invalid]:
    """Invalid events on clocks, in their order. All have passed `check_clock_fields`."""
    until: dict[str, tuple[int, int]] = {}
    for number, event in sorted(enumerate(events), key=lambda item: item[1].at):
        machine = event.clock_of
        if not machine:
            continue
        path: Path = ("timeline", number, event.verb or "")
        wrong = next(check_carried_out(machine, event, events, topology, workloads, path), None)
        if wrong is not None:
            yield wrong
        elif event.verb == DRIFT:
            if machine in until and event.at < until[machine][0]:
                what = f"the clock of {machine!r} drifts already, by timeline.{until[machine][1]}"
                yield Invalid(path, what, "after the time of its for")
            until[machine] = (event.ends_ns() or TIME.most, number)
