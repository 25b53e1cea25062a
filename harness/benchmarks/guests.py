# SPDX-License-Identifier: Apache-2.0
"""Guests in lock-step for a benchmark: put up by the same `Rig` that runs use, with stopwatches around it."""

from __future__ import annotations

import contextlib
import resource
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import Empty, SimpleQueue

from benchmarks.context import Cannot
from benchmarks.counts import Counts
from sundial.machines.bootfiles import BootFiles, boot_files
from sundial.machines.hypervisor import LifecycleEvent
from sundial.machines.images import Images
from sundial.machines.shm import lookahead_ns
from sundial.model.experiment import Experiment
from sundial.plan.build import Plan, plan_run
from sundial.plan.paths import RunPaths
from sundial.plan.request import EMBEDDED
from sundial.run.rig import Queue, Rig
from sundial.run.session import Session, open_session
from sundial.run.supervisor import FabricEnded, FabricFinished, JobDone
from sundial.run.traces import Traces
from sundial.seams.job import Job, Service

DEADLINE_S = 600.0
LEAVE_S = 3.0

SCRIPTED = "echo-server"
"""The application whose place the busy loop takes: the job's `files` are written before services start."""

BUSY_LOOP = """\
#!/bin/sh
echo ready
while :; do
    i=0
    while [ $i -lt 2000 ]; do i=$((i + 1)); done
    read -r up idle </proc/uptime
    echo "mark $up"
done
"""
"""Never idle; says on the console now and then how late it is there."""

Change = Callable[[Job], Job]


@dataclass
class Times:
    """One run: wall seconds from its machines being started on, and the virtual time it covered."""

    virtual_s: float = 0.0
    started_s: float = 0.0
    """Until all machines were restored or started, and paused."""
    first_done_s: float | None = None
    """Until the first machine said done."""
    run_s: float = 0.0
    """From resuming the machines to the end of the run."""
    cpu_s: float = 0.0
    """Processor time of machines and fabric, all of it: what a shared host's load does not change much."""
    counts: Counts = field(default_factory=Counts)
    """Of all machines together."""
    lookahead_ns: int | None = None
    pss: dict[str, int] = field(default_factory=dict)
    """Bytes of each machine's QEMU, shared pages by share, near the end."""
    rss: dict[str, int] = field(default_factory=dict)


def as_it_is(job: Job) -> Job:
    return job


def idle(job: Job) -> Job:
    """Services are up, nothing calls."""
    return job.model_copy(update={"steps": ()})


def busy(job: Job) -> Job:
    """One process that never sleeps."""
    files = {f"/usr/lib/sundial/{SCRIPTED}": BUSY_LOOP}
    services = (Service(app=SCRIPTED, options={}),)
    return job.model_copy(update={"steps": (), "files": files, "services": services})


def timed(
    experiment: Experiment, folder: Path, change: Change = as_it_is, *, linger_s: float = 0.001, keep: bool = False
) -> Times:
    """Run `experiment` with its jobs changed, to `linger_s` after all that have to be are done.

    Captures go to `folder`/wire and stay there where `keep` says so. Raises Cannot, RunFailed.
    """
    session, boots = prepared(experiment)
    plan = _plan(experiment, session, folder, change, linger_s)
    queue: Queue = SimpleQueue()
    nodes = _nodes(folder)
    traces = _traces(experiment, session, plan)
    rig = Rig(session, plan, boots, plan.paths.sockets, nodes, queue, cold=False, interactive=False, traces=traces)
    times = Times()
    used = _cpu_of_children()
    left: set[str] = set()
    try:
        snapshots = rig.prepare(_silent)
        rig.start_fabric()
        began = time.monotonic()
        rig.start_machines(snapshots, ())
        times.started_s = time.monotonic() - began
        times.lookahead_ns = lookahead_ns(plan.paths.shm)
        resumed = time.monotonic()
        rig.resume()
        left.update(rig.machines)
        _watch(rig, queue, times, began, left)
        times.run_s = time.monotonic() - resumed
    finally:
        _leave(rig, queue, left)
        times.counts = Counts.of(rig.report(name) for name in rig.machines)
        rig.take_down()
        times.cpu_s = _cpu_of_children() - used
        if not keep:
            shutil.rmtree(folder / "wire", ignore_errors=True)
    return times


