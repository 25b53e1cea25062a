# SPDX-License-Identifier: Apache-2.0
"""A machine whose client calls the server beside it: what it resolves to, and every mistake as one line."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from sundial.errors import BadInput
from sundial.model.experiment import Experiment
from sundial.model.load import load_experiments, load_topology
from sundial.model.network import build_network
from sundial.model.workload import Ends
from sundial.plan.fabric import fabric_config
from sundial.plan.jobs import build_jobs
from sundial.plan.paths import RunPaths

SCENARIO = """\
description: one machine
topology: net.yaml
workloads:
  - {app: raw, clients: server, transports: [udp, tcp], sizes: [16, 65483], calls: 1}
"""
TOPOLOGY = """\
description: one machine
machines:
  server: {loopback: captured, interfaces: {eth0: {address: 10.0.0.1/24}, eth1: {address: 10.0.0.2/24}}}
segments:
  spare: {kind: link, rate: 1 Gbit/s, ports: ["server:eth0", "server:eth1"]}
"""
TWO = """\
  other: {loopback: captured, interfaces: {eth0: {address: 10.1.0.1/24}, eth1: {address: 10.1.0.2/24}}}
segments:
  more: {kind: link, rate: 1 Gbit/s, ports: ["other:eth0", "other:eth1"]}
"""


def experiment(folder: Path, scenario: str = SCENARIO, topology: str = TOPOLOGY) -> Experiment:
    (folder / "net.yaml").write_text(topology)
    (folder / "mine.yaml").write_text(scenario)
    (found,) = load_experiments(str(folder / "mine.yaml"))
    return found


def test_it_calls_127_0_0_1_and_its_steps_come_after_its_services(tmp_path: Path) -> None:
    found = experiment(tmp_path)
    job = build_jobs(found)["server"]
    assert [service.app for service in job.services] == ["raw-server"]
    assert {step.options["server"] for step in job.steps} == {"127.0.0.1"}
    assert [interface.device for interface in job.interfaces] == ["eth0", "eth1"]


def test_a_host_that_is_alone_calls_itself(tmp_path: Path) -> None:
    (workload,) = experiment(tmp_path, SCENARIO.replace("clients: server, ", "")).workloads
    assert workload.clients == ("server",)


def test_the_fabric_knows_nothing_of_it(tmp_path: Path) -> None:
    network = experiment(tmp_path).network
    nowhere = RunPaths(Path("/"), Path("/"), Path("/"))
    config = fabric_config(network, clock="virtual", seed=1, linger_ns=0, done_machines=(), paths=nowhere)
    assert [segment["name"] for segment in config["segments"]] == ["spare"]
    assert config["machines"] == [{"name": "server", "nics": 2}]
    assert list(network.captured) == ["spare", "loopback-server"]


def test_its_packets_are_as_long_as_ip_has_them(tmp_path: Path) -> None:
    network = experiment(tmp_path).network
    assert Ends(network, "server", ("server",)).mtus("server") == [65535]
    ((near, far),) = network.passed("server", "server")
    assert near == far == network.plug("server:lo")
    assert network.way(near, far) == ["loopback-server"]


WORKLOAD = SCENARIO.splitlines()[-1]
NOT = "machines.server.loopback"
CASES = [
    ("", "", "loopback: captured, ", "",
     "mine.yaml:4: workloads.0.clients: 'server' is the server, and its loopback interface is not captured;"
     " allowed: other machines, or with clock: virtual also loopback: captured of server"),
    ("clients: server, ", "", "loopback: captured, ", "",
     "mine.yaml:4: workloads.0.clients: topology 'net' has no host except the server"),
    (WORKLOAD, "  - {app: sunrpc, clients: server, transports: [mbcf3], sizes: [16], calls: 1}", "", "",
     "mine.yaml:4: workloads.0.clients: 'server' is the server, and mbcf3 connects different nodes only;"
     " allowed: other machines, or transports over IP"),
    (WORKLOAD, "  - {app: dce, clients: server, semantics: broadcast, sizes: [16], calls: 1}", "", "",
     "mine.yaml:4: workloads.0.semantics: broadcast from 'server' to itself is not supported: a loopback has no"
     " broadcast; allowed: clients on other machines"),
    (WORKLOAD, "  - {app: dce, clients: server, trace: steps, sizes: [16], calls: 1}", "", "",
     "mine.yaml:4: workloads.0.trace: tracing is not supported when client and server share machine 'server';"
     " allowed: none, or other clients"),
    (WORKLOAD, "  - {app: iperf3, clients: server, transports: [tcp]}", "", "",
     "mine.yaml:4: workloads.0.clients: iperf3 from 'server' to itself is not supported;"
      " allowed: clients on other machines"),
    (WORKLOAD, WORKLOAD.replace("calls", "socket_buffer: 4000, calls"), "", "",
     "mine.yaml:4: workloads.0.socket_buffer: socket_buffer cannot be set on 'server', client and server: it would move"
     " the segment boundaries of TCP; allowed: leave it out, or only udp"),
    (WORKLOAD, WORKLOAD.replace("[16, 65483]", "cell-edges"), "", "",
     "mine.yaml:4: workloads.0.sizes: cell-edges needs a segment with cells, and there is none between 'server' and"
     " 'server'; allowed: sizes, ranges FIRST:LAST:STEP and the word 'edges'"),
    ("", "", "captured", "maybe", f"net.yaml:3: {NOT}: 'maybe' is unknown; allowed: captured, not"),
    ("", "", "server: {", "server: {image: ssscore, ",
     f"net.yaml:3: {NOT}: image 'ssscore' of 'server' cannot capture its loopback; allowed: not"),
    ("", "", "spare", "loopback-server",
     "net.yaml:5: segments.loopback-server: is the name of a loopback's capture; allowed: another name"),
    ("", "", "segments:\n", TWO,
     "net.yaml:4: machines.other.loopback: the loopback of 'server' is also captured, with the same address 127.0.0.1;"
     " allowed: one machine of a topology"),
    ("", "", "description: one machine\n", "description: one machine\nclock: real\n",
     "mine.yaml:4: workloads.0.clients: 'server' is the server, and its loopback interface is not captured;"
     " allowed: other machines, or with clock: virtual also loopback: captured of server"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "was", "now", "line"), CASES, ids=[case[-1][:70] for case in CASES])
def test_mistake(tmp_path: Path, old: str, new: str, was: str, now: str, line: str) -> None:
    assert old in SCENARIO
    assert was in TOPOLOGY
    with pytest.raises(BadInput) as caught:
        experiment(tmp_path, SCENARIO.replace(old, new, 1), TOPOLOGY.replace(was, now, 1))
    assert caught.value.exit_code == 2
    assert str(caught.value).replace(f"{tmp_path}/", "") == line


def test_a_topology_without_it_is_written_as_before(tmp_path: Path) -> None:
    (tmp_path / "net.yaml").write_text(TOPOLOGY.replace("loopback: captured, ", ""))
    topology = load_topology(str(tmp_path / "net.yaml"))
    assert "loopback" not in topology.model_dump(mode="json", exclude_none=True)["machines"]["server"]
    assert build_network(topology).inner == {}


@pytest.mark.parametrize("clock", ["virtual", "real"])
def test_under_the_real_clock_nothing_is_captured_there(tmp_path: Path, clock: Literal["virtual", "real"]) -> None:
    (tmp_path / "net.yaml").write_text(TOPOLOGY)
    network = build_network(load_topology(str(tmp_path / "net.yaml"), clock=clock))
    assert bool(network.inner) == bool(network.node("server").inner) == (clock == "virtual")
