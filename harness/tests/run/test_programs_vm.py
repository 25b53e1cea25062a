# SPDX-License-Identifier: Apache-2.0
"""Programs with events of a timeline, and two workloads of them, under both clocks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.run.live import sundial
from tests.run.served import passed

pytestmark = pytest.mark.vm

SCENARIO = """\
description: A web server that is paused, killed and restarted beside a busy program while a client calls it
topology: two-hosts-switched
timeline:
  - {at: 900 ms, for: 300 ms, pause: web}
  - {at: 1500 ms, for: 300 ms, kill: web}
  - {at: 2 s, restart: web}
  - {after: {program: get, line: "^call (9|[0-9]+9)$", delay: 20 ms}, pause: beat, on: client}
  - {after: {program: get, line: "^call 30$"}, kill: get, signal: TERM}
  - {after: {program: get, ends: true}, continue: beat, on: client}
expect:
  check: [sh, -c, 'grep -q hello "$1"/nodes/client/programs/get.stdout && echo the client was served', judge]
workloads:
  - app: command
    ports: {web: {tcp: 8080}}
    programs:
      web:
        on: server
        role: service
        argv: [httpd, -f, -p, "{port.web}", -h, /srv]
        files: {/srv/hello.txt: "hello\\n"}
        ready: {tcp: web}
      busy: {on: server, role: service, shell: "while :; do :; done"}
      beat:
        on: client
        role: service
        shell: "echo up 1; while sleep 0.05; do echo beat; done"
        ready: {line: "^up [0-9]$"}
      get:
        on: client
        shell: |
          i=0
          while :; do
            i=$((i+1)); echo call $i
            wget -q -O - http://{server}:{port.web}/hello.txt || echo no
            sleep 0.06
          done
        after: [web, beat]
  - app: command
    ports: {web: {tcp: 8080}}
    programs:
      second: {on: server, role: service, argv: [httpd, -f, -p, "{port.web}", -h, /etc], ready: {tcp: web}}
      last:
        on: client
        argv: [wget, -q, -O, "-", "http://{server}:{port.web}/hosts"]
        after: [second]
        expect: {stdout: {contains: localhost}}
"""


OFF = """\
description: A web server whose machine loses its power while its adapter is full
topology: two-hosts-10mbit-link
linger: 100 ms
timeline:
  - {at: 600 ms, for: 10 ms, pause: web}
  - {at: 1234567 us, power_off: server}
  - {at: 1300 ms, for: 50 ms, cut: "client:eth0"}
  - {at: 700 ms, step_clock: client, forward: 20 h}
  - {at: 800 ms, for: 700 ms, drift_clock: client, slow: 10 %}
workloads:
  - app: command
    ports: {web: {tcp: 80}}
    programs:
      web:
        on: server
        role: service
        shell: "mkdir /srv; dd if=/dev/zero of=/srv/big bs=1M count=4; exec httpd -f -p {port.web} -h /srv"
        ready: {tcp: web}
      get:
        on: client
        after: [web]
        shell: "timeout 2 wget -q -O - http://{server}:{port.web}/big | wc -c; sleep 0.2; echo gone; date +%H"
        expect: {stdout: {contains: gone}}
"""


def _records(run: Path, machine: str, kind: str) -> list[dict[str, Any]]:
    lines = (run / "nodes" / machine / "samples.jsonl").read_text().splitlines()
    return [record for line in lines if isinstance(record := json.loads(line), dict) and record["type"] == kind]


@pytest.mark.parametrize("clock", ["virtual", pytest.param("real", marks=pytest.mark.night)])
def test_a_timeline_of_programs_is_carried_out_and_verifies(tmp_path: Path, clock: str) -> None:
    file = tmp_path / "programs.yaml"
    file.write_text(SCENARIO)
    run = tmp_path / clock
    output = passed(file, run, "--clock", clock)
    assert "check    pass: sh: the client was served" in output
    events = {machine: _records(run, machine, "event") for machine in ("server", "client")}
    assert [each["verb"] for each in events["server"]] == ["pause", "continue", "kill", "start", "restart"]
    assert [each["verb"] for each in events["client"]] == ["pause", "kill", "continue"]
    assert all(each["met"] for machine in events.values() for each in machine)
    (web,) = [each for each in _records(run, "server", "program") if each["name"] == "web"]
    assert [life["signal"] for life in web["before"]] == [9, 15]
    (get,) = [each for each in _records(run, "client", "program") if each["name"] == "get"]
    assert get["signal"] == 15


@pytest.mark.night
def test_a_machine_loses_its_power_at_an_exact_instant(tmp_path: Path) -> None:
    """Its ring is lost, the other machine goes on, what that sends is lost with a cause, a second run is equal to the
    byte, and a replay stands without it."""
    file = tmp_path / "off.yaml"
    file.write_text(OFF)
    runs = [tmp_path / "first", tmp_path / "second"]
    for run in runs:
        passed(file, run)
        document = json.loads((run / "run.json").read_text())
        assert document["nodes"]["server"]["off_ns"] == 1_234_567_000
        assert "off_ns" not in document["nodes"]["client"]
        assert document["time"]["virtual_ns"] > 2_000_000_000
        received, gone, hour = (run / "nodes/client/programs/get.stdout").read_text().split()
        assert (0 < int(received) < 4 << 20, gone, hour) == (True, "gone", "20")
        assert [each.get("number") for each in _records(run, "client", "clock")] == [3, 4, 4, None]
        capture = (run / "wire/lan.pcapng").read_bytes()
        assert b"timeline: power_off server" in capture
        assert b"dropped: server:eth0 is off" in capture
        assert b"lost: server:eth0 is off, from client:eth0" in capture
    first, second = (json.loads((run / "run.json").read_text()) for run in runs)
    assert first["captures"] == second["captures"]
    assert {name for name in first["files"] if first["files"][name] != second["files"][name]} <= {
        f"nodes/{name}/domain.xml" for name in ("client", "server")
    }
    done = sundial("replay", str(runs[0]), "--until", "1.5s")
    assert "equal to" in done.stdout, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines() if " pc 0x" in line] == ["client"]
