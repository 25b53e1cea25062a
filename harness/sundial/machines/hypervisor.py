# SPDX-License-Identifier: Apache-2.0
"""What the rest of the harness asks of whatever runs machines: libvirt (`connection`) or, in tests, `fake`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol


class MachineState(Enum):
    """Where a machine is."""

    RUNNING = "running"
    PAUSED = "paused"
    GONE = "gone"


class Happening(Enum):
    """What can happen to a machine by itself or by our doing."""

    STARTED = "started"
    PAUSED = "paused"
    RESUMED = "resumed"
    STOPPED = "stopped"
    """It ended: `reason` says shutdown, destroyed, failed ..."""
    CRASHED = "crashed"
    """The guest reported a panic."""
    LOST = "lost"
    """It cannot be reached any more, whatever it does: `reason` is the whole sentence."""


@dataclass(frozen=True)
class LifecycleEvent:
    """One thing that happened to one machine."""

    machine: str
    happening: Happening
    reason: str


Listener = Callable[[LifecycleEvent], None]
"""Called on a thread of the hypervisor's; must be quick and must not call back into it."""


class Machine(Protocol):
    """One started machine."""

    @property
    def name(self) -> str: ...

    def state(self) -> MachineState: ...

    def resume(self) -> None:
        """Let the guest run."""

    def qmp(self, command: str, **arguments: Any) -> Any:
        """The `return` of a QMP command. Raises MonitorError."""

    def pid(self) -> int | None:
        """The process number where it can be known (same host)."""

    def processor_s(self) -> float | None:
        """Processor time that its process has used so far, where that can be known."""

    def ending(self) -> str | None:
        """How its process ended, where that is known: `killed by SIGKILL`, `exit status 1`."""

    def destroy(self) -> None:
        """End it at once; nothing happens when it is gone already."""


class Hypervisor(Protocol):
    """Starts machines and reports what becomes of them."""

    def start(self, name: str, domain_xml: str) -> Machine:
        """Define and start one machine, its guest not running yet. Safe to call from several threads at once.

        Raises RunFailed naming the machine.
        """

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Tell `listener` of everything that happens from now on, until what is answered is called."""

    def versions(self) -> dict[str, str]:
        """Of `qemu` and `libvirt`."""

    def virsh(self, argv: Sequence[str]) -> str:
        """What virsh would print. Raises BadInput, RunFailed."""

    def close(self) -> None:
        """Let go. Machines are to be destroyed before."""


class MonitorError(Exception):
    """A QMP command was refused, or the monitor is gone."""
