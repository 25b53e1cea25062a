# SPDX-License-Identifier: Apache-2.0
"""The programs of a run (`app: command`): how each ended, and the last lines of one that failed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from sundial.units import counted

_BEGINNINGS = {kind: b'{"type":"%s"' % kind.encode() for kind in ("program", "event", "clock")}
_TAIL = 4096
_EVENT = ("number", "name", "verb", "due", "late", "state", "met")


def programs_of(run: Path) -> list[dict[str, Any]]:
    """Each program of each machine, in the order of the job; none of a run without any."""
    found = []
    for file in sorted(run.glob("nodes/*/programs")):
        machine = file.parent
        for record in _records(machine / "samples.jsonl", "program"):
            unexpected = record["status"] != 0 if record["role"] == "job" else not record["stopped"]
            found.append(
                {
                    "machine": machine.name,
                    "name": record["name"],
                    "role": record["role"],
                    "status": record["status"],
                    "signal": record["signal"],
                    "timed_out": record["timed_out"],
                    "ms": (record["end"] - record["start"]) / 1e6,
                    "restarts": len(record.get("before", ())),
                    "last_lines": _last_lines(machine, record["name"]) if unexpected else [],
                }
            )
    return found


def events_of(run: Path) -> list[dict[str, Any]]:
    """What the timeline did to programs and to clocks of machines, in time; none of a run without any."""
    found = [
        {"machine": file.parent.name, "name": "clock", **{name: record[name] for name in record if name in _EVENT}}
        for file in run.glob("nodes/*/programs")
        for kind in ("event", "clock")
        for record in _records(file.parent / "samples.jsonl", kind)
        if "due" in record
    ]
    return sorted(found, key=lambda each: (each["due"] + each["late"], each["machine"]))


def _records(samples: Path, kind: str) -> Iterator[dict[str, Any]]:
    if samples.is_file():
        with samples.open("rb") as lines:
            for line in lines:
                if line.replace(b" ", b"").startswith(_BEGINNINGS[kind]):
                    yield json.loads(line)


def _last_lines(machine: Path, name: str) -> list[str]:
    """Of its standard error, then of its standard output if there is none."""
    from sundial.observe.programs import STREAMS, last_lines  # imports polars

    for stream in reversed(STREAMS):
        file = machine / "programs" / f"{name}.{stream}"
        lines = last_lines(file.read_bytes()[-_TAIL:]) if file.is_file() else []
        if lines:
            return lines
    return []


def print_programs(programs: Sequence[dict[str, Any]]) -> None:
    """A line for each, and what a failed one wrote last."""
    for number, each in enumerate(programs):
        end = f"signal {each['signal']}" if each["status"] is None else f"status {each['status']}"
        end = f"timed out, {end}" if each["timed_out"] else end
        end = f"{counted(each['restarts'], 'restart')}, {end}" if each["restarts"] else end
        label = "programs" if number == 0 else ""
        click.echo(f"{label:<8} {each['machine']} {each['name']}: {each['role']}, {end}, {each['ms']:.3f} ms")
        for line in each["last_lines"]:
            click.echo(f"         | {line}")


def print_events(events: Sequence[dict[str, Any]]) -> None:
    """A line for each event on a program or a clock."""
    for number, each in enumerate(events):
        at = f"{each['due'] / 1e6:.3f} ms, {each['late'] / 1e3:.1f} us late"
        failed = "" if each.get("met", True) else f" NOT DONE, it is {each['state']}"
        what = f"{each['verb']}{failed}, {at}"
        click.echo(f"{'events' if number == 0 else '':<8} {each['machine']} {each['name']}: {what}")
