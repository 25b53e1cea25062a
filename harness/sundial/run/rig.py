# SPDX-License-Identifier: Apache-2.0
"""A plan in execution: the fabric and the machines of one topology, from start to end.

Threads put events into one queue, and the loop of the rig's owner takes them out.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from sundial.errors import BadInput, RunFailed
from sundial.machines import cores
from sundial.machines.bootfiles import BootFiles
from sundial.machines.confinement import hand_over, take_back
from sundial.machines.console import last_words
from sundial.machines.hypervisor import Happening, LifecycleEvent, Machine, MachineState, MonitorError
from sundial.machines.migration import MigrationFailed, load_state
from sundial.machines.snapshots import Snapshot, SnapshotStore
from sundial.machines.waiting import DeadlineMissed, in_parallel, wait_until
from sundial.model.network import Node
from sundial.plan.build import Boot, MachineFiles, Plan, domain_spec, run_plugin, watch_plugin
from sundial.plan.domain import DomainSpec, MemoryFile, Plugin, domain_xml
from sundial.plan.jobs import encode_job
from sundial.plan.request import CALM, Stirring
from sundial.run.fabric import Fabric
from sundial.run.kernel_functions import KernelReader
from sundial.run.loopback import LOOPBACK
from sundial.run.remote import RemoteSite
from sundial.run.session import Session
from sundial.run.snapshotting import SnapshotMaker, snapshot_key
from sundial.run.supervisor import Event, MachineEnded
from sundial.run.traces import Traces

Queue = SimpleQueue[Event | LifecycleEvent]
Say = Callable[[str], None]
STOP_S = 5.0
GONE_S = 5.0
"""Seconds that libvirt may take to notice the end of a QEMU whose monitor it lost."""


class Rig:
    """One topology in execution. `boots` has the boot files of each machine, `node_folder` its folder for console,
    samples, job and domain."""

    def __init__(
        self,
        session: Session,
        plan: Plan,
        boots: Mapping[str, BootFiles],
        folder: Path,
        node_folder: Callable[[str], Path],
        queue: Queue,
        *,
        cold: bool,
        interactive: bool,
        kvm: bool = False,
        traces: Traces | None = None,
        stirring: Stirring = CALM,
    ) -> None:
        self.plan = plan
        self.clocks: dict[str, dict[str, Any]] = {}
        """The last report of each machine's plugin, once all is taken down."""
        self.memories: dict[str, str] = {}
        """The sha256 of the main memory that each machine is restored with."""
        self._stirring = stirring
        self._traces = traces
        self.queue = queue
        self.folder = folder
        self.machines: dict[str, Machine] = {}
        self.fabric: Fabric | None = None
        self._session = session
        self._boots = boots
        self._node_folder = node_folder
        self._cold = cold
        self._interactive = interactive
        self._kvm = kvm
        self._held: list[Snapshot] = []
        self._restored: dict[str, Snapshot] = {}
        self._alone: bool | None = None
        self._zeros: dict[str, int] = {}
        self.sites = {
            name: RemoteSite(session.host(name, uri), plan, folder) for name, uri in plan.network.hosts.items()
        }
        self._snapshots = contextlib.ExitStack()
        self._deafen = contextlib.ExitStack()

    def prepare(self, say: Say) -> dict[str, Snapshot]:
        """Find or make the snapshot of every machine, and hold it until `take_down`; none under the real clock.

        A cold run boots its guests to the same instant, and no other run uses its snapshots. Thus the guests' clocks
        have one zero, and jobs are handed in there as in any other run.
        """
        if self.plan.clock == "real":
            return {}
        kept = self._session.places.snapshots
        store = SnapshotStore(self.folder / "cold" if self._cold else kept)
        report = (lambda line: say("booting the guests")) if self._cold else say
        qemu = self._session.hypervisor.versions()["qemu"]
        held: dict[str, Snapshot] = {}
        found: dict[str, Snapshot] = {}
        for node in self.plan.network.nodes:
            boot = self._boot(node)
            # What is kept for other runs is booted without gates of a trial.
            stirring = self._stirring if self._cold else CALM
            maker = SnapshotMaker(self._session, self.plan, node, boot, self._interactive, stirring=stirring)
            key = snapshot_key(maker.spec(self.folder), node.mips, boot, self._session.places.plugin, qemu)
            if key.digest() not in held:
                using: AbstractContextManager[Snapshot] = store.use(key, maker.make, report)
                held[key.digest()] = self._snapshots.enter_context(using)
            found[node.name] = held[key.digest()]
            self._zeros[node.name] = found[node.name].zero_ns
            self.memories[node.name] = found[node.name].memory_sha256
            if self._traces is not None:
                target = self._node_folder(node.name)
                self._traces.prepare(self._session, node, boot, found[node.name], self._interactive, target, say)
        self._held, self._restored = list(held.values()), found
        return found

    def kernel_functions(self, machine: str, application: str, say: Say) -> list[tuple[int, str]]:
        """Address and name of each function of the kernel of a machine that was restored. Raises RunFailed."""
        node = self.plan.network.node(machine)
        boot, snapshot = self._boot(node), self._restored[machine]
        reader = KernelReader(self._session, self.plan, node, boot, self._interactive, snapshot)
        return reader.functions(application, say)

    def start_fabric(self) -> Fabric:
        """Start the fabric. Raises RunFailed."""
        # The token in its name identifies it in every list of processes.
        config = self.folder / f"{self._session.runtime.token}.json"
        config.write_text(json.dumps(self.plan.fabric, indent=1) + "\n")
        self.fabric = self._session.start_fabric(self._session.places.fabric, config, self.queue.put)
        self.fabric.wait_listening()
        hand_over(self.folder.glob("f-*.sock"), self._session.qemu_user)
        return self.fabric

    def start_machines(self, snapshots: dict[str, Snapshot], start_order: Sequence[str]) -> None:
        """Start all machines in parallel, paused. Raises RunFailed with the first that did not start."""
        for hypervisor in (self._session.hypervisor, *(site.host.hypervisor for site in self.sites.values())):
            self._deafen.callback(hypervisor.listen(self.queue.put))
        nodes = ordered(self.plan.network.nodes, start_order)

        def starter(node: Node) -> Callable[[], None]:
            return lambda: self._start(node, snapshots.get(node.name))

        in_parallel([starter(node) for node in nodes])
        if self.plan.clock == "virtual":
            self.look_for_cores()
            # Machines that stay up have no end to reach early, and may never be idle.
            fabric = None if self.fabric is None or self._interactive else self.fabric.pid()
            if fabric is not None:
                cores.hurry(self._guests(), fabric)

    def look_for_cores(self) -> None:
        """Update whether guests have separate cores, after other runs have begun or ended."""
        if self.plan.clock == "real":
            return
        alone = self._session.runtime.is_alone()
        if alone != self._alone:
            self._alone = alone
            cores.settle(self._guests(), alone=alone)

    def _guests(self) -> list[int]:
        return [pid for machine in self.machines.values() if (pid := machine.pid()) is not None]

    def resume(self, start_order: Sequence[str] = (), *, only: bool = False) -> None:
        """Start all guests, or only those of `start_order`. Raises RunFailed."""
        for name in start_order if only else [node.name for node in ordered(self.plan.network.nodes, start_order)]:
            machine = self.machines[name]
            try:
                machine.resume()
            except MonitorError as error:
                # On a busy host a short run may end before the monitor answers. Its event has the result.
                if not _ends(machine):
                    raise self._failed(machine, str(error)) from error

    def start_again(self, machine: str) -> None:
        """Boot a machine whose QEMU has ended, under the real clock; console and samples go on. Raises RunFailed."""
        self._start(self.plan.network.node(machine), None, again=True)
        self.resume([machine], only=True)

    def runs(self, machine: str) -> bool:
        """Whether a machine is there."""
        return self.machines[machine].state() is not MachineState.GONE

    def zero_ns(self, machine: str) -> int:
        """The guest clock's reading at zero of the run's axis; 0 if unknown (real clock)."""
        return self._zeros.get(machine, 0)

    def report(self, machine: str) -> dict[str, Any]:
        """The last report of the machine's plugin; empty if there is none."""
        try:
            written = json.loads((self.folder / f"report-{machine}").read_text())
        except (OSError, ValueError):
            return {}
        return written if isinstance(written, dict) else {}

    def ended(self, event: LifecycleEvent) -> MachineEnded | None:
        """The supervisor's event for a lifecycle event, or None. Names are without the session's token."""
        if event.machine not in self.machines:
            return None
        if event.happening is Happening.LOST:
            return MachineEnded(event.machine, event.reason, lost=True)
        if event.happening not in (Happening.STOPPED, Happening.CRASHED):
            return None
        how = self._session.end_of(self.machines[event.machine], event.reason)
        status = self.report(event.machine).get("status")
        return MachineEnded(event.machine, how, status if status != "ready" else None)

    def console_tail(self, machine: str) -> tuple[str, ...]:
        return last_words(self._node_folder(machine) / "console.log")

    def take_down(self, hurry: bool = False) -> None:
        """Stop the fabric (it first writes its data, unless in a hurry), end every machine, and clean up.

        Raises RunFailed if the memory from which machines were restored was changed.
        """
        if self.fabric is not None and (hurry or not self.fabric.stop(STOP_S)):
            self.fabric.kill()
        in_parallel([machine.destroy for machine in self.machines.values()])
        for name in self.machines:
            take_back(self._node_folder(name), self._session.qemu_user)
        for site in self.sites.values():
            site.close()
        self._deafen.close()
        cut = None if self._traces is None else self._traces.collect(self.report, self._node_folder)
        self.clocks = {name: self.report(name) for name in self.machines} if self.plan.clock == "virtual" else {}
        intact = all(snapshot.is_sealed() for snapshot in self._held)
        self._snapshots.close()
        for path in (self.plan.paths.shm, self.folder):
            self._session.guard.forget(path)
        for path in (self.plan.paths.shm, self.folder):
            shutil.rmtree(path, ignore_errors=True)
        if not intact:
            raise RunFailed("a snapshot that its machines were restored from was changed while they ran: run it again")
        if cut is not None:
            raise cut

    def _start(self, node: Node, snapshot: Snapshot | None, *, again: bool = False) -> None:
        folder = self._node_folder(node.name)
        if node.host is not None:
            self.machines[node.name] = self.sites[node.host].start(
                node,
                self._boot(node),
                folder,
                console_socket=self.console_socket(node.name) if self._interactive else None,
                exec_socket=self.exec_socket(node.name) if self._interactive else None,
                kvm=self._kvm,
            )
            return
        zero_ns = None if snapshot is None else snapshot.zero_ns
        job = self.plan.jobs[node.name]
        if zero_ns is not None:
            job = job.model_copy(update={"zero_ns": zero_ns})
        (self.folder / f"job-{node.name}").write_bytes(encode_job(job))
        (folder / "job.json").write_text(json.dumps(job.document(), indent=1) + "\n")
        spec = replace(self._spec(node, folder, snapshot), again=again)
        xml = domain_xml(spec)
        (folder / "domain.xml").write_text(xml)
        machine = self._session.hypervisor.start(node.name, xml)
        self.machines[node.name] = machine
        if snapshot is not None:
            try:
                load_state(machine, snapshot.state, self.folder)
            except MigrationFailed as error:
                _ends(machine)
                raise self._failed(machine, f"cannot be restored: {error}") from error

    def _spec(self, node: Node, folder: Path, snapshot: Snapshot | None) -> DomainSpec:
        files = MachineFiles(
            console=folder / "console.log",
            samples=folder / "samples.jsonl",
            job=self.folder / f"job-{node.name}",
            console_socket=self.console_socket(node.name) if self._interactive else None,
            exec_socket=self.exec_socket(node.name) if self._interactive else None,
            loopback=folder / LOOPBACK if node.inner else None,
        )
        boot = self._boot(node)
        policy = self._session.confine(
            self.folder / f"policy-{node.name}",
            read=boot.files,
            write=[folder, self.folder, *self._shared_memory(node)],
            mapped=[] if snapshot is None else [snapshot.memory],
            kvm=self._kvm,
        )
        return domain_spec(
            self.plan,
            node,
            self._session.domain_name(node.name),
            boot,
            files,
            policy=policy,
            memory_file=None if snapshot is None else MemoryFile(snapshot.memory, shared=False),
            plugin=self._plugin(node, None if snapshot is None else snapshot.zero_ns),
            incoming=snapshot is not None,
            kvm=self._kvm,
            run_as=self._session.run_as,
        )

    def _shared_memory(self, node: Node) -> list[Path]:
        """The shared memory that a machine of a virtual run maps: the times of all machines, and its rings."""
        shm = self.plan.paths.shm
        hand_over([shm], self._session.qemu_user)
        return [shm / "times", shm / f"rings-{node.index}"]

    def console_socket(self, machine: str) -> Path:
        return self.folder / f"c-{machine}.sock"

    def exec_socket(self, machine: str) -> Path:
        """The machine's command port, for one client at a time."""
        return self.folder / f"e-{machine}.sock"

    def commands_socket(self, machine: str) -> Path:
        """The switchboard's socket, for many clients."""
        return self.folder / f"x-{machine}.sock"

    def _plugin(self, node: Node, zero_ns: int | None) -> Plugin | None:
        if self._kvm:  # there are no plugins without TCG; the guard ends the machine if we die
            return None
        library = self._session.places.plugin
        if self.plan.clock == "real":
            return watch_plugin(library, supervisor=os.getpid())
        assert zero_ns is not None, "virtual time begins with a snapshot"
        return run_plugin(
            self.plan,
            node,
            library,
            supervisor=os.getpid(),
            report=self.folder / f"report-{node.name}",
            zero_ns=zero_ns,
            trace=None if self._traces is None else self._traces.files(node.name),
            stirring=self._stirring,
        )

    def _boot(self, node: Node) -> Boot:
        qemu = self._session.hypervisor.versions()["qemu"]
        return self._boots[node.name].started_by(self._session.emulator(), qemu)

    def _failed(self, machine: Machine, what: str) -> RunFailed:
        """The error `what` of a machine, with how the machine ended."""
        return RunFailed(self._session.with_end(what, machine), machine=machine.name)


def _ends(machine: Machine) -> bool:
    """True if the machine has ended, or ends until libvirt notices it."""
    try:
        return wait_until(lambda: machine.state() is MachineState.GONE, seconds=GONE_S, what=f"end of {machine.name}")
    except DeadlineMissed:
        return False


def ordered(nodes: Sequence[Node], start_order: Sequence[str]) -> list[Node]:
    """The named machines in that order, then the others. Raises BadInput for an unknown name."""
    names = [node.name for node in nodes]
    for name in start_order:
        if name not in names:
            raise BadInput(f"there is no machine {name!r} to start", allowed=", ".join(names))
    order = list(dict.fromkeys([*start_order, *names]))
    return sorted(nodes, key=lambda node: order.index(node.name))
