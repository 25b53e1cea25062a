# SPDX-License-Identifier: Apache-2.0
"""A hypervisor without machines, for tests of everything above it and for dry runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sundial.errors import RunFailed
from sundial.machines.hypervisor import Happening, LifecycleEvent, Listener, MachineState, MonitorError


class FakeMachine:
    """Does what is asked and remembers it; `answers` gives QMP results by command."""

    def __init__(self, name: str, hypervisor: FakeHypervisor) -> None:
        self._name = name
        self._hypervisor = hypervisor
        self._state = MachineState.PAUSED
        self.answers: dict[str, Any] = {"query-status": {"status": "paused"}}
        self.asked: list[str] = []
        self.used_s: float | None = None

    @property
    def name(self) -> str:
        return self._name

    def state(self) -> MachineState:
        return self._state

    def resume(self) -> None:
        if self._state is MachineState.GONE:
            raise MonitorError(f"{self._name} is gone")
        self._state = MachineState.RUNNING
        self._hypervisor.resumed.append(self._name)
        self._hypervisor.happen(self._name, Happening.RESUMED, "unpaused")

    def qmp(self, command: str, **arguments: Any) -> Any:
        self.asked.append(command)
        if self._state is MachineState.GONE:
            raise MonitorError(f"{self._name} is gone")
        return self.answers.get(command, {})

    def pid(self) -> int | None:
        return None

    def processor_s(self) -> float | None:
        return self.used_s

    def ending(self) -> str | None:
        return None

    def destroy(self) -> None:
        if self._state is not MachineState.GONE:
            self.end("destroyed")

    def end(self, reason: str) -> None:
        """The machine ends, as by `reason`."""
        self._state = MachineState.GONE
        self._hypervisor.happen(self._name, Happening.STOPPED, reason)


class FakeHypervisor:
    """A Hypervisor whose machines are FakeMachines; `broken` names those that cannot be started."""

    def __init__(self, broken: frozenset[str] = frozenset()) -> None:
        self.machines: dict[str, FakeMachine] = {}
        self.xml: dict[str, str] = {}
        self.resumed: list[str] = []
        self.closed = False
        self.on_start: Callable[[FakeMachine], None] | None = None
        self._broken = set(broken)
        self._listeners: list[Listener] = []

    def start(self, name: str, domain_xml: str) -> FakeMachine:
        if name in self._broken:
            raise RunFailed("libvirt could not start it: it is broken", machine=name)
        machine = FakeMachine(name, self)
        self.machines[name] = machine
        self.xml[name] = domain_xml
        self.happen(name, Happening.STARTED, "booted")
        if self.on_start is not None:
            self.on_start(machine)
        return machine

    def listen(self, listener: Listener) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def versions(self) -> dict[str, str]:
        return {"qemu": "0.0.0", "libvirt": "0.0.0"}

    def virsh(self, argv: Sequence[str]) -> str:
        return " ".join(argv)

    def close(self) -> None:
        self.closed = True

    def refuse(self, name: str) -> None:
        """From now on this machine cannot be started."""
        self._broken.add(name)

    def happen(self, name: str, happening: Happening, reason: str) -> None:
        """Tell the listeners."""
        for listener in list(self._listeners):
            listener(LifecycleEvent(name, happening, reason))
