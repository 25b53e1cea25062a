# SPDX-License-Identifier: Apache-2.0
"""The same guests with the same busy loop under the same icount, but free: no plugin, no peers, no fabric."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from queue import SimpleQueue

from benchmarks import guests
from benchmarks.context import Cannot
from benchmarks.experiments import echo
from sundial.machines.hypervisor import Machine
from sundial.machines.migration import load_state
from sundial.plan.build import MachineFiles, domain_spec, plan_run
from sundial.plan.domain import MemoryFile, domain_xml
from sundial.plan.jobs import encode_job
from sundial.plan.paths import RunPaths
from sundial.run.places import emulator
from sundial.run.rig import Rig

MARK = "mark "
DEADLINE_S = 120.0
VIRTUAL_S = 2.0

Reading = tuple[float, float]
"""Wall seconds, and what the guest said that its time was then."""


_numbers = itertools.count()


def wall_per_virtual() -> float:
    """Wall seconds for a virtual second, mean of two guests that run side by side. Raises Cannot, SundialError."""
    with tempfile.TemporaryDirectory(prefix="sbench-") as folder:
        return _measure(Path(folder), VIRTUAL_S)


def _measure(folder: Path, virtual_s: float) -> float:
    experiment = echo(folder)
    session, boots = guests.prepared(experiment)
    paths = RunPaths(folder, session.folder(), session.shm())
    plan = plan_run(experiment, paths)
    # Only for its snapshots, which are those of the runs in lock-step.
    rig = Rig(session, plan, boots, paths.sockets, lambda name: folder, SimpleQueue(), cold=False, interactive=False)
    machines: list[Machine] = []
    consoles: list[Path] = []
    # libvirt may take a moment to forget those of the last time.
    number = next(_numbers)
    try:
        for name, snapshot in rig.prepare(lambda text: None).items():
            node = next(node for node in plan.network.nodes if node.name == name)
            job = paths.sockets / f"job-{name}"
            job.write_bytes(encode_job(guests.busy(plan.jobs[name]), zero_ns=snapshot.zero_ns))
            consoles.append(folder / f"{name}.console")
            files = MachineFiles(consoles[-1], folder / f"{name}.samples", job)
            memory = MemoryFile(snapshot.memory, shared=False)
            name_there = session.domain_name(f"{name}-{number}")
            boot = boots[name].started_by(emulator(), session.hypervisor.versions()["qemu"])
            spec = domain_spec(plan, node, name_there, boot, files, memory_file=memory, incoming=True)
            machines.append(session.hypervisor.start(name, domain_xml(spec)))
            load_state(machines[-1], snapshot.state, paths.sockets)
        for machine in machines:
            machine.resume()
        return _slope(consoles, virtual_s)
    finally:
        for machine in machines:
            machine.destroy()
        rig.take_down()


def _slope(consoles: Sequence[Path], virtual_s: float) -> float:
    """Watch the marks of all guests until each has computed for so long; the mean of their slopes."""
    first: dict[Path, Reading] = {}
    last: dict[Path, Reading] = {}
    end = time.monotonic() + DEADLINE_S
    while any(console not in first or last[console][1] - first[console][1] < virtual_s for console in consoles):
        if time.monotonic() > end:
            raise Cannot("the guests that run free do not compute")
        for console in consoles:
            said = _last_mark(console)
            if said is not None and (console not in last or said > last[console][1]):
                last[console] = time.monotonic(), said
                first.setdefault(console, last[console])
        time.sleep(0.002)
    slopes = [(last[each][0] - first[each][0]) / (last[each][1] - first[each][1]) for each in consoles]
    return sum(slopes) / len(slopes)


def _last_mark(console: Path) -> float | None:
    try:
        lines = console.read_text(errors="replace").split("\n")[:-1]
    except OSError:
        return None
    marks = [line.rpartition(MARK)[2].strip() for line in lines if MARK in line]
    return float(marks[-1]) if marks else None
