# SPDX-License-Identifier: Apache-2.0
"""What each machine recorded of its programs against its job and the scenario: pure, of records and bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pydantic import ValidationError

from sundial.model.machine_events import offs_ns
from sundial.model.program_events import EndSignal, Signal
from sundial.model.timeline import Event
from sundial.observe.programs import STREAMS, fnv1a
from sundial.seams.samples import Line
from sundial.verify.findings import Finding
from sundial.workloads.command.model import Command, Program, Text

RECORD, EVENT, CLOCK, AMOUNT = "program", "event", "clock", "amount"
_NUMBER = re.compile(r"[+-]?\d{1,18}(?:\.\d{1,18})?", re.ASCII)
_FRACTION = Decimal("1e-9")
"""Of figures, as FIGURES has them."""
NS_PER_MS = 1_000_000


@dataclass(frozen=True)
class Met:
    """What a machine recorded of an event. Times in ns since zero of the run."""

    number: int
    name: str
    verb: str
    due_ns: int
    """By the machine's own zero, which under the real clock is when its programs could start."""
    late_ns: int
    at_ns: int
    state: str
    met: bool
    signal: str | None = None
    """That of a kill, as the timeline has it."""

    @classmethod
    def of(cls, record: Mapping[str, Any], zero_ns: int, signal: str | None = None) -> Met:
        """As recorded, with clock readings."""
        number, name, verb, state = (record[field] for field in ("number", "name", "verb", "state"))
        at_ns = record["at"] - zero_ns
        return cls(number, name, verb, record["due"], record["late"], at_ns, state, record["met"], signal)

    @property
    def was_due_ns(self) -> int:
        """When it was due, on the axis of `at_ns`."""
        return self.at_ns - self.late_ns

    @property
    def ends(self) -> bool:
        """Whether programs end by it."""
        return self.verb in ("kill", "restart")


@dataclass(frozen=True)
class Life:
    """From one start of a program to its end. Times in ns since zero of the run."""

    start_ns: int
    ready_ns: int | None
    end_ns: int
    status: int | None
    signal: int | None

    @classmethod
    def of(cls, record: Mapping[str, Any], zero_ns: int) -> Life:
        """As recorded, with clock readings."""
        ready_ns = None if record["ready"] is None else record["ready"] - zero_ns
        return cls(record["start"] - zero_ns, ready_ns, record["end"] - zero_ns, record["status"], record["signal"])

    @property
    def ended(self) -> str:
        """Its end in words."""
        return ended({"status": self.status, "signal": self.signal})


@dataclass(frozen=True)
class Ran:
    """One program on one machine, as recorded."""

    machine: str
    name: str
    program: Program
    lives: Sequence[Life]
    """One, and another for each time that an event started it again."""
    record: Mapping[str, Any]
    events: Sequence[Met] = ()
    """What the timeline did to it, in time."""

    @property
    def start_ns(self) -> int:
        """Its first start."""
        return self.lives[0].start_ns

    @property
    def ready_ns(self) -> int | None:
        """When it was first ready."""
        return next((life.ready_ns for life in self.lives if life.ready_ns is not None), None)

    @property
    def end_ns(self) -> int:
        """Its last end."""
        return self.lives[-1].end_ns

    def lives_at(self, at_ns: int) -> bool:
        """Whether it runs at an instant."""
        return any(life.start_ns <= at_ns <= life.end_ns for life in self.lives)

    def serves_at(self, at_ns: int) -> bool:
        """Whether it is ready at an instant."""
        return any(life.ready_ns is not None and life.ready_ns <= at_ns <= life.end_ns for life in self.lives)

    def hits(self, life: Life) -> list[Met]:
        """The events that sent it a signal that ends programs, in a life."""
        return [each for each in self.events if each.ends and life.start_ns <= each.at_ns <= life.end_ns]

    def row(self, field: str, expected: object, seen: object) -> Finding:
        """A finding about it."""
        return Finding(None, f"program {self.machine} {self.name} {field}", str(expected), str(seen))


def are_records(records: Sequence[Mapping[str, Any]]) -> bool:
    """Whether all those of programs, their outputs and events have the fields of their type."""
    try:
        for record in records:
            if record["type"] in (RECORD, EVENT, CLOCK, AMOUNT, "output"):
                Line.validate_python(record)
    except ValidationError:
        return False
    return True