def prepared(experiment: Experiment) -> tuple[Session, dict[str, BootFiles]]:
    """The session of this process, and what each machine of the experiment boots."""
    session = open_session(EMBEDDED)
    known = Images(session.places.checkout)
    nodes = experiment.network.nodes
    images = {name: known.ensure(name, _silent) for name in dict.fromkeys(node.image for node in nodes)}
    copies = session.folder()
    return session, {node.name: boot_files(node, images[node.image], copies) for node in nodes}


def _traces(experiment: Experiment, session: Session, plan: Plan) -> Traces | None:
    """Of an experiment that is traced."""
    if not plan.traced:
        return None
    known = Images(session.places.checkout)
    names = dict.fromkeys(node.image for node in experiment.network.nodes)
    return Traces(plan, {name: known.ensure(name, _silent) for name in names}, plan.paths.sockets)


def _plan(experiment: Experiment, session: Session, folder: Path, change: Change, linger_s: float) -> Plan:
    (folder / "wire").mkdir(parents=True, exist_ok=True)
    paths = RunPaths((folder / "wire").resolve(), session.folder(), session.shm())
    plan = plan_run(experiment, paths)
    jobs = {name: change(job) for name, job in plan.jobs.items()}
    callers = tuple(name for name, job in jobs.items() if job.steps) or tuple(jobs)
    fabric = {**plan.fabric, "done_machines": list(callers), "linger_ns": round(linger_s * 1e9)}
    return replace(plan, jobs=jobs, fabric=fabric, done_machines=callers)


def _watch(rig: Rig, queue: Queue, times: Times, began: float, left: set[str]) -> None:
    """Until the fabric says that the run is over; `left` are the machines that are still there."""
    weighed = 0.0
    while True:
        now = time.monotonic()
        if now - began > DEADLINE_S:
            raise Cannot(f"the run did not end within {DEADLINE_S:g} s")
        if now - weighed > 1.0:
            weighed = now
            _weigh(rig, times)
        with contextlib.suppress(Empty):
            event = queue.get(timeout=0.2)
            if isinstance(event, JobDone):
                if event.status != 0:
                    raise Cannot(f"{event.machine} failed: {' / '.join(rig.console_tail(event.machine)[-2:])}")
                times.first_done_s = times.first_done_s or time.monotonic() - began
            elif isinstance(event, FabricFinished):
                times.virtual_s = event.virtual_ns / 1e9
                return
            elif isinstance(event, FabricEnded):
                raise Cannot(f"the fabric ended: {event.said}")
            elif isinstance(event, LifecycleEvent) and (ended := rig.ended(event)) is not None:
                # The last of them may be gone before the fabric has said that the run is over.
                if ended.report != "finished":
                    raise Cannot(f"{ended.machine} ended: {ended.how}, report {rig.report(ended.machine) or None}")
                left.discard(ended.machine)


def _leave(rig: Rig, queue: Queue, left: set[str]) -> None:
    """Machines under virtual time leave by themselves when the run is over."""
    end = time.monotonic() + LEAVE_S
    while left and time.monotonic() < end:
        with contextlib.suppress(Empty):
            event = queue.get(timeout=0.1)
            if isinstance(event, LifecycleEvent) and rig.ended(event) is not None:
                left.discard(event.machine)


def _cpu_of_children() -> float:
    """Of those that have ended and were waited for: QEMU becomes this process's child when libvirt lets go of it."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _weigh(rig: Rig, times: Times) -> None:
    for name, machine in rig.machines.items():
        pid = machine.pid()
        if pid is not None:
            with contextlib.suppress(OSError):
                times.pss[name], times.rss[name] = weigh(pid)


def weigh(pid: int) -> tuple[int, int]:
    """Pss and Rss of a process, in bytes. Raises OSError."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    found = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if line.startswith(("Pss:", "Rss:"))}
    return found["Pss"], found["Rss"]


def _nodes(folder: Path) -> Callable[[str], Path]:
    def node(name: str) -> Path:
        path = folder / "nodes" / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    return node


def _silent(text: str) -> None:
    return
