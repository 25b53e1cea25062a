# SPDX-License-Identifier: Apache-2.0
"""Machines on a second host: two network namespaces, ssh between them, and nothing else in common."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sundial.machines.waiting import wait_until
from sundial.model.catalog import ROOT
from tests.machines.daemons import (
    SecondHost,
    SshServer,
    computer,
    require_namespaces,
    second_host,
    ssh_server,
    system_daemon,
)
from tests.run.live import END_S, LiveRun, require_guests, sundial, write_scenario

pytestmark = [pytest.mark.vm, pytest.mark.timeout(900)]

TOPOLOGY = """\
description: one machine here, one on another host
hosts:
  b: {{connect: '{uri}'}}
machines:
  client:
    interfaces:
      eth0: {{address: 10.0.0.1/24}}
  server:
    on: b
    interfaces:
      eth0: {{address: 10.0.0.2/24}}
segments:
  lan:
    kind: switch
    rate: 100 Mbit/s
    forwarding_latency: 5 us
    queue_frames: 128
    mtu: 9000
    ports: ["client:eth0", "server:eth0"]
"""
AGENT_S = 60.0
"""By when an agent that hears nothing has ended everything."""


@pytest.fixture(autouse=True)
def guests() -> None:
    require_guests()


@pytest.fixture
def host(tmp_path: Path) -> Iterator[SecondHost]:
    (tmp_path / "b").mkdir()
    with second_host(tmp_path / "b", ROOT) as there:
        yield there


def topology(folder: Path, uri: str) -> Path:
    path = folder / "apart.yaml"
    path.write_text(TOPOLOGY.format(uri=uri))
    return path


def started(folder: Path, uri: str, out: str = "run", sizes: str = "0:8192:16", calls: int = 50) -> LiveRun:
    scenario = write_scenario(folder, sizes=sizes, calls=calls)
    return LiveRun(scenario, folder / out, "--topology", str(topology(folder, uri)), "--clock", "real")


def assert_called(run: Path, host: SecondHost) -> None:
    """A call went to another host and back, and each frame is accounted for there."""
    record = LiveRun.read(run)
    ran = record["hosts"]["b"]
    assert (ran["connect"], ran["machines"]) == (host.uri(), ["server"])
    counted = json.loads((run / "wire" / "counters.json").read_text())
    port = counted["segments"]["lan"]["ports"]["server:eth0"]
    frames = ran["frames"]["server:eth0"]
    # The word that it is done is the fabric's alone, and is not a frame of the wire.
    assert frames["to_machine"] == port["rx_frames"]
    assert port["tx_frames"] <= frames["to_fabric"] <= port["tx_frames"] + 1
    assert frames["undelivered"] == 0
    assert (run / "nodes" / "server" / "samples.jsonl").read_text().startswith('{"type":"hello"')
    assert host.ours() == ""


@pytest.mark.night
def test_a_call_goes_to_another_host_and_back(tmp_path: Path, host: SecondHost) -> None:
    status, output = started(tmp_path, host.uri(), sizes="0:8192:1024", calls=10).end()
    assert status == 0, output
    assert_called(tmp_path / "run", host)
    record = LiveRun.read(tmp_path / "run")

    # What it boots is there from now on; what is damaged is copied again.
    kept = sorted(host.computer.path("/home/tester/.cache/sundial/boot").iterdir())
    images = record["images"]["linux"]["sha256"]
    assert [path.name for path in kept] == sorted(images.values())
    before = [path.stat().st_ino for path in kept]
    kept[0].write_bytes(b"damaged")
    status, output = started(tmp_path, host.uri(), "again", sizes="0:64:32", calls=2).end()
    assert status == 0, output
    after = [path.stat().st_ino for path in sorted(kept[0].parent.iterdir())]
    assert (after[0] != before[0], after[1]) == (True, before[1])


@pytest.mark.night
def test_a_killed_harness_leaves_nothing_on_either(tmp_path: Path, host: SecondHost) -> None:
    run = started(tmp_path, host.uri())
    run.wait_batches(1)
    assert "qemu-system" in host.ours()
    run.process.kill()
    run.process.communicate()
    wait_until(lambda: not run.leftovers() and not host.ours(), seconds=END_S, what="everything to be gone")


@pytest.mark.night
def test_a_cut_connection_names_host_and_machine(tmp_path: Path, host: SecondHost) -> None:
    run = started(tmp_path, host.uri())
    run.wait_batches(1)
    host.cut()
    status, output = run.end()
    assert status == 4
    (line,) = [line for line in output.splitlines() if line.startswith("sundial: ")]
    assert line.startswith("sundial: server: the ")
    assert "host b" in line
    assert run.leftovers() == []
    wait_until(lambda: not host.ours(), seconds=AGENT_S, what="the other host's to be gone")


def test_a_killed_agent_names_host_and_machine_and_the_next_one_cleans_up(tmp_path: Path, host: SecondHost) -> None:
    run = started(tmp_path, host.uri())
    run.wait_batches(1)
    host.computer.run("pkill", "-KILL", "-f", "python3 -I -S -u -c")
    status, output = run.end()
    assert (status, "host b" in output, "sundial: server: " in output) == (4, True, True), output
    kept = sorted(host.computer.path("/home/tester/.cache/sundial/boot").iterdir())
    damaged, whole = (path.stat().st_ino for path in kept)
    kept[0].write_bytes(b"damaged")
    status, output = started(tmp_path, host.uri(), "next", sizes="0:8192:4096", calls=2).end()
    assert status == 0, output
    assert_called(tmp_path / "next", host)
    # What it boots was there; what is damaged is copied again.
    after = [path.stat().st_ino for path in kept]
    assert (after[0] != damaged, after[1]) == (True, whole)


def test_a_system_daemon_there_runs_qemu_as_who_asked(tmp_path: Path, host: SecondHost) -> None:
    with system_daemon(host.computer, python="/usr/bin/python3"):
        run = started(tmp_path, host.uri("system", "tester"))
        run.wait_batches(1)
        owners = host.computer.run("ps", "-C", "qemu-system-x86", "-o", "user=").split()
        run.process.kill()
        run.process.communicate()
        gone = lambda: not run.leftovers() and not host.ours()  # noqa: E731
        wait_until(gone, seconds=END_S, what="everything to be gone")
        listed = ("virsh", "-c", "qemu:///system", "list", "--all", "--name")
        wait_until(lambda: not host.computer.run(*listed).split(), seconds=END_S, what="libvirt to notice")
    assert owners == ["tester"]


def test_a_topology_is_up_on_both(tmp_path: Path, host: SecondHost) -> None:
    path = topology(tmp_path, host.uri())
    laid = "    on: b\n    files: {/etc/laid: {content: from here}}\n"
    path.write_text(path.read_text().replace("    on: b\n", laid))
    done = sundial("up", str(path), "--json")
    assert done.returncode == 0, done.stderr
    kept = json.loads(done.stdout)
    try:
        assert kept["hosts"] == {"b": host.uri()}
        pinged = sundial("exec", "--topology", "apart", "server", "--", "ping", "-c", "2", "-s", "8000", "10.0.0.1")
        assert pinged.returncode == 0, pinged.stdout
        assert sundial("exec", "--topology", "apart", "server", "--", "cat", "/etc/laid").stdout == "from here"
        socket = next(machine["console"] for machine in kept["machines"] if machine["name"] == "server")
        assert b"typed-4" in _typed(socket, b"echo typed-$((2+2))\n")
        listed = sundial("virsh", "--connect", host.uri(), "list", "--name")
        assert (listed.returncode, listed.stdout.strip().endswith("-server")) == (0, True), listed.stderr
        own = sundial("virsh", "--topology", "apart", "list", "--name")
        assert own.stdout.strip().endswith("-client")
    finally:
        down = sundial("down", "apart")
        console = (Path(kept["final"]) / "nodes" / "server" / "console.log").read_text(errors="replace")
        shutil.rmtree(kept["final"], ignore_errors=True)
    assert down.returncode == 0, down.stderr
    assert "typed-4" in console
    assert host.ours() == ""


def _typed(path: str, text: bytes) -> bytes:
    """What a console answers within some seconds."""
    import socket

    with socket.socket(socket.AF_UNIX) as stream:
        stream.connect(path)
        stream.settimeout(10.0)
        stream.sendall(text)
        said = b""
        while b"typed-4" not in said:
            said += stream.recv(4096)
    return said


def test_a_host_that_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    with second_host(tmp_path / "b", ROOT, settings="AllowStreamLocalForwarding no\n") as host:

        def refused(uri: str, out: str = "run") -> tuple[int, str]:
            status, output = started(tmp_path, uri, out).end()
            (line,) = [line for line in output.splitlines() if line.startswith("sundial: ")]
            assert "host b" in line
            return status, output

        for uri, words, hint in (
            (host.uri(known_hosts="/dev/null"), "Host key verification failed.", True),
            (host.uri(keyfile="/nonexistent"), "Permission denied", True),
            (host.uri().replace(":22/", ":23/"), "Connection refused", False),
        ):
            status, output = refused(uri)
            assert (status, words in output, "hint: " in output) == (3, True, hint), output
            assert not (tmp_path / "run").exists()
        status, output = refused(host.uri(), "forwarding")
        assert (status, "host b forwards no unix sockets" in output) == (4, True), output
        host.computer.run("mount", "--bind", "/dev/null", "/usr/bin/qemu-system-x86_64")
        status, output = refused(host.uri())
        assert (status, "sundial: host b has no qemu-system-x86_64" in output) == (3, True), output
        assert host.ours() == ""

        scenario = write_scenario(tmp_path)
        done = sundial("run", str(scenario), "--connect", host.uri(), "--out", str(tmp_path / "run"))
        line, remedy = done.stderr.splitlines()
        assert (done.returncode, line.endswith("is on another host, second, where a run's files are not")) == (2, True)
        assert remedy == "hint: name it below hosts: in the topology, and put machines on it"


@pytest.fixture
def neighbour(tmp_path: Path) -> Iterator[SshServer]:
    """sshd and libvirtd on this host: its files are ours."""
    require_namespaces("--mount")
    (tmp_path / "b").mkdir()
    with computer(tmp_path / "b") as place, system_daemon(place), ssh_server(place, "127.0.0.1", 20022) as server:
        yield server


@pytest.mark.night
@pytest.mark.parametrize("clock", ["virtual", "real"])
def test_a_daemon_of_this_host_through_ssh(tmp_path: Path, neighbour: SshServer, clock: str) -> None:
    uri = neighbour.uri("system", "root")
    scenario = write_scenario(tmp_path, sizes="0:64:16", calls=5)
    status, output = LiveRun(scenario, tmp_path / "run", "--connect", uri, "--clock", clock).end()
    assert status == 0, output
    unknown = neighbour.uri("system", "root", known_hosts="/dev/null")
    done = sundial("run", str(scenario), "--connect", unknown, "--out", str(tmp_path / "unknown"))
    assert (done.returncode, "Host key verification failed" in done.stderr) == (3, True), done.stderr
    listed = subprocess.run(
        neighbour.computer.command("virsh", "list", "--all", "--name"), capture_output=True, text=True, check=True
    )
    assert listed.stdout.split() == []
