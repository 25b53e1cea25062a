# SPDX-License-Identifier: Apache-2.0
"""Makes a machine's snapshot: boots a guest alone in virtual time until it waits for its job.

Its main memory is a file from the start. At the guest's `sundial-ready` the plugin writes the report with zero of the
time axis and pauses the machine; then the rest of its state is saved.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from sundial.errors import RunFailed, Whose
from sundial.machines.confinement import hand_over
from sundial.machines.console import PanicWatch, last_words
from sundial.machines.hypervisor import Machine, MachineState
from sundial.machines.memory import allocate, copy_without_zeros
from sundial.machines.migration import MigrationFailed, save_state
from sundial.machines.seals import sha256_of
from sundial.machines.snapshots import MEMORY, STATE, SnapshotKey
from sundial.machines.waiting import WALL, Clock, DeadlineMissed, wait_until
from sundial.model.network import Node
from sundial.plan.build import Boot, MachineFiles, Plan, boot_plugin, domain_spec
from sundial.plan.domain import DomainSpec, FrameSockets, MemoryFile, domain_xml
from sundial.plan.jobs import WAITING, encode_job
from sundial.plan.request import CALM, Stirring
from sundial.run.session import Session
from sundial.run.supervisor import PANIC_S
from sundial.run.watch import processor_s
from sundial.run.watchdog import Signs, Watchdog

BOOT_S = 180.0
_NOWHERE = Path("/")


def snapshot_key(spec: DomainSpec, mips: Decimal, boot: Boot, plugin: Path, qemu: str) -> SnapshotKey:
    """The key of the snapshot for the domain `spec`: all of its XML except what differs between runs."""
    shape = replace(
        spec,
        name="-",
        emulator=_NOWHERE,
        kernel=_NOWHERE,
        initrd=_NOWHERE,
        console=_NOWHERE,
        samples=_NOWHERE,
        job=_NOWHERE,
        nics=tuple(FrameSockets(_NOWHERE, _NOWHERE) for _ in spec.nics),
        memory_file=MemoryFile(_NOWHERE, shared=False),
        disk=None if spec.disk is None else replace(spec.disk, path=_NOWHERE),
        plugin=None,
        incoming=False,
        console_socket=None if spec.console_socket is None else _NOWHERE,
        exec_socket=None if spec.exec_socket is None else _NOWHERE,
        loopback=None if spec.loopback is None else _NOWHERE,
        policy=None,
        run_as=None,
    )
    return SnapshotKey(
        qemu=qemu,
        flags=tuple(domain_xml(shape).splitlines()),
        mips=str(mips),
        memory_mib=spec.memory >> 20,
        nics=len(spec.nics),
        kernel_sha256=boot.kernel_sha256,
        initrd_sha256=boot.initrd_sha256,
        cmdline=spec.cmdline,
        plugin_sha256=sha256_of(plugin),
    )


class SnapshotMaker:
    """Boots a machine like one node and saves it; an interactive machine has two more ports."""

    def __init__(
        self,
        session: Session,
        plan: Plan,
        node: Node,
        boot: Boot,
        interactive: bool,
        clock: Clock = WALL,
        *,
        stirring: Stirring = CALM,
    ) -> None:
        self._session = session
        self._stirring = stirring
        self._plan = plan
        self._node = node
        self._boot = boot
        self._interactive = interactive
        self._clock = clock

    def spec(self, folder: Path) -> DomainSpec:
        """The domain to boot, with its files in `folder`."""
        files = MachineFiles(
            console=folder / "console",
            samples=folder / "samples",
            job=folder / "job",
            console_socket=folder / "c.sock" if self._interactive else None,
            exec_socket=folder / "e.sock" if self._interactive else None,
            loopback=folder / "inner" if self._node.inner else None,
        )
        plugin = boot_plugin(
            self._node,
            self._session.places.plugin,
            supervisor=os.getpid(),
            report=folder / "report",
            stirring=self._stirring,
        )
        paths = replace(self._plan.paths, sockets=folder)
        name = self._session.domain_name(f"boot-{secrets.token_hex(3)}-{self._node.name}")
        return domain_spec(replace(self._plan, paths=paths), self._node, name, self._boot, files, plugin=plugin)

    def make(self, target: Path) -> int:
        """Boot until the guest waits, and write state and memory to `target`. Returns its clock. Raises RunFailed."""
        booted = target / "booted"
        with self._own_folder() as folder:
            (folder / "job").write_bytes(encode_job(WAITING))
            spec = self.spec(folder)
            allocate(booted, spec.memory)
            hand_over([booted], self._session.qemu_user)
            policy = self._session.confine(folder / "policy", read=self._boot.files, write=[folder, booted])
            memory = MemoryFile(booted, shared=True)
            spec = replace(spec, policy=policy, memory_file=memory, run_as=self._session.run_as)
            name = spec.name.removeprefix(f"{self._session.runtime.token}-")
            try:
                machine = self._session.hypervisor.start(name, domain_xml(spec))
            except RunFailed as error:
                raise self._failed(folder, error.message.removeprefix(f"{name}: ")) from error
            try:
                machine.resume()
                zero_ns = self._wait_frozen(machine, folder)
                save_state(machine, target / STATE, folder, self._clock)
            except MigrationFailed as error:
                raise RunFailed(f"its snapshot could not be saved: {error}") from error
            finally:
                machine.destroy()
        copy_without_zeros(booted, target / MEMORY)
        booted.unlink()
        return zero_ns

    @contextmanager
    def _own_folder(self) -> Iterator[Path]:
        folder = self._session.folder()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _wait_frozen(self, machine: Machine, folder: Path) -> int:
        panics = PanicWatch(folder / "console")
        report = folder / "report"
        watchdog = Watchdog()

        def frozen() -> bool:
            line = panics.look()
            if line is not None:
                self._wait_gone(machine)
                raise self._failed(folder, f"its kernel panicked: {line}", whose="run")
            signs = Signs((panics.seen_bytes,), by_processor=True, processor_s=processor_s([machine]))
            hung = watchdog.look(signs, self._clock.now())
            if hung is not None:
                raise self._failed(folder, f"hung: no progress for {hung.seconds:.0f} s")
            state = machine.state()
            if state is MachineState.GONE:
                raise self._failed(folder, self._session.with_end("QEMU ended while it booted", machine))
            return state is MachineState.PAUSED and report.is_file()

        try:
            wait_until(frozen, seconds=BOOT_S, what="booting the guest", clock=self._clock)
        except DeadlineMissed as error:
            raise self._failed(folder, str(error)) from error
        try:
            return int(json.loads(report.read_text())["zero_ns"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._failed(folder, "the plugin's report is malformed") from error

    def _wait_gone(self, machine: Machine) -> None:
        """After a panic the kernel prints its trace and then ends its machine."""
        with suppress(DeadlineMissed):
            wait_until(
                lambda: machine.state() is MachineState.GONE, seconds=PANIC_S, what="last words", clock=self._clock
            )

    def _failed(self, folder: Path, message: str, whose: Whose = "host") -> RunFailed:
        said = last_words(folder / "console")
        return RunFailed(f"making its snapshot: {message}", machine=self._node.name, console_tail=said, whose=whose)
