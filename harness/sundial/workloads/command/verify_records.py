# SPDX-License-Identifier: Apache-2.0
"""What each machine recorded of its programs against its job and the scenario: pure, of records and bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sundial.observe.programs import STREAMS, fnv1a
from sundial.verify.findings import Finding
from sundial.workloads.command.model import Command, Program, Text
from sundial.workloads.command.model_fields import Signal

RECORD = "program"
NS_PER_MS = 1_000_000


@dataclass(frozen=True)
class Ran:
    """One program on one machine, as recorded. Times in ns since zero of the run."""

    machine: str
    name: str
    program: Program
    start_ns: int
    ready_ns: int | None
    end_ns: int
    record: Mapping[str, Any]

    def row(self, field: str, expected: object, seen: object) -> Finding:
        """A finding about it."""
        return Finding(None, f"program {self.machine} {self.name} {field}", str(expected), str(seen))


def read_records(
    workload: Command, machine: str, zero_ns: int, records: Iterable[Mapping[str, Any]]
) -> tuple[list[Ran], list[Finding]]:
    """The programs of a machine; a finding where they are not those of the scenario, each once and in order."""
    found = [each for each in records if each["type"] == RECORD]
    planned = [(name, workload.programs[name].role) for name, where in workload.instances if where == machine]
    seen = [(str(each.get("name")), str(each.get("role"))) for each in found]
    if seen != planned:
        words = [", ".join(f"{role} {name}" for name, role in each) or "none" for each in (planned, seen)]
        return [], [Finding(None, f"program {machine} records", words[0], words[1])]
    ran = [
        Ran(
            machine,
            name,
            workload.programs[name],
            each["start"] - zero_ns,
            None if each["ready"] is None else each["ready"] - zero_ns,
            each["end"] - zero_ns,
            each,
        )
        for (name, _), each in zip(planned, found, strict=True)
    ]
    return ran, []


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
    times = [ran.start_ns, *([ran.ready_ns] if ran.ready_ns is not None else []), ran.end_ns]
    if times != sorted(times):
        yield ran.row("times", "start, ready, end in order", ", ".join(map(str, times)))
    if ran.program.at is not None and ran.start_ns < ran.program.at:
        yield ran.row("start", f"{ran.program.at} ns or later", f"{ran.start_ns} ns")
    lasted, timeout_ns = ran.end_ns - ran.start_ns, ran.program.timeout * NS_PER_MS
    if ran.record["timed_out"] and lasted < timeout_ns:
        yield ran.row("timed_out", f"after {timeout_ns} ns", f"after {lasted} ns")


def _check_end(ran: Ran) -> Iterator[Finding]:
    expect, record = ran.program.expect, ran.record
    status, signal = record["status"], record["signal"]
    if (status is None) == (signal is None):
        yield ran.row("end", "a status or a signal", f"status {status}, signal {signal}")
    if record["timed_out"]:
        yield ran.row("end", f"within {ran.program.timeout} ms", f"timed out; {ended(record)}")
        return
    if ran.program.role == "service" and not record["stopped"]:
        yield ran.row("end", "when all jobs had ended", f"by itself; {ended(record)}")
        return
    if ran.program.role == "job" and record["stopped"]:
        yield ran.row("end", "by itself", "stopped")
    if expect.signal is not None:
        if signal != Signal.NUMBERS[expect.signal]:
            yield ran.row("end", f"signal {expect.signal}", ended(record))
    elif (expect.status is not None or ran.program.role == "job") and status != (expect.status or 0):
        yield ran.row("status", expect.status or 0, ended(record))


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


def _shown(text: str) -> str:
    return repr(text) if len(text) <= 200 else f"...{text[-200:]!r}"


def ended(record: Mapping[str, Any]) -> str:
    """The end of a program in words."""
    if record.get("signal") is None:
        return f"status {record.get('status')}"
    names = {number: name for name, number in Signal.NUMBERS.items()}
    return f"signal {names.get(record['signal'], record['signal'])}"


def check_order(workload: Command, ran: Sequence[Ran]) -> Iterator[Finding]:
    """`after`: each program starts when all that it waits for are ready or have ended, on all machines."""
    by_name: dict[str, list[Ran]] = {}
    for each in ran:
        by_name.setdefault(each.name, []).append(each)
    for each in ran:
        for name in each.program.after:
            for other in by_name.get(name, ()):
                since = other.ready_ns if other.program.role == "service" else other.end_ns
                if since is not None and each.start_ns < since:
                    what = f"after {name} of {other.machine}, at {since} ns"
                    yield each.row("start", what, f"at {each.start_ns} ns")
    jobs = [each.end_ns for each in ran if each.program.role == "job"]
    for each in ran:
        if each.record["stopped"] and jobs and each.end_ns < max(jobs):
            yield each.row("end", f"after all jobs, at {max(jobs)} ns", f"at {each.end_ns} ns")