def read_records(
    workload: Command,
    machine: str,
    zero_ns: int,
    records: Sequence[Mapping[str, Any]],
    events: Sequence[Event] = (),
) -> tuple[list[Ran], list[Finding]]:
    """The programs of a machine, with what events did to them; a finding where they are not those of the scenario, each
    once and in order. A machine records them when all have ended: one whose power is cut before has no records."""
    found = [each for each in records if each["type"] == RECORD]
    planned = [(name, workload.programs[name].role) for name, where in workload.instances if where == machine]
    seen = [(str(each.get("name")), str(each.get("role"))) for each in found]
    if not seen and machine in offs_ns(events):
        return [], []
    if seen != planned:
        words = [", ".join(f"{role} {name}" for name, role in each) or "none" for each in (planned, seen)]
        return [], [Finding(None, f"program {machine} records", words[0], words[1])]
    met = [Met.of(each, zero_ns, _signal(events, each)) for each in records if each["type"] == EVENT]
    ran = [
        Ran(
            machine,
            name,
            workload.programs[name],
            [Life.of(life, zero_ns) for life in [*each.get("before", ()), each]],
            each,
            [event for event in met if event.met and event.name == name],
        )
        for (name, _), each in zip(planned, found, strict=True)
    ]
    return ran, []


def _signal(events: Sequence[Event], record: Mapping[str, Any]) -> str | None:
    """The signal of a kill."""
    number = record["number"]
    return (events[number].signal or "KILL") if record["verb"] == "kill" and number < len(events) else None


def check_ran(ran: Ran, outputs: Mapping[tuple[str, str], bytes]) -> Iterator[Finding]:
    """One program: its times, its end and its outputs. `outputs`: all recorded bytes of its machine."""
    yield from _check_times(ran)
    yield from _check_end(ran)
    for stream in STREAMS:
        data = outputs.get((ran.name, stream), b"")
        yield from _check_output(ran, stream, data)
        expected: Text = getattr(ran.program.expect, stream)
        yield from _check_text(ran, stream, expected, data)


def _check_times(ran: Ran) -> Iterator[Finding]:
    service = ran.program.role == "service"
    if service != (ran.ready_ns is not None):
        yield ran.row("ready", "a time" if service else "none", ran.record["ready"])
    steps = [(life.start_ns, life.ready_ns, life.end_ns) for life in ran.lives]
    times = [at_ns for step in steps for at_ns in step if at_ns is not None]
    if times != sorted(times):
        yield ran.row("times", "start, ready, end in order", ", ".join(map(str, times)))
    if ran.program.at is not None and ran.start_ns < ran.program.at:
        yield ran.row("start", f"{ran.program.at} ns or later", f"{ran.start_ns} ns")
    lasted, timeout_ns = ran.end_ns - ran.start_ns, ran.program.timeout * NS_PER_MS
    if ran.record["timed_out"] and lasted < timeout_ns:
        yield ran.row("timed_out", f"after {timeout_ns} ns", f"after {lasted} ns")


def _check_end(ran: Ran) -> Iterator[Finding]:
    expect, record, last = ran.program.expect, ran.record, ran.lives[-1]
    if any((life.status is None) == (life.signal is None) for life in ran.lives):
        yield ran.row("end", "a status or a signal", f"status {last.status}, signal {last.signal}")
    if record["timed_out"]:
        yield ran.row("end", f"within {ran.program.timeout} ms", f"timed out; {last.ended}")
        return
    hits = ran.hits(last)
    if ran.program.role == "service" and not record["stopped"] and not hits:
        gone = "; it went into the background, but a service stays in the foreground"
        how = f"by itself; {last.ended}{gone * bool(record.get('background'))}"
        yield ran.row("end", "when all jobs had ended", how)
        return
    if ran.program.role == "job" and record["stopped"]:
        yield ran.row("end", "by itself", "stopped")
    if expect.signal is not None:
        if last.signal != EndSignal.NUMBERS[expect.signal]:
            yield ran.row("end", f"signal {expect.signal}", last.ended)
    elif expect.status is not None or (ran.program.role == "job" and not hits):
        if last.status != (expect.status or 0):
            yield ran.row("status", expect.status or 0, last.ended)
    elif not record["stopped"] and any(each.signal == "KILL" for each in hits):
        # Without words of the scenario: what the event did to it.
        yield from _killed(ran, last)
    for life in ran.lives[:-1]:
        if any(each.signal == "KILL" for each in ran.hits(life)):
            yield from _killed(ran, life)


