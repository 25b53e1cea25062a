# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with real guests: named, in time, with what was finished kept, and with nothing left behind."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sundial.machines import reaper
from sundial.machines.confinement import holds
from sundial.machines.waiting import wait_until
from sundial.plan.confinement import FILE_BYTES_MOST
from sundial.run.places import Places
from tests.run.live import END_S, LiveRun, evidence, night, require_guests, write_scenario

pytestmark = [pytest.mark.vm, pytest.mark.timeout(900), pytest.mark.spread]


@pytest.fixture(autouse=True)
def guests() -> None:
    require_guests()


@pytest.fixture(params=["virtual", night("real")])
def clock(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def assert_failed(run: LiveRun, *words: str, batches: int = 1) -> None:
    status, output = run.end()
    assert status == 4, output
    for word in words:
        assert word in output
    assert run.leftovers() == []
    record = run.record()
    assert record["status"] == "failed"
    assert words[0] in record["error"]["message"]
    assert run.kept_batches() >= batches


def test_a_guest_killed(tmp_path: Path, clock: str) -> None:
    run = LiveRun(write_scenario(tmp_path), tmp_path / "run", "--clock", clock)
    run.wait_batches(3)
    run.kill(f"guest={run.token}-server,")
    assert_failed(run, "server: the machine ended before the run: killed by SIGKILL", batches=3)


def test_a_kernel_panic(tmp_path: Path, clock: str) -> None:
    # Written before the runner does anything else; the guest's own `panic` command, so to speak.
    files = {"server": {"/proc/sysrq-trigger": "c"}}
    run = LiveRun(write_scenario(tmp_path), tmp_path / "run", "--clock", clock, files=files)
    run.remember()
    status, output = run.end()
    assert status == 4, output
    assert "server: its kernel panicked: Kernel panic - not syncing" in output
    assert "last lines of the console" in output
    assert "sysrq" in output
    assert run.leftovers() == []
    assert run.record()["status"] == "failed"


# Judged by what guests wrote, not by a clock. Virtual time soon passes the client's patience, too.
@pytest.mark.parametrize("clock", ["virtual", night("real")])
def test_a_server_application_that_crashes_in_the_middle(tmp_path: Path, clock: str) -> None:
    server = "#!/bin/sh\necho ready\nbusybox sleep 1\nkill -SEGV $$\n"
    files = {"server": {"/usr/lib/sundial/echo-server": server}}
    run = LiveRun(write_scenario(tmp_path), tmp_path / "run", "--clock", clock, files=files)
    run.remember()
    status, output = run.end()
    assert status == 4, output
    assert "server: " in output
    assert "echo-server" in output
    assert run.leftovers() == []
    record = run.record()
    assert record["status"] == "failed"
    assert record["error"]["machine"] == "server"
    if clock == "virtual":
        # An exact instant: the program's end, and `linger` after it.
        again = LiveRun(tmp_path / "hurt.yaml", tmp_path / "again", files=files)
        assert again.end()[0] == 4
        assert again.record()["error"] == record["error"]
        assert record["error"]["end_ns"] == record["time"]["virtual_ns"]
        assert evidence(run.out) == evidence(again.out)


def test_the_fabric_killed(tmp_path: Path, clock: str) -> None:
    run = LiveRun(write_scenario(tmp_path), tmp_path / "run", "--clock", clock)
    run.wait_batches(2)
    run.kill("sundial-fabric")
    assert_failed(run, "fabric: was killed by SIGKILL", batches=2)


# Each clock has its own signs of life: in the gate one hang of each.
@pytest.mark.parametrize("clock", ["virtual", night("real")])
def test_a_guest_that_stands_still_is_found_and_named(tmp_path: Path, clock: str) -> None:
    # A raw client goes on sending its datagram every second.
    run = LiveRun(write_scenario(tmp_path, app="raw"), tmp_path / "run", "--clock", clock)
    run.wait_batches(2)
    run.kill(f"guest={run.token}-server,", signal.SIGSTOP)
    status, output = run.end()
    assert status == 4, output
    # Stopped with the lock of the shared memory, it is the fabric that notices first.
    assert "server: hung: no progress" in output or "server: QEMU does not give back the lock" in output
    assert run.leftovers() == []
    assert run.record()["status"] == "failed"
    assert run.kept_batches() >= 2


@pytest.mark.night
def test_the_harness_killed(tmp_path: Path, clock: str) -> None:
    run = LiveRun(write_scenario(tmp_path), tmp_path / "run", "--clock", clock)
    run.wait_batches(2)
    run.process.kill()
    run.end()
    wait_until(lambda: (tmp_path / "run").is_dir() and not run.leftovers(), seconds=END_S, what="the guard's work")
    assert run.record()["status"] == "interrupted"
    assert run.kept_batches() >= 2


def test_the_guard_killed(tmp_path: Path) -> None:
    run = LiveRun(write_scenario(tmp_path, sizes="0:256:32", calls=10), tmp_path / "run")
    run.wait_batches(2)
    os.kill(run.guard(), signal.SIGKILL)
    status, output = run.end()
    assert status == 0, output
    assert "Traceback" not in output
    assert run.leftovers() == []
    assert run.record()["status"] == "complete"


def test_the_guard_and_the_harness_killed(tmp_path: Path) -> None:
    run = LiveRun(write_scenario(tmp_path), tmp_path / "run")
    run.wait_batches(2)
    os.kill(run.guard(), signal.SIGKILL)
    run.process.kill()
    run.end()
    gone = lambda: not [pid for pid in reaper.processes_of(run.token) if reaper.command_line(pid)]  # noqa: E731
    wait_until(gone, seconds=END_S, what="the machines and the fabric, which notice by themselves,")
    assert run.partial.is_dir()
    again = LiveRun(tmp_path / "hurt.yaml", tmp_path / "run")
    status, output = again.end()
    assert (status, run.record()["status"]) == (2, "interrupted"), output
    assert run.kept_batches() >= 2
    assert run.leftovers() == []


@pytest.mark.parametrize("clock", [night("virtual"), "real"])
def test_a_fabric_that_is_stopped_is_the_one_that_is_named(tmp_path: Path, clock: str) -> None:
    run = LiveRun(write_scenario(tmp_path), tmp_path / "run", "--clock", clock)
    run.wait_batches(2)
    run.kill("sundial-fabric", signal.SIGSTOP)
    assert_failed(run, "fabric: hung: no progress", batches=2)


def test_qemu_has_the_rights_of_one_machine_until_the_run_is_interrupted(tmp_path: Path, clock: str) -> None:
    run = LiveRun(write_scenario(tmp_path), tmp_path / "run", "--clock", clock)
    run.wait_batches(2)
    pid = run.pid_of(f"guest={run.token}-client,")
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    rights = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    network = Path(f"/proc/{pid}/ns/net").readlink()
    limits = Path(f"/proc/{pid}/limits").read_text()
    run.process.send_signal(signal.SIGINT)
    status, output = run.end()
    assert status == 130, output
    assert run.leftovers() == []
    assert run.record()["status"] == "interrupted"
    assert run.kept_batches() >= 2
    assert (tmp_path / "run" / "wire" / "counters.json").is_file()
    host = holds(Places().confine)
    assert (rights["NoNewPrivs"], rights["Seccomp"]) == ("1", "2")
    assert re.search(rf"^Max file size +{FILE_BYTES_MOST} ", limits, re.MULTILINE)
    if host.user:
        assert "0" not in rights["Uid"].split()
        assert int(rights["CapEff"], 16) in (0, 1 << 2)  # CAP_DAC_READ_SEARCH
    if host.network:
        assert network != Path("/proc/self/ns/net").readlink()


def test_interrupted_twice(tmp_path: Path) -> None:
    run = LiveRun(write_scenario(tmp_path), tmp_path / "run")
    run.wait_batches(2)
    run.process.send_signal(signal.SIGINT)
    run.process.send_signal(signal.SIGINT)
    status, output = run.end()
    assert status == 130, output
    assert run.leftovers() == []
    assert run.record()["status"] == "interrupted"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MiB, where one may mount."""
    place = tmp_path / "small"
    place.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "sundial-test", str(place)], capture_output=True, check=False
    )
    if mount.returncode != 0:
        pytest.skip("mounting a small tmpfs needs root")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk(tmp_path: Path, small_disk: Path, clock: str) -> None:
    run = LiveRun(write_scenario(tmp_path), small_disk / "run", "--clock", clock)
    run.wait_batches(2)
    status, output = run.end()
    assert status == 4, output
    assert "disk is full" in output
    assert run.leftovers() == []
    assert run.record()["status"] == "failed"
    assert run.kept_batches() >= 2


def test_libvirt_that_does_not_answer(tmp_path: Path) -> None:
    path = tmp_path / "libvirt-sock"
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(path))
        mute.listen(5)
        uri = f"qemu+unix:///session?socket={path}"
        run = LiveRun(write_scenario(tmp_path), tmp_path / "run", "--connect", uri)
        status, output = run.end()
    assert status == 4, output
    assert "libvirt does not answer" in output
    assert not (tmp_path / "run").exists()


def test_a_deadline(tmp_path: Path) -> None:
    run = LiveRun(write_scenario(tmp_path, deadline="2 s"), tmp_path / "run")
    run.wait_batches(1)
    assert_failed(run, "the scenario's deadline of 2 s passed; still waiting for client")
    # An exact instant, so captures and samples are those of any host: `linger` after the deadline.
    assert run.record()["time"]["virtual_ns"] == 2_050_000_000


@pytest.mark.night
def test_two_runs_at_once_in_one_checkout(tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path, sizes="0:64:16", calls=20)
    one, two = (LiveRun(scenario, tmp_path / name) for name in ("one", "two"))
    for run in (one, two):
        run.wait_batches(1)
    assert one.token != two.token
    assert one.runtime != two.runtime
    for run in (one, two):
        status, output = run.end()
        assert status in (0, 1), output
        assert run.leftovers() == []
        assert run.record()["status"] == "complete"
    # Neither saw anything of the other: the wires are the same to the byte.
    assert one.record()["captures"] == two.record()["captures"]


def test_another_run_is_not_disturbed_by_one_that_dies(tmp_path: Path) -> None:
    doomed = LiveRun(write_scenario(tmp_path), tmp_path / "doomed")
    doomed.wait_batches(1)
    other = LiveRun(write_scenario(tmp_path, sizes="0:64:16", calls=20), tmp_path / "other")
    other.wait_batches(1)
    os.kill(doomed.process.pid, signal.SIGKILL)
    status, output = other.end()
    assert status in (0, 1), output
    assert other.record()["status"] == "complete"
    doomed.end()
    ended = lambda: (tmp_path / "doomed").is_dir() and not doomed.leftovers()  # noqa: E731
    wait_until(ended, seconds=END_S, what="the guard's work")
    assert doomed.record()["status"] == "interrupted"
    assert doomed.kept_batches() >= 1
