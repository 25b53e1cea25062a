# SPDX-License-Identifier: Apache-2.0
"""`sundial exec` in machines that are up, and their captures while they are."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sundial.machines.waiting import wait_until
from tests.run import live
from tests.run.live import END_S, HARNESS, VARIABLES, night, require_guests, sundial, up

pytestmark = [pytest.mark.vm, pytest.mark.timeout(900)]

PAIR = """
description: One machine of each kernel
machines:
  linux:
    interfaces:
      eth0: {address: 10.0.0.1/24}
  node:
    image: ssscore
    interfaces:
      eth0: {address: 10.0.0.2/24}
segments:
  lan: {kind: switch, rate: 100 Mbit/s, ports: ["linux:eth0", "node:eth0"]}
"""
NAME = "exec-pair"


@pytest.fixture(scope="module", params=[night("real"), "virtual"])
def kept(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    require_guests("linux", "ssscore")
    topology = tmp_path_factory.mktemp("up") / f"{NAME}.yaml"
    topology.write_text(PAIR)
    with up(topology, "--clock", request.param) as found:
        yield found
    shutil.rmtree(found["final"], ignore_errors=True)


def run(*argv: str, given: bytes = b"") -> subprocess.CompletedProcess[str]:
    return sundial("exec", "--topology", NAME, *argv, given=given)


def start(*argv: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """A command whose first line has come."""
    process = live.start(
        [sys.executable, "-m", "sundial.cli", "exec", "--topology", NAME, *argv],
        cwd=HARNESS,
        env=VARIABLES,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    return process


def test_status_output_and_input(kept: dict[str, Any]) -> None:
    done = run("linux", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")
    assert run("linux", "sh", "-c", "kill -TERM $$").returncode == 128 + signal.SIGTERM
    data = os.urandom(1_000_000)
    done = run("linux", "cat", given=data)
    assert done.stdout.encode("latin-1") == data
    done = run("linux", "sha256sum", given=data)
    assert done.stdout.split()[0] == hashlib.sha256(data).hexdigest()


def test_what_linux_tells_time_by_is_not_the_hosts(kept: dict[str, Any]) -> None:
    domain = (Path(kept["captures"]) / "nodes" / "linux" / "domain.xml").read_text()
    if 'type="kvm"' in domain:
        pytest.skip("KVM gives it a clock of its own")
    done = run("linux", "cat", "/sys/devices/system/clocksource/clocksource0/current_clocksource")
    # Under virtual time the TSC counts instructions.
    assert done.stdout == ("tsc\n" if "-icount" in domain else "hpet\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_reach_the_command_and_the_machine_goes_on(kept: dict[str, Any], number: signal.Signals) -> None:
    process = start("linux", "sh", "-c", "echo up; exec sleep 1000000")
    process.send_signal(number)
    process.communicate(timeout=END_S)
    assert process.returncode == 128 + number
    assert run("linux", "true").returncode == 0


def test_a_killed_exec_leaves_nothing_behind(kept: dict[str, Any]) -> None:
    process = start("linux", "sh", "-c", "trap '' HUP; echo up; while :; do sleep 1; done; : marked")
    process.kill()
    process.communicate()
    assert run("linux", "true").returncode == 0

    def gone() -> bool:
        return run("linux", "sh", "-c", "ps | grep -c '[:] marked'").stdout == "0\n"

    wait_until(gone, seconds=END_S, what="the end of the command in the guest")


def test_several_at_a_time_and_a_limit_of_time(kept: dict[str, Any]) -> None:
    sleeping = start("linux", "sh", "-c", "echo up; exec sleep 1000000")
    done = run("--timeout", "1 s", "linux", "sleep", "1000000")
    assert (done.returncode, done.stderr) == (124, "linux: sleep did not end within 1 s\n")
    sleeping.send_signal(signal.SIGINT)
    sleeping.communicate(timeout=END_S)
    assert sleeping.returncode == 128 + signal.SIGINT


def test_a_monitor_says_what_it_cannot(kept: dict[str, Any]) -> None:
    assert run("node", "--", "tasks").stdout.split()[:2] == ["task", "name"]
    refused = run("node", "tasks", given=b"x")
    assert (refused.returncode, refused.stderr.splitlines()[0]) == (
        2, "sundial: image ssscore does not support standard input"
    )  # fmt: skip


def test_input_to_a_machine_that_sleeps_breaks_no_promise(kept: dict[str, Any]) -> None:
    """Under the virtual clock a sleeping machine has promised the others silence until its next event."""
    script = "echo up; while read line; do ping -c 1 -W 10 10.0.0.2 > /dev/null || exit 1; echo $line; done"
    process = start("linux", "sh", "-c", script, stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    for number in range(200):
        process.stdin.write(b"%d\n" % number)
        process.stdin.flush()
        assert process.stdout.readline() == b"%d\n" % number, process.communicate()
        time.sleep(0.01)  # asleep again, when the next one comes
    assert process.communicate() == (b"", b"")
    assert process.returncode == 0


def test_tcpdump_runs_as_it_is(kept: dict[str, Any]) -> None:
    script = "tcpdump -c 2 -ni eth0 -w /tmp/x icmp 2> /tmp/said & until grep -q listening /tmp/said; do sleep 0.1; done"
    script += "; ping -c 4 10.0.0.2; wait; tcpdump -nr /tmp/x"
    done = run("linux", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("ICMP echo request") == 1


def test_a_frame_is_on_disk_while_the_machines_are_up(kept: dict[str, Any]) -> None:
    capture = Path(kept["captures"]) / "wire" / "lan.pcapng"
    before = capture.stat().st_size
    assert run("linux", "ping", "-c", "1", "10.0.0.2").returncode == 0
    wait_until(lambda: capture.stat().st_size > before, seconds=END_S, what="the frames")
    line = sundial("open", NAME, "--filter", "icmp", "--print").stdout
    # What is there now, in tshark instead of Wireshark: as if the topology had just gone down.
    line = line.replace("wireshark ", "tshark ").replace(" -k ", " -l ").replace(" --follow", "")

    def shown() -> bool:
        return "Echo (ping) reply" in subprocess.run(["sh", "-c", line], capture_output=True, text=True).stdout

    wait_until(shown, seconds=END_S, what="the reply in the capture")


def test_a_frame_that_is_too_long_for_its_segment_is_refused_and_recorded(kept: dict[str, Any]) -> None:
    script = "ip link set eth0 mtu 4000; ping -s 3000 -c 1 -W 1 10.0.0.2; ip link set eth0 mtu 1500; ping -c 1 10.0.0.2"
    done = run("linux", "sh", "-c", script)
    assert (done.returncode, "1 packets received" in done.stdout) == (0, True), done
    capture = Path(kept["captures"]) / "wire" / "lan.pcapng"
    # Cut off at the longest frame that comes in.
    refused = re.compile(rb"dropped: \d+ bytes, longest is 1514 \(linux:eth0\)")
    wait_until(lambda: refused.search(capture.read_bytes()) is not None, seconds=END_S, what="the frame's fate")


def test_a_kernel_that_panics_makes_the_run_a_failed_one(tmp_path: Path) -> None:
    require_guests()
    topology = tmp_path / "exec-panic.yaml"
    topology.write_text(PAIR)
    with up(topology) as found:
        ended = sundial("exec", "--topology", "exec-panic", "linux", "sh", "-c", "echo c > /proc/sysrq-trigger")
        assert (ended.returncode, ended.stderr.splitlines()[0]) == (4, "sundial: linux: it has ended")
        assert sundial("exec", "--topology", "exec-panic", "node", "tasks").returncode == 0
    record = json.loads((Path(found["final"]) / "run.json").read_text())
    shutil.rmtree(found["final"])
    assert record["status"] == "failed"
    assert record["error"]["message"] == "linux: its kernel panicked: Kernel panic - not syncing: sysrq triggered crash"


def test_a_folder_is_copied_there_and_back(kept: dict[str, Any], tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "data").write_bytes(os.urandom(200_000))
    (source / "run").write_text("#!/bin/sh\necho ran\n")
    (source / "run").chmod(0o755)
    (source / "link").symlink_to("run")
    done = sundial("cp", "--topology", NAME, str(source), "linux:/root/copy")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, "copied 5 entries, 200 kB")
    assert run("linux", "/root/copy/link").stdout == "ran\n"
    assert sundial("cp", "--topology", NAME, "linux:/root/copy", str(tmp_path / "back")).returncode == 0
    assert (tmp_path / "back" / "sub" / "data").read_bytes() == (source / "sub" / "data").read_bytes()
    assert (tmp_path / "back" / "link").readlink() == Path("run")
    assert run("linux", "sh", "-c", "ls -A /root; rm -r /root/copy").stdout == "copy\n"
    done = sundial("cp", "--topology", NAME, str(source), "node:/x")
    assert (done.returncode, "node boots ssscore, which takes no files" in done.stderr) == (2, True)


def test_several_machines_at_once(kept: dict[str, Any]) -> None:
    done = sundial("exec", "--topology", NAME, "--all", "--", "tasks")
    assert done.returncode == 127
    assert "linux | tasks: No such file or directory" in done.stderr
    assert done.stdout.startswith("node  | ")
