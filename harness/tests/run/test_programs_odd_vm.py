# SPDX-License-Identifier: Apache-2.0
"""What programs do to their machines: disks and memory that are taken, groups that are joined, addresses that are
added, machines that are stopped, services that go into the background."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.run.live import sundial
from tests.run.served import passed

pytestmark = pytest.mark.vm

TOPOLOGY = """\
topology:
  machines:
    client: {memory: 192 MiB, cmdline: rootfstype=tmpfs, interfaces: {eth0: {address: 10.0.0.1/24}}}
    server: {image: linux-python, interfaces: {eth0: {address: 10.0.0.2/24}}}
    third: {image: linux-python, interfaces: {eth0: {address: 10.0.0.3/24}}}
  segments:
    lan: {kind: switch, rate: 100 Mbit/s, ports: ["client:eth0", "server:eth0", "third:eth0"]}
"""
JOIN = r"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 5000))
s.setsockopt(0, 35, socket.inet_aton("239.1.2.3") + socket.inet_aton("{me}"))
print("joined", flush=True)
while True:
    data, peer = s.recvfrom(9000)
    s.sendto(data, peer)
"""
ODD = f"""\
{TOPOLOGY}
timeline:
  - {{at: 500 ms, for: 1 s, fill_disk: client, leave: 10001}}
  - {{at: 600 ms, for: 900 ms, take_memory: client, amount: 9999999}}
  - {{at: 700 ms, for: 700 ms, take_memory: server, leave: 7 MiB}}
  - {{at: 1600 ms, take_memory: client, leave: 3 MiB}}
  - {{at: 701 ms, fill_disk: server, amount: 1}}
workloads:
  - app: command
    ports: {{many: {{udp: 5000}}}}
    programs:
      join: {{on: server, role: service, argv: [python3.11, -c, {json.dumps(JOIN.replace("{", "{{").replace("}", "}}").replace("{{me}}", "{me}"))}], ready: {{line: joined}}}}
      write: {{on: client, shell: "sleep 0.9; dd if=/dev/zero of=/root/x bs=1k count=64 || echo full; sleep 0.8; dd if=/dev/zero of=/root/y bs=1k count=64", expect: {{stdout: {{contains: full}}}}}}
      eat: {{on: client, shell: "sleep 2.2; x=x; while true; do x=$x$x; done", expect: {{signal: KILL}}}}
      send:
        on: third
        argv: [python3.11, -c, "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('', 6000)); s.settimeout(5); s.setsockopt(0, 32, socket.inet_aton('{{me}}')); s.sendto(b'x' * 3000, ('239.1.2.3', 5000)); print(len(s.recv(9000)))"]
        after: [join]
        expect: {{stdout: {{contains: "3000"}}}}
"""  # noqa: E501


@pytest.mark.night
def test_disks_memory_and_groups_pass_and_repeat(tmp_path: Path) -> None:
    """A disk is full for a second; the kernel kills what needs more memory than is left; a group hears a datagram of
    three fragments. A second run is equal to the byte."""
    file = tmp_path / "odd.yaml"
    file.write_text(ODD)
    runs = [tmp_path / "first", tmp_path / "second"]
    for run in runs:
        passed(file, run)
    first, second = (json.loads((run / "run.json").read_text()) for run in runs)
    assert first["captures"] == second["captures"]
    names = ("client", "server", "third")
    assert {name for name in first["files"] if first["files"][name] != second["files"][name]} <= {
        f"nodes/{name}/domain.xml" for name in names
    }
    records = [json.loads(line) for name in names for line in _lines(runs[0], name) if '"amount"' in line]
    assert sorted(each["number"] for each in records) == [0, 0, 1, 1, 2, 2, 3, 4]
    assert b"timeline" not in (runs[0] / "wire/lan.pcapng").read_bytes(), "no wire changes"


def _lines(run: Path, machine: str) -> list[str]:
    return (run / "nodes" / machine / "samples.jsonl").read_text().splitlines()


ONE = """\
{topology}
workloads:
  - app: command
    ports: {{web: {{tcp: 80}}, ping: {{icmp: true}}}}
    programs:
{programs}
"""
WORDS = [
    (
        "stop: {on: client, shell: 'sleep 0.3; reboot -f'}\nbeat: {on: client, role: service, shell: 'sleep 60'}",
        4,
        "client: a program restarted the machine; its programs: stop, beat",
    ),
    ("stop: {on: third, shell: 'poweroff -f'}", 4, "third: program stop powered the machine off"),
    ("a: {on: third, argv: [wgett]}", 2, "image linux-python of machine 'third' has no program 'wgett'; allowed: wget"),
    (
        "a: {on: third, argv: [sh, -c, ':']}\nb: {on: third, argv: [wgett], after: [a]}",
        4,
        "third: command failed: program b: wgett: No such file or directory",
    ),
    (
        "web: {on: third, role: service, argv: [httpd, -h, /etc], ready: {line: never}}",
        4,
        "program web: went into the background before it was ready; a service must stay in the foreground",
    ),
    (
        "web: {on: third, role: service, argv: [httpd, -h, /etc]}\n"
        "get: {on: client, shell: 'sleep 1; ping -c 1 {third}'}",
        1,
        "by itself; status 0; it went into the background, but a service stays in the foreground",
    ),
    (
        "add: {on: third, argv: [ip, addr, add, 10.0.0.77/24, dev, eth0]}\n"
        "ping: {on: client, argv: [ping, -c, 1, 10.0.0.77], after: [add]}",
        1,
        "address of third: expected those of its interfaces in the topology; programs cannot add others",
    ),
]


@pytest.mark.parametrize(
    ("programs", "status", "words"),
    [pytest.param(*each, marks=[pytest.mark.night] if number else []) for number, each in enumerate(WORDS)],
)
def test_what_a_program_did_is_said(tmp_path: Path, programs: str, status: int, words: str) -> None:
    file = tmp_path / "one.yaml"
    lines = "\n".join(f"      {line}" for line in programs.splitlines())
    file.write_text(ONE.format(topology=TOPOLOGY, programs=lines))
    done = sundial("run", str(file), "--out", str(tmp_path / "run"))
    assert done.returncode == status, done.stdout + done.stderr
    assert words in done.stdout + done.stderr
