# SPDX-License-Identifier: Apache-2.0
"""One machine under libvirt: its state, its monitor, its end."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sundial.machines import reaper
from sundial.machines.hypervisor import Happening, LifecycleEvent, MachineState, MonitorError
from sundial.machines.waiting import WALL, Clock, DeadlineMissed, call_within, wait_until

CALL_S = 10.0
DESTROY_S = 20.0

# VIR_DOMAIN_EVENT_* of libvirt-domain.h with the names of their details, in the order of their numbers.
_EVENTS: dict[int, tuple[Happening, tuple[str, ...]]] = {
    2: (Happening.STARTED, ("booted", "migrated", "restored", "snapshot", "woken up")),
    3: (
        Happening.PAUSED,
        ("paused", "migrated", "I/O error", "watchdog", "restored", "snapshot", "monitor error", "post-copy"),
    ),
    4: (Happening.RESUMED, ("unpaused", "migrated", "snapshot", "post-copy")),
    5: (Happening.STOPPED, ("shut down", "destroyed", "crashed", "migrated", "saved", "failed", "snapshot")),
    8: (Happening.CRASHED, ("guest panic", "crash loaded")),
}


def lifecycle_event(machine: str, event: int, detail: int) -> LifecycleEvent | None:
    """libvirt's event numbers as Happenings; None for those of no interest (defined, undefined, shutting down ...)."""
    if event not in _EVENTS:
        return None
    happening, reasons = _EVENTS[event]
    reason = reasons[detail] if 0 <= detail < len(reasons) else f"reason {detail}"
    return LifecycleEvent(machine, happening, reason)


PR_SET_CHILD_SUBREAPER = 36
PID_FILE_S = 5.0
LONGEST_START_S = 120.0
LOOK_S = 0.02
"""How often to look for QEMUs that have ended."""


def adopt_orphans() -> None:
    """Make this process the parent of the QEMUs that libvirt detaches.

    libvirt waits for a dead QEMU until its parent has taken notice; init takes its time in some containers, and other
    parents never do; we do at once.
    """
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@contextlib.contextmanager
def noticing_ends() -> Iterator[None]:
    """Takes notice of the end of each detached QEMU meanwhile, of those without a known pid file."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(LOOK_S):
            for pid in _detached():
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)

    watcher = threading.Thread(target=watch, name="qemu-ends", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _detached() -> list[int]:
    """Children that are QEMUs in sessions of their own: libvirt waits itself for those that are not yet detached."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # a thread that has ended
            for pid in map(int, (task / "children").read_text().split()):
                name, fields = reaper.stat(pid) or ("", [])
                if name.startswith("qemu-system") and int(fields[3]) != os.getsid(0):
                    found.append(pid)
    return found


class Parenthood:
    """Learns the number of one QEMU from the pid file that libvirt writes, and takes notice of its end.

    Begins before libvirt is asked to start it, for a QEMU that refuses its arguments ends before libvirt returns.
    """

    def __init__(self, pid_file: Path, clock: Clock = WALL) -> None:
        self.pid: int | None = None
        self.status: int | None = None
        self._pid_file = pid_file
        self._clock = clock
        self._known = threading.Event()
        self._over = threading.Event()
        threading.Thread(target=self._watch, name=f"parent-{pid_file.stem}", daemon=True).start()

    def started(self) -> int | None:
        """libvirt has started it: its number."""
        self._known.wait(PID_FILE_S)
        return self.pid

    def ending(self, seconds: float = 0.0) -> str | None:
        """How it ended: `killed by SIGKILL`, `exit status 1`; None where that is not known within `seconds`."""
        with contextlib.suppress(DeadlineMissed):
            wait_until(lambda: self.status is not None, seconds=seconds, what="its end", clock=self._clock)
        if self.status is None:
            return None
        return f"killed by {signal.Signals(-self.status).name}" if self.status < 0 else f"exit status {self.status}"

    def give_up(self) -> None:
        """It was not started."""
        self._over.set()

    def _watch(self) -> None:
        try:
            self.pid = wait_until(self._read, seconds=LONGEST_START_S, what="the pid file", clock=self._clock)
        except (DeadlineMissed, InterruptedError):
            return
        finally:
            self._known.set()
        # Not waitpid at once: it becomes our child only when the process that libvirt forked between has ended.
        try:
            reaper.wait_gone(os.pidfd_open(self.pid))
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        except OSError:  # gone already, or another process's child
            return

    def _read(self) -> int | None:
        try:
            return int(self._pid_file.read_text())
        except (OSError, ValueError):
            if self._over.is_set():
                raise InterruptedError from None
            return None


class LibvirtMachine:
    """A Machine on a libvirt domain; `pid` is known where QEMU runs under this very process."""

    def __init__(self, libvirt: Any, domain: Any, name: str, parenthood: Parenthood | None) -> None:
        self._libvirt = libvirt
        self._monitor: Any = importlib.import_module("libvirt_qemu").qemuMonitorCommand
        self._domain = domain
        self._name = name
        self._domain_name: str = domain.name()
        self._parenthood = parenthood
        self._pid = parenthood.started() if parenthood is not None else None

    @property
    def name(self) -> str:
        return self._name

    def state(self) -> MachineState:
        try:
            number = call_within(CALL_S, f"state of machine {self._name}", lambda: self._domain.state()[0])
        except self._libvirt.libvirtError:
            return MachineState.GONE
        if number == self._libvirt.VIR_DOMAIN_RUNNING:
            return MachineState.RUNNING
        if number == self._libvirt.VIR_DOMAIN_PAUSED:
            return MachineState.PAUSED
        return MachineState.GONE

    def resume(self) -> None:
        try:
            call_within(CALL_S, f"resuming machine {self._name}", self._domain.resume)
        except (self._libvirt.libvirtError, DeadlineMissed) as error:
            raise MonitorError(f"{self._name} cannot be resumed: {error}") from error

    def qmp(self, command: str, **arguments: Any) -> Any:
        request: dict[str, Any] = {"execute": command}
        if arguments:
            request["arguments"] = arguments
        try:
            text = call_within(
                CALL_S, f"monitor of machine {self._name}", lambda: self._monitor(self._domain, json.dumps(request), 0)
            )
        except (self._libvirt.libvirtError, DeadlineMissed) as error:
            raise MonitorError(f"{command} on {self._name}: {error}") from error
        answer = json.loads(text)
        if "error" in answer:
            raise MonitorError(f"{command} on {self._name}: {answer['error'].get('desc', answer['error'])}")
        return answer.get("return")

    def pid(self) -> int | None:
        return self._pid

    def processor_s(self) -> float | None:
        return None if self._pid is None else reaper.processor_s(self._pid)

    def ending(self) -> str | None:
        return None if self._parenthood is None else self._parenthood.ending()

    def destroy(self) -> None:
        """SIGKILL first where the process is known: libvirt asks with SIGTERM and waits, and a gated guest is deaf."""
        if self._pid is not None:
            handle = reaper.end_process(self._pid, self._domain_name)
            if handle is not None:
                reaper.wait_gone(handle, DESTROY_S)
        try:
            call_within(DESTROY_S, f"destroying machine {self._name}", self._domain.destroy)
        except (self._libvirt.libvirtError, DeadlineMissed):
            # Gone already, or its daemon is: then the process may still be there, on this computer at least.
            reaper.end_all(f"guest={self._domain_name},")
