# SPDX-License-Identifier: Apache-2.0
"""One run of a sweep, in a worker's process: made, verified, and put into the store."""

from __future__ import annotations

import json
import resource
import secrets
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any, Literal

from sundial.errors import RunFailed
from sundial.plan.request import Progress
from sundial.reproduce.worker import Ended, Making, Task
from sundial.shelf.entries import read_entry
from sundial.shelf.remove import remove_captures
from sundial.sweep.result import Result, Verdict, repeating
from sundial.sweep.store import Store

Keep = Literal["all", "failed", "none"]
"""Runs whose captures are kept."""


@dataclass(frozen=True)
class SweepTask(Task):
    """A run with its key."""

    key: str = ""
    over: Mapping[str, Any] = field(default_factory=dict)
    """What the key is over."""
    verifier: str = ""
    keep: Keep = "failed"
    worker: str | None = None
    """Name of the worker of a cluster that makes it."""


@dataclass(frozen=True)
class Put(Ended):
    """A run that is in the store. With `error`: it failed for the host's reasons and is not kept."""

    differing: tuple[str, ...] = ()
    """Files that differ from another making of the run."""


@dataclass(frozen=True)
class SweepMaking(Making):
    """Makes runs for a store. `report` is called for runs whose captures stay."""

    store: Path = Path()

    def make(self, task: Task, progress: Progress) -> Put:
        """Raises BadInput, HostLacks, Interrupted."""
        assert isinstance(task, SweepTask)
        store = Store(self.store)
        with store.making() as folder:
            made = folder / "made"
            began, cpu_s = time.monotonic(), _cpu_s()
            request = replace(task.request, captures=folder, out=made)
            verified: Mapping[str, Any] = {}
            failure: RunFailed | None = None
            try:
                self.run(request, progress)
                verified = self.verify(made)
            except RunFailed as error:
                failure = error
            if failure is not None and (failure.whose == "host" or not (made / "run.json").is_file()):
                return Put("failed", error=failure.message)
            run = _read(made / "run.json")
            changed = changed_meanwhile(task.over, run)
            if changed is not None:
                return Put("failed", error=f"{changed} was made again meanwhile")
            result = result_from(task, run, verified, failure)
            kept = task.keep == "all" or (task.keep == "failed" and result.verdict != "pass")
            if kept:
                self.report(made)
            else:
                drop_captures(made)
            spent = {"wall_s": round(time.monotonic() - began, 3), "cpu_s": round(_cpu_s() - cpu_s, 3)}
            maker = {"name": socket.gethostname(), "worker": task.worker, "making": secrets.token_hex(8)}
            result = replace(result, host={**maker, **spent})
            found = store.put(result, made, captures=kept)
            return Put(result.verdict, result.calls, result.mismatches, differing=tuple(found.differing))


def changed_meanwhile(over: Mapping[str, Any], run: Mapping[str, Any]) -> str | None:
    """What a run was made of that its key does not say, from run.json; None: nothing."""
    topology, images = run["topology"], run["images"]
    for name, machine in over["machines"].items():
        image = topology["machines"][name].get("image") or topology["defaults"]["image"]
        booted = run.get("boots", {}).get(name) or images[image]["sha256"]
        if any(booted[part] != machine[part] for part in ("kernel", "initrd")):
            return f"what {name} boots"
    for name in ("plugin", "fabric"):
        if not over["programs"][name].startswith(run["versions"].get(name) or over["programs"][name]):
            return f"the {name}"
    return None


def result_from(
    task: SweepTask, run: Mapping[str, Any], verified: Mapping[str, Any], failure: RunFailed | None
) -> Result:
    """The result of a run from its documents."""
    if failure is not None:
        return Result(task.key, task.verifier, "failed", first=failure.message, whose=failure.whose)
    verdict: Verdict = "fail" if verified.get("verdict") == "fail" else "pass"
    problem = next(iter(verified.get("problems") or ()), None)
    words = None if problem is None else "{field}: expected {expected}, seen {seen}".format_map(problem)
    return Result(
        task.key,
        task.verifier,
        verdict,
        int(verified.get("calls") or 0),
        int(verified.get("mismatches") or 0),
        sum((verified.get("retransmissions") or {}).values()),
        (run.get("time") or {}).get("virtual_ns"),
        words,
        None,
        repeating(run),
    )


def drop_captures(made: Path) -> None:
    """Remove the captures of a run directory, if it has any."""
    entry = read_entry(made)
    if entry is not None:
        remove_captures(entry, date.today())


def _cpu_s() -> float:
    """Seconds of this process and of the processes that it has ended."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in spent)


def _read(path: Path) -> dict[str, Any]:
    value = json.loads(path.read_bytes())
    assert isinstance(value, dict)
    return value
