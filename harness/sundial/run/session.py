# SPDX-License-Identifier: Apache-2.0
"""Resources of one harness process for all its runs: the runtime folder, the guard, the connection to libvirt.

A process can open libvirt's embedded driver at one place only, so a session lives as long as the process and is taken
down at its end.
"""

from __future__ import annotations

import atexit
import itertools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sundial.machines.accelerator import Chosen, choose, probe_kernels, runs_kvm
from sundial.machines.certificates import Certificates
from sundial.machines.confinement import hand_over, qemu_user
from sundial.machines.connection import open_hypervisor
from sundial.machines.console import qemu_words
from sundial.machines.guard import Guard
from sundial.machines.hypervisor import Hypervisor, Machine
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
    """Open until the process ends. Tests make theirs from fakes."""

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
    """User of QEMU if root starts it."""
    certificates: Certificates | None = None
    """None: every emulator is taken for virtual time."""
    _numbers: itertools.count[int] = field(default_factory=itertools.count)
    _hosts: dict[str, RemoteHost] = field(default_factory=dict)

    def folder(self) -> Path:
        """A new folder for sockets and jobs, with a short name."""
        path = self.runtime.folder(f"{next(self._numbers)}")
        hand_over([path], self.qemu_user)
        return path

    def shm(self) -> Path:
        """A new name for shared memory; the fabric creates the folder, the guard removes it if we die."""
        path = self.shm_folder / f"{self.runtime.token}-{next(self._numbers)}"
        self.guard.remove_on_death(path)
        return path

    def host(self, name: str, uri: DaemonUri) -> RemoteHost:
        """Another host, connected until the session ends. Raises HostLacks, RunFailed."""
        if name not in self._hosts:
            self._hosts[name] = self.open_host(name, uri, self.runtime.path, self.runtime.token)
        return self._hosts[name]

    def accelerator(self, clock: RunClock, asked: Accelerator) -> Chosen:
        """Accelerator of machines; KVM can be tested only on this host. Raises HostLacks."""
        if self.connect != EMBEDDED:
            return "kvm" if asked == "kvm" else "tcg"
        return choose(clock, asked, self._kvm_works)

    def _kvm_works(self) -> bool:
        kernel = next(filter(Path.is_file, probe_kernels(self.places.checkout, self.places.state)), None)
        return kernel is not None and self.runs_kvm(kernel, self.places.kvm)

    def emulator(self) -> Path:
        """The program that libvirt starts: harness/confine in front of QEMU, or QEMU if a daemon confines it.

        Raises HostLacks.
        """
        return self.places.confine if self.connect == EMBEDDED else emulator()

    @property
    def run_as(self) -> tuple[int, int] | None:
        """User and group of QEMU under a system's daemon, so that it can use our files; None: the daemon's choice."""
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
        """Write the permissions of one machine's QEMU to `policy`, and give it the files that it writes.

        Files that it opens for writing but maps copy-on-write keep their owner.

        None if Sundial does not confine it. Raises HostLacks.
        """
        if self.connect != EMBEDDED:
            return None
        own = [self.places.plugin, self.runtime.path / "lib", *read]
        policy.write_text(policy_text(Allowed(emulator(), own, [*write, *mapped], kvm, self.qemu_user)))
        hand_over(write, self.qemu_user)
        return policy

    def domain_name(self, machine: str) -> str:
        """libvirt's name of a machine; the token makes it unique among sessions."""
        return f"{self.runtime.token}-{machine}"

    def end_of(self, machine: Machine, reason: str = "") -> str:
        """How a machine's QEMU ended (`reason` where that is not known) and what it said last, as in `exit status 1,
        qemu-system-x86_64: ...`. What it said is known where libvirt runs in this process.
        """
        log = self.runtime.path / "log" / "qemu" / f"{self.domain_name(machine.name)}.log"
        return ", ".join(part for part in (machine.ending() or reason, qemu_words(log)) if part)

    def with_end(self, what: str, machine: Machine) -> str:
        """What went wrong with a machine, and how its QEMU ended, as far as that is known."""
        return ": ".join(part for part in (what, self.end_of(machine)) if part)

    def close(self) -> None:
        """End everything that still runs, and clean up."""
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
    known = certificates(where)
    session = Session(where, runtime, guard, hypervisor, connect, qemu_user=user, certificates=known)
    _open[connect] = session
    atexit.register(_close, connect)
    return session


def certificates(places: Places) -> Certificates:
    """Of the emulators of a checkout."""
    return Certificates(places.certificates, Book(places.emulators))


def _close(connect: str) -> None:
    session = _open.pop(connect, None)
    if session is not None:
        session.close()