def _killed(ran: Ran, life: Life) -> Iterator[Finding]:
    """SIGKILL cannot be caught. A program that had just ended has its own status."""
    if life.signal != Signal.NUMBERS["KILL"] and life.status != 0:
        yield ran.row("end", "signal KILL, of the timeline", life.ended)


def _check_output(ran: Ran, stream: str, data: bytes) -> Iterator[Finding]:
    """The bytes that arrived against the count and the sum that the guest made of them."""
    said = ran.record[stream]
    if said["kept"] != min(said["bytes"], ran.program.keep):
        yield ran.row(f"{stream}.kept", min(said["bytes"], ran.program.keep), said["kept"])
    if len(data) != said["kept"]:
        yield ran.row(stream, f"{said['kept']} bytes", f"{len(data)} bytes")
    elif fnv1a(data) != said["fnv1a"]:
        yield ran.row(stream, f"FNV-1a {said['fnv1a']}", fnv1a(data))


def _check_text(ran: Ran, stream: str, expected: Text, data: bytes) -> Iterator[Finding]:
    text = data.decode("utf-8", "replace")
    if expected.contains is not None and expected.contains not in text:
        yield ran.row(stream, f"contains {expected.contains!r}", _shown(text))
    if expected.matches is not None and re.search(expected.matches, text, re.MULTILINE) is None:
        yield ran.row(stream, f"matches {expected.matches!r}", _shown(text))


def figures_of(ran: Ran, outputs: Mapping[tuple[str, str], bytes]) -> tuple[list[dict[str, Any]], list[Finding]]:
    """Numbers in its outputs, as rows of FIGURES; and figures that have none."""
    rows: list[dict[str, Any]] = []
    findings: list[Finding] = []
    texts = [outputs.get((ran.name, stream), b"").decode("utf-8", "replace") for stream in STREAMS]
    for name, pattern in ran.program.figures.items():
        said = [match[1] for text in texts for match in re.finditer(pattern, text, re.MULTILINE)]
        if not said:
            findings.append(ran.row(f"figure {name}", f"a match of {pattern!r}", "none"))
        for each in said:
            if each is None or not _NUMBER.fullmatch(each):
                findings.append(ran.row(f"figure {name}", "a number", repr(each)))
                continue
            value = Decimal(each).quantize(_FRACTION)
            rows.append({"program": ran.name, "machine": ran.machine, "figure": name, "value": value})
    return rows, findings


def _shown(text: str) -> str:
    return repr(text) if len(text) <= 200 else f"...{text[-200:]!r}"


def ended(record: Mapping[str, Any]) -> str:
    """The end of a program in words."""
    if record.get("signal") is None:
        return f"status {record.get('status')}"
    names = {number: name for name, number in EndSignal.NUMBERS.items()}
    return f"signal {names.get(record['signal'], record['signal'])}"


def check_order(workload: Command, ran: Sequence[Ran]) -> Iterator[Finding]:
    """`after`: each program starts when all that it waits for are ready or have ended, on all machines."""
    by_name: dict[str, list[Ran]] = {}
    for each in ran:
        by_name.setdefault(each.name, []).append(each)
    for each in ran:
        for name in each.program.after:
            for other in by_name.get(name, ()):
                since = other.ready_ns if other.program.role == "service" else other.lives[0].end_ns
                if since is not None and each.start_ns < since:
                    what = f"after {name} of {other.machine}, at {since} ns"
                    yield each.row("start", what, f"at {each.start_ns} ns")
    jobs = [each.end_ns for each in ran if each.program.role == "job"]
    for each in ran:
        if each.record["stopped"] and jobs and each.end_ns < max(jobs):
            yield each.row("end", f"after all jobs, at {max(jobs)} ns", f"at {each.end_ns} ns")
