# SPDX-License-Identifier: Apache-2.0
"""An experiment (or a bare topology) as a plan: the fabric's configuration, and for each machine a job and a domain."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sundial.model.experiment import Experiment
from sundial.model.images import IMAGES
from sundial.model.network import Network, Node
from sundial.model.topology import Clock
from sundial.plan.domain import DomainSpec, FrameSockets, MemoryFile, Plugin, RootDisk
from sundial.plan.fabric import fabric_config
from sundial.plan.jobs import build_idle_jobs, build_jobs, encode_job
from sundial.plan.paths import RunPaths
from sundial.plan.request import CALM, Stirring
from sundial.plan.segment import mapped_adapter
from sundial.plan.trace import Function, traced_functions
from sundial.seams.job import Job
from sundial.units import icount_shift

SHALLOW_QUEUES = (7, 2)
"""The last QEMU that was seen with 128 places in the queue of a virtio serial port; 10.0 has 1,024."""
QUEUES_BYTES = 24 << 20
"""A page for each of the 896 places more, of the control queue and the ports of a machine, four at most (17.5 MiB); and
what Debian 13's kernel, which comes with that QEMU, takes more than Debian 12's (5.5 MB)."""


@dataclass(frozen=True)
class Plan:
    """The plan of a run. Machines are in the order of the topology, which is also the fabric's."""

    network: Network
    clock: Clock
    paths: RunPaths
    fabric: dict[str, Any]
    """fabric.json."""
    jobs: dict[str, Job]
    """Jobs by machine; `jobs.encode_job` makes the file."""
    done_machines: tuple[str, ...]
    """Machines whose end ends the run, none that loses its power before; empty for a topology that stays up."""
    traced: Mapping[str, tuple[Function, ...]] = field(default_factory=dict)
    """Functions to trace, by machine; machines without any are not traced."""


@dataclass(frozen=True)
class Boot:
    """The host's part of one machine: its emulator and its boot files."""

    emulator: Path
    kernel: Path
    initrd: Path
    cmdline: str
    kernel_sha256: str
    initrd_sha256: str
    qemu: str = ""
    """The emulator's version."""
    disk: RootDisk | None = None
    """File system that the machine maps."""

    @property
    def files(self) -> list[Path]:
        """Files that QEMU reads."""
        return [self.kernel, self.initrd, *([self.disk.path] if self.disk is not None else [])]


@dataclass(frozen=True)
class TraceFiles:
    """Files of a traced machine's plugin: the trace that it writes, and the points that it reads."""

    trace: Path
    points: Path


@dataclass(frozen=True)
class MachineFiles:
    """Paths of one machine's files; the sockets are for interactive machines."""

    console: Path
    samples: Path
    job: Path
    console_socket: Path | None = None
    exec_socket: Path | None = None
    loopback: Path | None = None
    """Only for machines with a captured loopback."""


def plan_run(experiment: Experiment, paths: RunPaths) -> Plan:
    """The plan of one run. Raises BadInput if its jobs cannot be built."""
    jobs = build_jobs(experiment)
    for job in jobs.values():
        encode_job(job)
    done = tuple(name for name, job in jobs.items() if job.steps and name not in experiment.network.offs_ns)
    fabric = fabric_config(
        experiment.network,
        clock=experiment.clock,
        seed=experiment.seed,
        linger_ns=experiment.scenario.linger,
        deadline_ns=experiment.scenario.deadline,
        done_machines=done,
        paths=paths,
    )
    return Plan(
        experiment.network,
        experiment.clock,
        paths,
        fabric,
        jobs,
        done,
        traced_functions(experiment),
    )


def plan_topology(network: Network, paths: RunPaths, *, clock: Clock, seed: int) -> Plan:
    """The plan of a topology that stays up: no machine ends it."""
    jobs = build_idle_jobs(network, clock=clock, seed=seed)
    fabric = fabric_config(network, clock=clock, seed=seed, linger_ns=0, done_machines=(), paths=paths, by_hand=True)
    return Plan(network, clock, paths, fabric, jobs, ())


