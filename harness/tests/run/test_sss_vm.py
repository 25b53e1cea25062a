# SPDX-License-Identifier: Apache-2.0
"""SSS-CORE as the harness runs it: every transport verified, both kernels calling one another, the same bytes again."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.run.live import LiveRun, night, require_guests
from tests.run.served import passed

pytestmark = [pytest.mark.vm, pytest.mark.timeout(900), pytest.mark.spread]


@pytest.fixture(autouse=True)
def guests() -> None:
    require_guests("linux", "ssscore")


@pytest.mark.night
@pytest.mark.parametrize(
    ("scenario", "segment"),
    [("mbcf-operations", "lan"), ("vmmc-operations", "backplane"), ("shrimp-rpc-sweep", "backplane")],
)
def test_two_runs_are_equal_to_the_byte(tmp_path: Path, scenario: str, segment: str) -> None:
    evidence = []
    for name in ("a", "b"):
        passed(Path(scenario), tmp_path / name, "--seed", "9")
        files = (f"wire/{segment}.pcapng", "nodes/client/samples.jsonl", "nodes/server/samples.jsonl")
        evidence.append([(tmp_path / name / file).read_bytes() for file in files])
    assert evidence[0] == evidence[1]


@pytest.mark.parametrize(("semantics", "transport"), [night("at_most_once", "udp"), ("exactly_once", "mbcf3")])
def test_nothing_is_lost_or_doubled_on_a_bad_line(tmp_path: Path, semantics: str, transport: str) -> None:
    line = "segments.lan.impairments.both"
    options = [f"semantics={semantics}", f"transports={transport}"]
    options += [f"{line}.{what}=20 %" for what in ("loss", "duplicate", "reorder")]
    sets = [word for option in options for word in ("--set", option)]
    passed(Path("sss-faults"), tmp_path / "run", *sets)
    lines = (tmp_path / "run" / "nodes" / "server" / "samples.jsonl").read_text().splitlines()
    counters = [json.loads(text) for text in lines if text.startswith('{"type":"counters"')]
    assert counters[-1]["executed"] == 100


@pytest.mark.night
def test_a_server_that_is_killed_is_seen_by_its_client_and_fails_no_run(tmp_path: Path) -> None:
    options = ["transports=mbcf3", "semantics=exactly_once", "expect.failures=allowed", "total_timeout=1 s"]
    options += ["die={when: during, call: 10}", "retry_timeout=500 ms"]
    sets = [word for option in options for word in ("--set", option)]
    passed(Path("sss-faults"), tmp_path / "run", *sets)
    rows = [
        json.loads(text)
        for text in (tmp_path / "run" / "nodes" / "client" / "samples.jsonl").read_text().splitlines()
        if text.startswith("[")
    ]
    assert [row[3] for row in rows[:9]] == [1] * 9
    assert all(row[3] == 0 and row[6] for row in rows[9:])


def test_a_server_that_is_started_anew_goes_on(tmp_path: Path) -> None:
    options = ["transports=mbcf3", "semantics=at_least_once", "calls=12", "die={when: during, call: 5, restart: true}"]
    options += [f"segments.lan.impairments.both.{what}=0 %" for what in ("loss", "duplicate", "reorder")]
    sets = [word for option in options for word in ("--set", option)]
    passed(Path("sss-faults"), tmp_path / "run", *sets)
    lines = (tmp_path / "run" / "nodes" / "server" / "samples.jsonl").read_text().splitlines()
    counters = [json.loads(text) for text in lines if text.startswith('{"type":"counters"')]
    lives = {line["task"]: line["executed"] for line in counters}
    assert len(lives) == 3
    assert sum(lives.values()) == 12 + 2, "the call that it died at is executed twice"


@pytest.mark.parametrize("number", [6, night(24)])
def test_many_nodes_call_one_server(tmp_path: Path, number: int) -> None:
    """Sixty-four, the most there may be, take a minute."""
    names = [f"n{at}" for at in range(1, 1 + number)]
    places = {name: {"interfaces": {"eth0": {"address": f"10.0.0.{1 + at}/24"}}} for at, name in enumerate(names)}
    ports = [f"{name}:eth0" for name in names]
    topology = {
        "description": "Many nodes on a switch",
        "defaults": {"image": "ssscore"},
        "machines": places,
        "segments": {"lan": {"kind": "switch", "rate": "100 Mbit/s", "ports": ports}},
    }
    calls = {"app": "sunrpc", "transports": ["mbcf3", "udp"], "sizes": [64], "calls": 3}
    workload = calls | {"clients": names[1:], "server": names[0]}
    scenario = {"description": "All call one", "topology": "many.yaml", "workloads": [workload]}
    (tmp_path / "many.yaml").write_text(json.dumps(topology))
    (tmp_path / "all.yaml").write_text(json.dumps(scenario))
    output = passed(tmp_path / "all.yaml", tmp_path / "run")
    # Three and one to warm up, over each transport.
    assert f"verdict  pass: {(number - 1) * 2 * 4} calls, 0 mismatches" in output


TWO_ADAPTERS = """
description: A node between two others
defaults: {image: ssscore}
machines:
  middle:
    interfaces:
      eth0: {address: 10.0.0.1/24}
      eth1: {address: 10.0.1.1/24}
  left:
    interfaces:
      eth0: {address: 10.0.0.2/24}
  right:
    interfaces:
      eth0: {address: 10.0.1.2/24}
segments:
  a: {kind: switch, rate: 100 Mbit/s, ports: ["middle:eth0", "left:eth0"]}
  b: {kind: switch, rate: 100 Mbit/s, ports: ["middle:eth1", "right:eth0"]}
"""
BOTH_WAYS = """
description: Calls over both adapters
topology: adapters
workloads:
  - {app: sunrpc, clients: left, server: middle, transports: [udp, tcp, mbcf3], sizes: [0, 8000], calls: 5}
  - {app: sunrpc, clients: right, server: middle, transports: [udp, tcp], sizes: [0, 8000], calls: 5}
  - {app: sunrpc, clients: middle, server: right, transports: [udp, tcp], sizes: [0, 8000], calls: 5}
"""


def test_a_node_has_two_adapters(tmp_path: Path) -> None:
    topology, scenario = tmp_path / "adapters.yaml", tmp_path / "both.yaml"
    topology.write_text(TWO_ADAPTERS)
    scenario.write_text(BOTH_WAYS)
    passed(scenario, tmp_path / "run", "--topology", str(topology))


@pytest.mark.night
@pytest.mark.parametrize(
    ("number", "message"),
    [
        (signal.SIGKILL, "server: the machine ended before the run: killed by SIGKILL"),
        (signal.SIGSTOP, "server: hung: no progress for"),
    ],
)
def test_a_node_that_is_gone_or_stands_still_is_named(tmp_path: Path, number: signal.Signals, message: str) -> None:
    options = ["transports=mbcf3", "procedures=null,echo", "sizes=64", "calls=20000"]
    sets = [word for option in options for word in ("--set", option)]
    run = LiveRun(Path("sss-rpc-sweep"), tmp_path / "run", *sets)
    run.wait_batches(1)
    run.kill(f"guest={run.token}-server,", number)
    status, output = run.end()
    assert status == 4, output
    assert message in output
    assert "the console of server is empty" in output
    assert run.leftovers() == []
    assert run.kept_batches() >= 1
