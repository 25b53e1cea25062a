# SPDX-License-Identifier: Apache-2.0
"""Events of a timeline on programs: which programs and machines they meet, and what does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from sundial.model.invalid import Invalid, Path
from sundial.model.program_events import KILL, PROGRAM_VERBS, RESTART, check_order
from sundial.model.timeline import Event

if TYPE_CHECKING:
    from sundial.workloads.command.model import Program

Numbered = tuple[int, Event]
"""An event with its place in the timeline."""


def program_events(events: Sequence[Event]) -> Iterator[Numbered]:
    """Those that meet programs."""
    return ((number, event) for number, event in enumerate(events) if event.verb in PROGRAM_VERBS)


def machines_of(event: Event, program: Program) -> tuple[str, ...]:
    """Where an event meets its program."""
    return program.on if event.on is None else event.on


def events_on(events: Sequence[Event], programs: Mapping[str, Program], machine: str) -> Iterator[Numbered]:
    """Those that a machine carries out, for these programs."""
    for number, event in program_events(events):
        program = programs.get(event.program)
        if program is not None and machine in machines_of(event, program):
            yield number, event


def check_events(events: Sequence[Event], programs: Mapping[str, Program]) -> Iterator[Invalid]:
    """Invalid events in their order, each with its first error. `programs`: of all workloads."""
    found = [
        first
        for number, event in program_events(events)
        if (first := next(_check_event(event, programs, ("timeline", number)), None)) is not None
    ]
    yield from found
    if found:
        return
    for name, program in programs.items():
        for machine in program.on:
            own = [(number, event) for number, event in events_on(events, programs, machine) if event.program == name]
            yield from check_order(own, machine)


def _check_event(event: Event, programs: Mapping[str, Program], path: Path) -> Iterator[Invalid]:
    verb = event.verb or ""
    program = programs.get(event.program)
    if program is None:
        known = ", ".join(programs) or "programs of a workload with app: command; this scenario has none"
        yield Invalid((*path, verb), f"there is no program {event.program!r}", known)
        return
    for machine in event.on or ():
        if machine not in program.on:
            yield Invalid((*path, "on"), f"{event.program!r} does not run on {machine!r}", ", ".join(program.on))
    if program.role == "job" and (verb == RESTART or (verb == KILL and event.for_ is not None)):
        yield Invalid((*path, verb), f"{event.program!r} is a job, which runs once", "a program with role: service")
    if event.after is None:
        return
    source = programs.get(event.after.program)
    if source is None:
        what = f"there is no program {event.after.program!r}"
        yield Invalid((*path, "after", "program"), what, ", ".join(programs))
        return
    for machine in machines_of(event, program):
        if machine not in source.on:
            what = f"{event.program!r} runs on {machine!r}, {event.after.program!r} on {', '.join(source.on)}"
            yield Invalid((*path, "after", "program"), what, "a program of the same machine, or at: TIME")
