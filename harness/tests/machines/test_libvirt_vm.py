# SPDX-License-Identifier: Apache-2.0
"""libvirt's embedded driver with real QEMUs that boot nothing: firmware is guest enough for all of this."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sundial.errors import HostLacks, RunFailed
from sundial.machines.connection import LibvirtHypervisor, open_hypervisor
from sundial.machines.hypervisor import Happening, LifecycleEvent, MachineState, MonitorError
from sundial.machines.memory import allocate, memory_sha256
from sundial.machines.migration import MigrationFailed, load_state, save_state
from sundial.machines.runtime import RuntimeFolder
from sundial.machines.waiting import in_parallel, wait_until
from sundial.plan.request import EMBEDDED

CACHE = Path(__file__).parents[3] / ".sundial" / "capabilities"


@pytest.fixture(scope="module")
def runtime() -> Iterator[RuntimeFolder]:
    folder = RuntimeFolder()
    yield folder
    folder.remove()


@pytest.fixture(scope="module")
def hypervisor(runtime: RuntimeFolder) -> Iterator[LibvirtHypervisor]:
    opened = open_hypervisor(EMBEDDED, runtime.path, CACHE, runtime.token)
    yield opened
    opened.close()


def xml(hypervisor: LibvirtHypervisor, name: str, *arguments: str) -> str:
    extra = "".join(f"<qemu:arg value='{argument}'/>" for argument in arguments)
    return f"""<domain type='qemu' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
    <name>{hypervisor.domain_name(name)}</name><memory unit='MiB'>64</memory><vcpu>1</vcpu>
    <os><type arch='x86_64' machine='q35'>hvm</type></os>
    <devices><controller type='usb' model='none'/><memballoon model='none'/></devices>
    <qemu:commandline>{extra}</qemu:commandline></domain>"""


OPENING = """
import sys
from pathlib import Path
from sundial.machines.connection import open_hypervisor
from sundial.machines.runtime import RuntimeFolder
from sundial.plan.request import EMBEDDED
folder = RuntimeFolder()
open_hypervisor(EMBEDDED, folder.path, Path(sys.argv[1]), folder.token).close()
folder.remove()
"""
UNMOVED = """
import ctypes, subprocess, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
sys.exit(subprocess.run([sys.executable, *sys.argv[1:]]).returncode)
"""
"""A parent of orphans that does not take notice of their end, as some first processes of containers are."""


@pytest.mark.vm
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_libvirt_learns_what_qemu_can_do_whoever_is_parent_of_orphans(tmp_path: Path, umask: int) -> None:
    words = [sys.executable, "-c", UNMOVED, "-c", OPENING, str(tmp_path / "cache")]
    subprocess.run(words, check=True, umask=umask)
    assert list((tmp_path / "cache").iterdir())


@pytest.mark.vm
def test_the_life_of_two_machines_started_at_once(hypervisor: LibvirtHypervisor) -> None:
    events: list[LifecycleEvent] = []
    hypervisor.listen(events.append)
    machines = in_parallel([lambda name=name: hypervisor.start(name, xml(hypervisor, name)) for name in ("a", "b")])
    try:
        assert [machine.name for machine in machines] == ["a", "b"]
        assert all(machine.state() is MachineState.PAUSED for machine in machines)
        assert machines[0].qmp("query-status")["status"] in ("paused", "prelaunch")
        with pytest.raises(MonitorError, match="no-such-command"):
            machines[0].qmp("no-such-command")
        machines[0].resume()
        assert machines[0].state() is MachineState.RUNNING
    finally:
        in_parallel([machine.destroy for machine in machines])
    assert all(machine.state() is MachineState.GONE for machine in machines)
    machines[0].destroy()
    ends = {("a", Happening.STOPPED), ("b", Happening.STOPPED)}
    stopped = lambda: ends <= {(event.machine, event.happening) for event in events}  # noqa: E731
    wait_until(stopped, seconds=60, what="events of both ends")
    assert LifecycleEvent("a", Happening.RESUMED, "unpaused") in events


def save_one(hypervisor: LibvirtHypervisor, runtime: RuntimeFolder, state: Path, *arguments: str) -> None:
    """Start a machine, stop it, and write its state."""
    source = hypervisor.start("source", xml(hypervisor, "source", *arguments))
    try:
        source.resume()
        source.qmp("stop")
        save_state(source, state, runtime.path)
    finally:
        source.destroy()


INCOMING = ("-incoming", "defer", "-global", "migration.announce-rounds=0")


@pytest.mark.vm
def test_a_state_saved_from_one_machine_starts_others(
    hypervisor: LibvirtHypervisor, runtime: RuntimeFolder, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    save_one(hypervisor, runtime, state)
    copies = [hypervisor.start(name, xml(hypervisor, name, *INCOMING)) for name in ("one", "two")]
    try:
        for machine in copies:
            load_state(machine, state, runtime.path)
            assert machine.qmp("query-status")["status"] == "paused"
            machine.resume()
            assert machine.state() is MachineState.RUNNING
    finally:
        in_parallel([machine.destroy for machine in copies])
    assert not list(runtime.path.glob("m*"))


def with_memory(path: Path, share: str) -> tuple[str, ...]:
    backend = f"memory-backend-file,id=m,size=64M,mem-path={path},share={share}"
    return ("-object", backend, "-machine", "memory-backend=m")


@pytest.mark.vm
def test_memory_in_a_file_stays_out_of_the_state_and_is_not_written_by_who_maps_it(
    hypervisor: LibvirtHypervisor, runtime: RuntimeFolder, tmp_path: Path
) -> None:
    memory, state = tmp_path / "memory", tmp_path / "state"
    allocate(memory, 64 << 20)
    save_one(hypervisor, runtime, state, *with_memory(memory, "on"))
    before = memory_sha256(memory)
    assert state.stat().st_size < 1 << 20
    assert any(memory.read_bytes()), "the firmware has used it"
    machine = hypervisor.start("copy", xml(hypervisor, "copy", *with_memory(memory, "off"), *INCOMING))
    try:
        load_state(machine, state, runtime.path)
        first = machine.qmp("human-monitor-command", **{"command-line": "xp /16xb 0x400"})
        machine.qmp("system_reset")  # the firmware writes to all that it uses
        machine.resume()
        wait_until(lambda: machine.state() is MachineState.RUNNING, seconds=60, what="the machine")
    finally:
        machine.destroy()
    bytes_there = memory.read_bytes()[0x400:0x410]
    assert [int(word, 16) for word in re.findall(r"0x([0-9a-f]{2})\b", first)] == list(bytes_there)
    assert memory_sha256(memory) == before


@pytest.mark.vm
def test_a_cut_state_is_refused_and_not_waited_for(
    hypervisor: LibvirtHypervisor, runtime: RuntimeFolder, tmp_path: Path
) -> None:
    (tmp_path / "state").write_bytes(b"QEVM" + bytes(100))
    machine = hypervisor.start("cut", xml(hypervisor, "cut", "-incoming", "defer"))
    try:
        with pytest.raises(MigrationFailed, match="restoring cut"):
            load_state(machine, tmp_path / "state", runtime.path)
    finally:
        machine.destroy()


@pytest.mark.vm
def test_a_machine_killed_from_outside_is_told(hypervisor: LibvirtHypervisor) -> None:
    events: list[LifecycleEvent] = []
    hypervisor.listen(events.append)
    machine = hypervisor.start("victim", xml(hypervisor, "victim"))
    machine.resume()
    pid = machine.pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    # The hypervisor may report the end of an earlier test's machine here.
    ended = ("victim", Happening.STOPPED)
    has_stopped = lambda: ended in [(event.machine, event.happening) for event in events]  # noqa: E731
    wait_until(has_stopped, seconds=60, what="the event of the end")
    assert machine.state() is MachineState.GONE


@pytest.mark.vm
def test_an_impossible_machine_names_itself(hypervisor: LibvirtHypervisor) -> None:
    with pytest.raises(RunFailed, match="broken: libvirt could not start it"):
        hypervisor.start("broken", xml(hypervisor, "broken", "-no-such-option"))


def test_a_daemon_that_does_not_answer_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("libvirt", reason="python3-libvirt is not installed")
    path = tmp_path / "libvirt-sock"
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(path))
        mute.listen(5)
        with pytest.raises(RunFailed, match="libvirt does not answer"):
            open_hypervisor(f"qemu+unix:///session?socket={path}", tmp_path, CACHE, "sundial-test", open_s=1.0)


def test_a_daemon_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("libvirt", reason="python3-libvirt is not installed")
    with pytest.raises(HostLacks, match="libvirt cannot be reached"):
        open_hypervisor(f"qemu+unix:///session?socket={tmp_path / 'none'}", tmp_path, CACHE, "sundial-test")
