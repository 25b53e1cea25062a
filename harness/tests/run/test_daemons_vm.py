# SPDX-License-Identifier: Apache-2.0
"""Runs through libvirt daemons, which the tests start: of a user, of the system; and daemons that die."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from sundial.machines import reaper
from sundial.machines.waiting import wait_until
from sundial.run.places import Places
from tests.machines.daemons import (
    as_user,
    computer,
    daemon_pid,
    machines_of,
    require_namespaces,
    require_programs,
    session_daemon,
    system_daemon,
)
from tests.run.live import END_S, HARNESS, LiveRun, night, require_guests, sundial, write_scenario

pytestmark = [pytest.mark.vm, pytest.mark.timeout(900)]


@dataclass
class Reached:
    """A daemon, and how a harness reaches it."""

    uri: str
    pid: int
    through: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)

    def how(self) -> dict[str, Any]:
        return {"through": self.through, "variables": self.variables}

    def machines(self) -> list[str]:
        names = [f"{name}={value}" for name, value in self.variables.items()]
        return machines_of([*self.through, "env", *names, "virsh", "-c", self.uri])


@pytest.fixture(autouse=True)
def guests() -> None:
    require_guests()
    require_programs("virsh")


@pytest.fixture
def socket_of_a_user() -> Iterator[Reached]:
    with session_daemon() as daemon:
        yield Reached(daemon.uri, daemon_pid(daemon.process))


@pytest.fixture
def session() -> Iterator[Reached]:
    """`qemu:///session`: libvirt means that of root only for ordinary users."""
    with session_daemon() as daemon:
        yield Reached("qemu:///session", daemon_pid(daemon.process), as_user(), daemon.variables)


@pytest.fixture
def system(tmp_path: Path) -> Iterator[Reached]:
    require_namespaces("--mount")
    require_programs("libvirtd")
    with computer(tmp_path) as place, system_daemon(place) as started:
        yield Reached("qemu:///system", daemon_pid(started), place.command(cwd=HARNESS))


@pytest.fixture
def daemon(request: pytest.FixtureRequest) -> Reached:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Reached)
    return found


@pytest.mark.parametrize(
    ("daemon", "clock"),
    [
        ("system", "virtual"),
        night("system", "real"),
        *(night(name, clock) for name in ("socket_of_a_user", "session") for clock in ("virtual", "real")),
    ],
    indirect=["daemon"],
)
def test_a_run_and_what_it_leaves_when_killed(tmp_path: Path, daemon: Reached, clock: str) -> None:
    scenario = write_scenario(tmp_path, sizes="0:64:16", calls=5)
    run = LiveRun(scenario, tmp_path / "run", "--connect", daemon.uri, "--clock", clock, **daemon.how())
    run.wait_batches(1)
    status, output = run.end()
    assert status == 0, output
    assert (run.leftovers(), daemon.machines()) == ([], [])

    # Cold, for then it boots a guest to be saved, too, which writes files of ours.
    options = ["--connect", daemon.uri, "--clock", clock, *(["--cold"] if clock == "virtual" else [])]
    hurt = LiveRun(write_scenario(tmp_path), tmp_path / "hurt", *options, **daemon.how())
    hurt.wait_batches(1)
    assert len(daemon.machines()) == 2
    assert uids(hurt) == [str(os.geteuid())] * 2, "QEMU is the user who asked"
    hurt.process.kill()
    hurt.process.communicate()
    wait_until(lambda: not hurt.leftovers() and not daemon.machines(), seconds=END_S, what="everything to be gone")
    assert hurt.record()["status"] == "interrupted"


@pytest.mark.parametrize("clock", [night("virtual"), "real"])
def test_a_daemon_that_dies_ends_the_run(tmp_path: Path, socket_of_a_user: Reached, clock: str) -> None:
    uri = socket_of_a_user.uri
    run = LiveRun(write_scenario(tmp_path), tmp_path / "run", "--connect", uri, "--clock", clock)
    run.wait_batches(1)
    os.kill(socket_of_a_user.pid, signal.SIGKILL)
    status, output = run.end()
    assert status == 4
    assert f"the libvirt daemon at {uri} is gone: end of file" in output
    assert run.leftovers() == []
    assert run.record()["status"] == "failed"


def uids(run: LiveRun) -> list[str]:
    """Users of the QEMUs of a run."""
    pids = [pid for pid in reaper.processes_of(run.token) if reaper.command_line(pid).startswith(b"/usr/bin/qemu")]
    statuses = [Path(f"/proc/{pid}/status").read_text() for pid in pids]
    return [re.findall(r"^Uid:\s+(\d+)", status, re.MULTILINE)[0] for status in statuses]


@pytest.mark.parametrize("daemon", ["session", night("socket_of_a_user"), night("system")], indirect=True)
def test_a_topology_is_up_through_a_daemon(tmp_path: Path, daemon: Reached) -> None:
    topology = tmp_path / "daemon-pair.yaml"
    topology.write_text((Places().checkout / "topologies" / "two-hosts-switched.yaml").read_text())
    done = sundial("up", str(topology), "--json", "--connect", daemon.uri, **daemon.how())
    assert done.returncode == 0, done.stderr
    kept = json.loads(done.stdout)
    try:
        result = sundial("exec", "--topology", "daemon-pair", "client", "--", "ping", "-c", "1", "10.0.0.2")
        assert result.returncode == 0, result.stdout
        assert len(daemon.machines()) == 2
    finally:
        down = sundial("down", "daemon-pair")
        shutil.rmtree(kept["final"], ignore_errors=True)
    assert down.returncode == 0, down.stderr
    assert daemon.machines() == []


@pytest.mark.night
def test_a_daemon_that_dies_takes_the_topology_down(tmp_path: Path, socket_of_a_user: Reached) -> None:
    topology = tmp_path / "lost-pair.yaml"
    topology.write_text((Places().checkout / "topologies" / "two-hosts-switched.yaml").read_text())
    uri = socket_of_a_user.uri
    done = sundial("up", str(topology), "--json", "--connect", uri)
    assert done.returncode == 0, done.stderr
    final = Path(json.loads(done.stdout)["final"])
    try:
        os.kill(socket_of_a_user.pid, signal.SIGKILL)
        wait_until(lambda: (final / "run.json").is_file(), seconds=END_S, what="the end of the topology")
        record = json.loads((final / "run.json").read_text())
    finally:
        shutil.rmtree(final, ignore_errors=True)
    assert record["status"] == "failed"
    machine, _, words = record["error"]["message"].partition(": ")
    assert (machine in ("client", "server"), words) == (True, f"the libvirt daemon at {uri} is gone: end of file")
    assert sundial("exec", "--topology", "lost-pair", "client", "--", "true").returncode == 2
