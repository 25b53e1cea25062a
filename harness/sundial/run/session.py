# SPDX-License-Identifier: Apache-2.0
"""What one harness process has for all its runs: the runtime folder, the guard, the connection to libvirt.

libvirt's embedded driver can be opened at one place only in the life of a process, so a session lives as long as the
process and is taken down at its end.
"""

from __future__ import annotations

import atexit
import itertools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sundial.machines.accelerator import Chosen, choose, probe_kernels, runs_kvm
from sundial.machines.confinement import hand_over, qemu_user
from sundial.machines.connection import open_hypervisor
from sundial.machines.guard import Guard
from sundial.machines.hypervisor import Hypervisor
from sundial.machines.remote import RemoteHost
from sundial.machines.runtime import RuntimeFolder
from sundial.machines.seals import Book
from sundial.model.daemon import DaemonUri, parse_daemon
from sundial.model.topology import Accelerator
from sundial.model.topology import Clock as RunClock
from sundial.plan.confinement import Allowed, policy_text
from sundial.plan.request import EMBEDDED
from sundial.run.fabric import FabricProcess, StartFabric
from sundial.run.places import Places, emulator


@dataclass
class Session:
    """Open for the life of the process. Tests make their own from fakes."""

    places: Places
    runtime: RuntimeFolder
    guard: Guard
    hypervisor: Hypervisor
    connect: str = EMBEDDED
    start_fabric: StartFabric = FabricProcess
    shm_folder: Path = Path("/dev/shm")
    open_host: Callable[[str, DaemonUri, Path, str], RemoteHost] = RemoteHost
    runs_kvm: Callable[[Path, Path], bool] = runs_kvm
    qemu_user: int | None = None
    """Whom QEMU is made where root starts it."""
    _numbers: itertools.count[int] = field(default_factory=itertools.count)
    _hosts: dict[str, RemoteHost] = field(default_factory=dict)

    def folder(self) -> Path:
        """A new folder for sockets and jobs, with a short name."""
        path = self.runtime.folder(f"{next(self._numbers)}")
        hand_over([path], self.qemu_user)
        return path

    def shm(self) -> Path:
        """A new name for shared memory; the fabric makes the folder, the guard takes it away should we die."""
        path = self.shm_folder / f"{self.runtime.token}-{next(self._numbers)}"
        self.guard.remove_on_death(path)
        return path

    def host(self, name: str, uri: DaemonUri) -> RemoteHost:
        """Another computer, connected for the life of the session. Raises HostLacks, RunFailed."""
        if name not in self._hosts:
            self._hosts[name] = self.open_host(name, uri, self.runtime.path, self.runtime.token)
        return self._hosts[name]

    def accelerator(self, clock: RunClock, asked: Accelerator) -> Chosen:
        """What is to run machines; only for this host can KVM be tried. Raises HostLacks."""
        if self.connect != EMBEDDED:
            return "kvm" if asked == "kvm" else "tcg"
        return choose(clock, asked, self._kvm_works)

    def _kvm_works(self) -> bool:
        kernel = next(filter(Path.is_file, probe_kernels(self.places.checkout, self.places.state)), None)
        return kernel is not None and self.runs_kvm(kernel, self.places.kvm)

    def emulator(self) -> Path:
        """What libvirt starts: harness/confine before QEMU, or QEMU alone where a daemon has its own means.

        Raises HostLacks.
        """
        return self.places.confine if self.connect == EMBEDDED else emulator()

    @property
    def run_as(self) -> tuple[int, int] | None:
        """User and group that a system's daemon is to give QEMU, so that it can use our files; None: as it comes."""
        system = self.connect != EMBEDDED and parse_daemon(self.connect).mode == "system"
        return (os.getuid(), os.getgid()) if system else None

    def confine(
        self,
        policy: Path,
        *,
        read: Sequence[Path],
        write: Sequence[Path],
        mapped: Sequence[Path] = (),
        kvm: bool = False,
    ) -> Path | None:
        """Write what one machine's QEMU is allowed into `policy`, and make the files that it writes its own.

        What it opens as if to write, and maps copy-on-write, stays whose it is.

        None where Sundial does not confine it. Raises HostLacks.
        """
        if self.connect != EMBEDDED:
            return None
        own = [self.places.plugin, self.runtime.path / "lib", *read]
        policy.write_text(policy_text(Allowed(emulator(), own, [*write, *mapped], kvm, self.qemu_user)))
        hand_over(write, self.qemu_user)
        return policy

    def domain_name(self, machine: str) -> str:
        """What libvirt calls a machine: the token keeps it apart from those of other sessions."""
        return f"{self.runtime.token}-{machine}"

    def close(self) -> None:
        """End whatever still runs, and leave nothing behind."""
        for host in self._hosts.values():
            host.close()
        self.guard.end_processes()
        self.hypervisor.close()
        self.runtime.remove()
        self.guard.stop()


_open: dict[str, Session] = {}


def open_session(connect: str, places: Places | None = None) -> Session:
    """The session of this process for `connect`. Raises HostLacks, RunFailed."""
    if connect in _open:
        return _open[connect]
    where = places or Places()
    where.check()
    runtime = RuntimeFolder()
    guard = Guard(runtime.token)
    guard.remove_on_death(runtime.path)
    try:
        hypervisor = open_hypervisor(
            connect,
            runtime.path,
            where.libvirt_cache,
            runtime.token,
            emulator=where.confine,
            programs=Book(where.programs),
        )
        guard.wait_ready()
    except BaseException:
        runtime.remove()
        guard.stop()
        raise
    user = qemu_user(where.confine) if connect == EMBEDDED else None
    session = Session(where, runtime, guard, hypervisor, connect, qemu_user=user)
    _open[connect] = session
    atexit.register(_close, connect)
    return session


def _close(connect: str) -> None:
    session = _open.pop(connect, None)
    if session is not None:
        session.close()