def machine_memory(node: Node, qemu: str) -> int:
    """Bytes of the machine's memory under this version of QEMU: its own, and what deeper queues take."""
    release = re.match(r"(\d+)\.(\d+)", qemu)
    deep = release is not None and (int(release[1]), int(release[2])) > SHALLOW_QUEUES
    return node.memory + (QUEUES_BYTES if deep and IMAGES[node.image].fills_queues else 0)


def domain_spec(
    plan: Plan,
    node: Node,
    name: str,
    boot: Boot,
    files: MachineFiles,
    *,
    memory_file: MemoryFile | None = None,
    plugin: Plugin | None = None,
    incoming: bool = False,
    kvm: bool = False,
    policy: Path | None = None,
    run_as: tuple[int, int] | None = None,
) -> DomainSpec:
    """The domain of `node`; libvirt's name of it is `name`."""
    return DomainSpec(
        name=name,
        memory=machine_memory(node, boot.qemu),
        translations_mib=IMAGES[node.image].translations_mib,
        shift=icount_shift(node.mips),
        clock=plan.clock,
        emulator=boot.emulator,
        kernel=boot.kernel,
        initrd=boot.initrd,
        cmdline=boot.cmdline,
        console=files.console,
        samples=files.samples,
        job=files.job,
        nics=tuple(
            FrameSockets(plan.paths.machine_end(nic), plan.paths.fabric_end(nic)) for nic in node.network_adapters
        ),
        mapped=node.mapped is not None,
        disk=boot.disk,
        memory_file=memory_file,
        plugin=plugin,
        console_socket=files.console_socket,
        exec_socket=files.exec_socket,
        loopback=files.loopback,
        incoming=incoming,
        kvm=kvm,
        policy=policy,
        run_as=run_as,
    )


def run_plugin(
    plan: Plan,
    node: Node,
    library: Path,
    *,
    supervisor: int,
    report: Path,
    zero_ns: int,
    trace: TraceFiles | None = None,
    stirring: Stirring = CALM,
) -> Plugin:
    """The plugin of `node` in a run under virtual time: restored with its clock at `zero_ns`."""
    off_ns = plan.network.offs_ns.get(node.name)
    power = () if off_ns is None else (("off", off_ns),)
    traced = () if trace is None else (("trace", str(trace.trace)), ("points", str(trace.points)))
    return Plugin(
        library,
        (
            ("mode", "run"),
            ("shm", str(plan.paths.shm)),
            ("machine", node.index),
            ("nics", len(node.nics)),
            ("shift", icount_shift(node.mips)),
            ("zero", zero_ns),
            ("report", str(report)),
            ("supervisor", supervisor),
            *power,
            *_mapped(plan.network, node),
            *traced,
            *stirring.arguments(),
        ),
    )


def _mapped(network: Network, node: Node) -> tuple[tuple[str, str], ...]:
    if node.mapped is None:
        return ()
    segment = network.segments[node.mapped.segment]
    return ((segment.kind, mapped_adapter(segment, node)),)


def boot_plugin(node: Node, library: Path, *, supervisor: int, report: Path, stirring: Stirring = CALM) -> Plugin:
    """The plugin of a machine booted for a snapshot: it freezes when the guest waits for its job."""
    return Plugin(
        library,
        (
            ("mode", "boot"),
            ("nics", len(node.network_adapters)),
            ("shift", icount_shift(node.mips)),
            ("report", str(report)),
            ("supervisor", supervisor),
            *stirring.arguments(),
        ),
    )


def watch_plugin(library: Path, *, supervisor: int) -> Plugin:
    """The plugin under the real clock: it only ends the machine after its supervisor."""
    return Plugin(library, (("mode", "watch"), ("supervisor", supervisor)))
