# SPDX-License-Identifier: Apache-2.0
"""The quickstart after set-up as a user runs it, and the memory of its guests meanwhile."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.command import sundial
from benchmarks.context import Context
from benchmarks.figure import Figure, Outcome, below
from benchmarks.guests import weigh

SUBJECT = "quickstart after set-up"
TARGET, MEMORY_TARGET = below(120.0), below(100.0)
DEADLINE_S = 900.0
WEIGH_S = 0.25


@dataclass
class Quickstart:
    """One run of it."""

    wall_s: float = 0.0
    virtual_s: float = 0.0
    calls: int = 0
    pss: dict[int, int] = field(default_factory=dict)
    """The most that each QEMU weighed, in bytes, shared pages by share."""
    rss: dict[int, int] = field(default_factory=dict)


def measure(context: Context) -> Iterator[Outcome]:
    """Everything: guests, capture, verification, report."""
    turns = context.in_turns({"quickstart": lambda: once(context)}, repeats=1 if context.quick else None)
    yield from turns.unmeasured(SUBJECT)
    for found in turns.found.values():
        yield from _figures(found)


def _figures(found: list[Quickstart]) -> Iterator[Outcome]:
    note = f"{found[0].calls} calls, {found[0].virtual_s:.1f} virtual s"
    yield Figure(SUBJECT, "run, verified, reported", "s", tuple(each.wall_s for each in found), TARGET, note)
    pss = tuple(max(each.pss.values()) / 1e6 for each in found)
    rss = tuple(max(each.rss.values()) / 1e6 for each in found)
    yield Figure(SUBJECT, "memory of the largest guest, Pss", "MB", pss, MEMORY_TARGET, anywhere=True)
    yield Figure(SUBJECT, "memory of the largest guest, Rss", "MB", rss, MEMORY_TARGET, anywhere=True)


def once(context: Context, *options: str) -> Quickstart:
    """One run of it; `options` are further words of the command."""
    number = sum(path.name.startswith("quickstart-") for path in context.folder.iterdir())
    out = context.folder / f"quickstart-{number}"
    found = Quickstart()
    weighed = 0.0

    def look() -> None:
        nonlocal weighed
        if time.monotonic() - weighed < WEIGH_S:
            return
        weighed = time.monotonic()
        for pid in guests_of(out):
            with contextlib.suppress(OSError):
                pss, rss = weigh(pid)
                found.pss[pid] = max(found.pss.get(pid, 0), pss)
                found.rss[pid] = max(found.rss.get(pid, 0), rss)

    arguments = ["run", "quickstart", "--report", "now", "--out", str(out), *options]
    found.wall_s = sundial(arguments, deadline_s=DEADLINE_S, log=context.folder / "log", look=look, poll_s=0.05)
    found.virtual_s = json.loads((out / "run.json").read_text())["time"]["virtual_ns"] / 1e9
    found.calls = json.loads((out / "verify.json").read_text())["calls"]
    return found


def guests_of(out: Path) -> Iterator[int]:
    """The QEMU processes that write into this run's directory."""
    own = str(out.with_name(f".{out.name}.partial")).encode()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            command = (folder / "cmdline").read_bytes()
            if own in command and b"qemu-system" in command.split(b"\0")[0]:
                yield int(folder.name)
