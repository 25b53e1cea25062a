# SPDX-License-Identifier: Apache-2.0
"""Events of the timeline on clocks of machines: each change was made, once, when it was due, and the clock was what the
changes make of it. Pure, of records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sundial.model.clock_events import ClockChange, clock_changes
from sundial.model.timeline import Event
from sundial.verify.findings import Finding
from sundial.workloads.command.verify_records import CLOCK, RECORD

ROUNDING_PPB = 1_000
"""Parts per 10^9 by which Linux' clock may differ from the rate that was set: one unit of its multiplier, 2^-20 for a
counter of 1 GHz, which it adds while it is behind (`timekeeping_adjust`)."""
READ_NS = 1_000
"""A unit of what is computed, and what a drift makes of the time that readings take."""


@dataclass(frozen=True)
class _Reading:
    """A record: what CLOCK_REALTIME was ahead of the machine's records, in ns, before and after a change."""

    number: int | None
    """Place in the timeline; None: the end of all programs."""
    due_ns: int
    late_ns: int
    at_ns: int
    before_ns: int
    after_ns: int
    within_ns: int
    took_ns: int

    @classmethod
    def of(cls, record: Mapping[str, Any], zero_ns: int) -> _Reading:
        return cls(
            record.get("number"), record.get("due", 0), record.get("late", 0), record["at"] - zero_ns,
            record["before"], record["after"], record["within"], record["took"],
        )  # fmt: skip


def check_clocks(
    events: Sequence[Event],
    machine: str,
    records: Sequence[Mapping[str, Any]],
    zero_ns: int,
    late_ns: int | None,
) -> Iterator[Finding]:
    """All changes of one machine's clock. `late_ns`: by how much one may be late; None under the real clock."""
    changes = clock_changes(events, machine)
    found = [_Reading.of(each, zero_ns) for each in records if each["type"] == CLOCK]
    made = [each for each in found if each.number is not None]
    ended = any(each["type"] == RECORD for each in records)
    rate_ppb, before = 0, None
    for place, change in enumerate(changes):
        what = f"clock {machine} timeline.{change.number}"
        if place >= len(made):
            ended_at = "" if not found else f" until {found[-1].at_ns} ns, when all programs had ended"
            if change.number not in {each.number for each in made}:
                yield Finding(None, what, f"changed at {change.at_ns} ns", f"not changed{ended_at}")
            continue
        reading = made[place]
        rates = [rate_ppb, rate_ppb if change.ppb is None else change.ppb]
        yield from _check_change(what, change, reading, max(map(abs, rates)), late_ns)
        yield from _check_rate(what, rate_ppb, before, reading)
        rate_ppb, before = rates[1], reading
    for reading in made[len(changes) :]:
        yield Finding(None, f"clock {machine} timeline.{reading.number}", "no change", f"changed at {reading.at_ns} ns")
    last = [each for each in found if each.number is None]
    due = int(bool(changes) and ended)
    if len(last) != due:
        yield Finding(None, f"clock {machine} end", f"read {due} times", str(len(last)))
    for reading in last:
        yield from _check_rate(f"clock {machine} end", rate_ppb, before, reading)
        if (reading.after_ns, reading.took_ns) != (reading.before_ns, 0):
            seen = f"{reading.before_ns}, and {reading.after_ns} ns after {reading.took_ns} ns"
            yield Finding(None, f"clock {machine} end", "one reading", seen)


def _check_change(
    what: str, change: ClockChange, reading: _Reading, ppb: int, most_ns: int | None
) -> Iterator[Finding]:
    """`ppb`: the largest rate while it was made."""
    if (reading.number, reading.due_ns) != (change.number, change.at_ns):
        seen = f"due at {reading.due_ns} ns, of timeline.{reading.number}"
        yield Finding(None, what, f"due at {change.at_ns} ns", seen)
        return
    off = most_ns is not None and (reading.late_ns > most_ns or reading.at_ns != change.at_ns + reading.late_ns)
    if reading.late_ns < 0 or off:
        expected = f"changed at {change.at_ns} ns, up to {most_ns} ns later"
        yield Finding(None, what, expected, f"at {reading.at_ns} ns, {reading.late_ns} ns late")
    by_ns = reading.after_ns - reading.before_ns
    within_ns = reading.within_ns + reading.took_ns * ppb // 10**9 + 1
    if abs(by_ns - change.by_ns) > within_ns:
        yield Finding(None, what, f"set forward by {change.by_ns} ns, within {within_ns}", f"{by_ns} ns")


def _check_rate(what: str, ppb: int, before: _Reading | None, reading: _Reading) -> Iterator[Finding]:
    """The clock between two readings; before the first change it has no rate to compare with."""
    if before is None:
        return
    lasted_ns = reading.at_ns - reading.took_ns - before.at_ns
    within_ns = before.within_ns + reading.within_ns + READ_NS + lasted_ns * ROUNDING_PPB // 10**9
    expected_ns, seen_ns = lasted_ns * ppb // 10**9, reading.before_ns - before.after_ns
    if abs(seen_ns - expected_ns) > within_ns:
        expected = f"{expected_ns} ns ahead in {lasted_ns} ns, within {within_ns}"
        yield Finding(None, what, expected, f"{seen_ns} ns")
