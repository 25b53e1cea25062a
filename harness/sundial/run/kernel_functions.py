# SPDX-License-Identifier: Apache-2.0
"""Addresses of a kernel's functions, read from the guest, because modules are where its snapshot has them.

A machine is restored from the snapshot only to print its /proc/kallsyms. The output is kept next to the snapshot, which
does not change. The program that prints is a file of the job: the runner puts it in the place of an application's link.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from sundial.errors import RunFailed
from sundial.machines.console import PanicWatch, last_words
from sundial.machines.functions import keep_kernel, kept_kernel, parse_kallsyms
from sundial.machines.hypervisor import Machine, MachineState, MonitorError
from sundial.machines.migration import MigrationFailed, load_state
from sundial.machines.snapshots import Snapshot
from sundial.machines.waiting import DeadlineMissed, wait_until
from sundial.model.network import Node
from sundial.plan.build import Boot, Plan, watch_plugin
from sundial.plan.domain import MemoryFile, domain_xml
from sundial.plan.jobs import encode_job
from sundial.run.session import Session
from sundial.run.snapshotting import SnapshotMaker
from sundial.seams.job import Job, Task

Say = Callable[[str], None]
ASK_S = 120.0
APPLICATIONS = "/usr/lib/sundial"
"""Folder of a guest's applications."""
_SCRIPT = "#!/bin/sh\nexec busybox grep -i ' [tw] ' /proc/kallsyms >&3\n"
_ENDED = b'{"type":"step"'


class KernelReader:
    """Reads the kernel symbols of a machine like one node, restored from `snapshot`."""

    def __init__(self, session: Session, plan: Plan, node: Node, boot: Boot, interactive: bool, snapshot: Snapshot):
        self._session = session
        self._node = node
        self._boot = boot
        self._snapshot = snapshot
        self._maker = SnapshotMaker(session, plan, node, boot, interactive)

    def functions(self, application: str, say: Say) -> list[tuple[int, str]]:
        """Address and name of each function, read once for a snapshot, in place of `application`. Raises RunFailed."""
        known = kept_kernel(self._snapshot.folder)
        if known is not None:
            return known
        say(f"reading kernel symbols of {self._node.name} (once per snapshot)")
        folder = self._session.folder()
        try:
            functions = self._ask(folder, application)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        keep_kernel(self._snapshot.folder, functions)
        return functions

    def _ask(self, folder: Path, application: str) -> list[tuple[int, str]]:
        job = Job(
            version=1,
            machine=self._node.name,
            seed=1,
            clock="tsc",
            files={f"{APPLICATIONS}/{application}": _SCRIPT},
            steps=(Task(app=application),),
        )
        (folder / "job").write_bytes(encode_job(job))
        policy = self._session.confine(
            folder / "policy",
            read=[self._boot.kernel, self._boot.initrd],
            write=[folder],
            mapped=[self._snapshot.memory],
        )
        spec = replace(
            self._maker.spec(folder),
            name=self._session.domain_name(f"ask-{secrets.token_hex(3)}-{self._node.name}"),
            plugin=watch_plugin(self._session.places.plugin, supervisor=os.getpid()),
            memory_file=MemoryFile(self._snapshot.memory, shared=False),
            incoming=True,
            policy=policy,
            run_as=self._session.run_as,
        )
        name = spec.name.removeprefix(f"{self._session.runtime.token}-")
        try:
            machine = self._session.hypervisor.start(name, domain_xml(spec))
        except RunFailed as error:
            raise self._failed(folder, error.message.removeprefix(f"{name}: ")) from error
        try:
            load_state(machine, self._snapshot.state, folder)
            machine.resume()
            self._wait_ended(machine, folder)
        except (MigrationFailed, MonitorError) as error:
            raise self._failed(folder, str(error)) from error
        finally:
            machine.destroy()
        with (folder / "samples").open(errors="replace") as lines:
            found = parse_kallsyms(lines)
        if not any(address for address, _ in found):
            raise self._failed(folder, "it does not say")
        return found

    def _wait_ended(self, machine: Machine, folder: Path) -> None:
        panics = PanicWatch(folder / "console")

        def ended() -> bool:
            line = panics.look()
            if line is not None:
                raise self._failed(folder, f"it panicked: {line}")
            if machine.state() is MachineState.GONE:
                raise self._failed(folder, self._session.with_end("QEMU ended", machine))
            return _tail_has_ended(folder / "samples")

        try:
            wait_until(ended, seconds=ASK_S, what="reading /proc/kallsyms")
        except DeadlineMissed as error:
            raise self._failed(folder, str(error)) from error

    def _failed(self, folder: Path, message: str) -> RunFailed:
        return RunFailed(
            f"reading its kernel symbols: {message}",
            machine=self._node.name,
            console_tail=last_words(folder / "console"),
        )


def _tail_has_ended(path: Path) -> bool:
    """True if the step's record is there; only the end is read, because the file is long."""
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
        return _ENDED in file.read()
