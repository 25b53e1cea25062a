# SPDX-License-Identifier: Apache-2.0
"""Events of the timeline on programs: each was carried out, once, when it was due, and did what it says. Pure, of
records and bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from sundial.model.machine_events import offs_ns
from sundial.model.program_events import CONTINUE, KILL, PAUSE, Trigger
from sundial.model.timeline import Event
from sundial.observe.programs import STREAMS, pieces
from sundial.units import TIME
from sundial.verify.findings import Finding
from sundial.workloads.command.model import Command
from sundial.workloads.command.model_events import events_on
from sundial.workloads.command.verify_records import EVENT, Met, Ran

_LATE_INSTRUCTIONS = 8_000_000
"""An event of the virtual clock is carried out within so many: the process has a real-time priority, and what it waits
for is a system call of another. Measured: 12,000 to 25,000 as a rule; 500,000 of each program that starts; 5,600,000
of the first connection that a machine opens (256 KiB from `get_random_bytes`)."""
LINE_MOST = 4096
"""Bytes of a line that a machine compares with patterns."""
_OVER = {"pause": "continue", "kill": "start"}
"""What an event with `for` does when its time is over."""
_FITTING = {
    "pause": ("running",),
    "continue": ("paused",),
    "kill": ("running", "paused"),
    "restart": ("running", "paused", "ended"),
    "start": ("ended", "running"),
}


def late_ns(mips: Decimal) -> int:
    """By how much an event may be late on a machine of `mips`."""
    return int(_LATE_INSTRUCTIONS * 1000 / mips)


def check_events(
    events: Sequence[Event],
    workload: Command,
    ran: Sequence[Ran],
    records: Mapping[str, Sequence[Mapping[str, Any]]],
    zeros_ns: Mapping[str, int],
    late_ns: Mapping[str, int],
) -> Iterator[Finding]:
    """All events of a workload. `records`, `zeros_ns`: by machine; `late_ns`: likewise, by how much one may be late;
    empty under the real clock."""
    offs = offs_ns(events)
    for machine in workload.machines:
        met = [Met.of(each, zeros_ns[machine]) for each in records.get(machine, ()) if each["type"] == EVENT]
        met = [each for each in met if each.name in workload.programs]
        here = {each.name: each for each in ran if each.machine == machine}
        for number, event in events_on(events, workload.programs, machine):
            own = [each for each in met if each.number == number]
            met = [each for each in met if each.number != number]
            what = f"event {machine} timeline.{number}"
            program, source = here.get(event.program), here.get(event.after.program if event.after else "")
            if program is not None and (event.after is None or source is not None):
                yield from _check_event(what, event, own, program, late_ns.get(machine))
                if source is not None and event.after is not None and own:
                    yield from _check_trigger(what, event.after, own[0], source, records[machine], zeros_ns[machine])
            elif program is None and event.after is None and event.at + late_ns.get(machine, 0) < offs.get(machine, 0):
                yield from _check_begun(what, event, own)
        for each in met:
            yield Finding(None, f"event {machine} timeline.{each.number}", "none", f"{each.verb} of {each.name}")
    for one in ran:
        yield from _check_lives(one)


def _check_event(what: str, event: Event, own: Sequence[Met], program: Ran, most_ns: int | None) -> Iterator[Finding]:
    """One event on one machine. `own`: what was recorded of it; `most_ns`: by how much it may be late."""
    if not own:
        due = "after its line or end" if event.after else f"at {TIME.show(event.at)}"
        last = TIME.show(program.end_ns)
        yield Finding(None, what, f"{event.words}, {due}", f"nothing until all programs had ended, at {last}")
        return
    first, rest = own[0], own[1:]
    verbs = [each.verb for each in own]
    over = [_OVER[event.verb or ""]] if event.for_ is not None and first.met else []
    if verbs not in ([event.verb], [event.verb, *over]) or any(each.name != event.program for each in own):
        seen = ", ".join(f"{each.verb} of {each.name}" for each in own)
        yield Finding(None, what, ", ".join([str(event.verb), *over]), seen)
        return
    if not first.met:
        yield Finding(None, what, f"{event.words}: a program that is {_states(first.verb)}", f"it is {first.state}")
    if event.after is None and first.due_ns != event.at:
        yield Finding(None, what, f"due at {event.at} ns", f"{first.due_ns} ns")
    if rest and rest[0].due_ns != first.due_ns + (event.for_ or 0):
        yield Finding(None, what, f"over at {first.due_ns + (event.for_ or 0)} ns", f"{rest[0].due_ns} ns")
    for each in own:
        off = most_ns is not None and (each.was_due_ns != each.due_ns or each.late_ns > most_ns)
        if each.late_ns < 0 or off:
            expected = f"{each.verb} at {each.due_ns} ns, up to {most_ns} ns later"
            yield Finding(None, what, expected, f"at {each.at_ns} ns, {each.late_ns} ns late")
        if each.verb in (PAUSE, CONTINUE, KILL) and each.met != (each.state in _FITTING[each.verb]):
            yield Finding(None, what, f"{each.verb} of a program that is {_states(each.verb)}", f"it is {each.state}")


def _check_begun(what: str, event: Event, own: Sequence[Met]) -> Iterator[Finding]:
    """An event on a machine that was off before it recorded its programs."""
    if not own or (own[0].verb, own[0].name, own[0].due_ns) != (event.verb, event.program, event.at):
        seen = ", ".join(f"{each.verb} of {each.name} due at {each.due_ns} ns" for each in own) or "none"
        yield Finding(None, what, f"{event.words}, due at {event.at} ns, before the machine was off", seen)


def _states(verb: str) -> str:
    return " or ".join(_FITTING[verb])


def _check_trigger(
    what: str, after: Trigger, met: Met, source: Ran, records: Sequence[Mapping[str, Any]], zero_ns: int
) -> Iterator[Finding]:
    """An event does not come before what it waits for."""
    came_ns = met.was_due_ns - (after.delay or 0)
    if after.line is None:
        if came_ns < source.lives[0].end_ns:
            yield Finding(None, what, f"due after the end of {source.name}, at {source.lives[0].end_ns} ns",
                          f"{met.was_due_ns} ns")  # fmt: skip
        return
    if any(source.record[stream]["kept"] < source.record[stream]["bytes"] for stream in STREAMS):
        return  # The line may be among what was only counted.
    lines = (_first_line(after.line, pieces(records, source.name, stream)) for stream in STREAMS)
    seen = [at - zero_ns for at in lines if at is not None]
    if not seen or came_ns < min(seen):
        expected = f"due after a line of {source.name} that matches {after.line!r}"
        yield Finding(None, what, expected, f"{met.was_due_ns} ns; the line: {f'{min(seen)} ns' if seen else 'none'}")


def _first_line(pattern: str, written: Sequence[tuple[int, bytes]]) -> int | None:
    """The clock reading of the piece with the end of the first line that matches; None: no line does. A line also
    begins with a piece: the program may have been started again after half of one."""
    rest = ""
    for at, data in [*written, (written[-1][0] if written else 0, b"\n")]:
        text = data.decode("latin-1").replace("\0", "?")
        *lines, rest = (rest + text).split("\n")
        if any(re.search(pattern, line[:LINE_MOST]) for line in [*lines, *text.split("\n")[:-1]]):
            return at
    return None


def _check_lives(ran: Ran) -> Iterator[Finding]:
    """A program starts again only because of an event."""
    starts = sorted(each.at_ns for each in ran.events if each.verb in ("restart", "start"))
    for number, life in enumerate(ran.lives[1:]):
        if number >= len(starts) or life.start_ns < starts[number]:
            expected = f"start {number + 2} after the event at {starts[number]} ns" if number < len(starts) else "none"
            yield ran.row("lives", expected, f"started again at {life.start_ns} ns")


def pauses(ran: Ran) -> list[tuple[int, int]]:
    """When it was stopped, and when that was over, in ns since zero of the run."""
    found: list[tuple[int, int]] = []
    since: int | None = None
    for each in ran.events:
        if each.verb == "pause":
            since = each.at_ns
        elif since is not None and (each.verb in ("continue", "restart") or each.signal == "KILL"):
            found.append((since, each.was_due_ns))
            since = None
    if since is not None:
        found.append((since, ran.end_ns))
    return found
