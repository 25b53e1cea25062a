# SPDX-License-Identifier: Apache-2.0
"""Static routes of machines: who forwards, and every mistake as one line."""

from dataclasses import replace
from ipaddress import IPv4Interface
from pathlib import Path

import pytest

from sundial.errors import BadInput
from sundial.model.experiment import Experiment
from sundial.model.load import load_experiments, load_topology
from sundial.model.network import Network, build_network
from sundial.plan.jobs import build_idle_jobs
from tests.seams.golden_files import ROUTED

TO = "an IPv4 network with its prefix length from 8 to 32, such as '10.1.0.0/24'"
VIA = "an IPv4 address, such as '10.0.0.254'"
OWN_ROUTE = "{to: 10.1.0.0/24, via: 10.0.0.254}"

CASES = [
    ("to: 10.1.0.0/24", "to: 10.1.0.0", f"3: machines.client.routes.0.to: '10.1.0.0' is not an IPv4 network;"
     f" allowed: {TO}"),
    ("to: 10.1.0.0/24", "to: 10.1.0.1/24",
     f"3: machines.client.routes.0.to: '10.1.0.1/24' is not an IPv4 network; allowed: {TO}"),
    ("to: 10.1.0.0/24", "to: 0.0.0.0/0", f"3: machines.client.routes.0.to: '0.0.0.0/0' is out of range; allowed: {TO}"),
    ("to: 10.1.0.0/24, ", "", f"3: machines.client.routes.0: to is missing; allowed: {TO}"),
    ("via: 10.0.0.254", "via: router", f"3: machines.client.routes.0.via: 'router' is not an IPv4 address;"
     f" allowed: {VIA}"),
    ("via: 10.0.0.254", "via: 10.0.0.254, metric: 1",
     "3: machines.client.routes.0.metric: unknown field; allowed: to, via"),
    (f"[{OWN_ROUTE}]", "10.1.0.0/24", "3: machines.client.routes: must be a list, such as [A, B];"
     " allowed: a list of: to, via"),
    ("via: 10.0.0.254", "via: 10.0.0.7",
     "3: machines.client.routes.0.via: 10.0.0.7 is not a neighbour of client; allowed: 10.0.0.254"),
    ("via: 10.0.0.254", "via: 10.0.0.1",
     "3: machines.client.routes.0.via: 10.0.0.1 is not a neighbour of client; allowed: 10.0.0.254"),
    ("via: 10.0.0.254", "via: 10.1.0.1",
     "3: machines.client.routes.0.via: 10.1.0.1 is not a neighbour of client; allowed: 10.0.0.254"),
    (f"[{OWN_ROUTE}]", f"[{OWN_ROUTE}, {OWN_ROUTE}]",
     "3: machines.client.routes.1.to: there are two routes to 10.1.0.0/24; allowed: one for each network"),
    (OWN_ROUTE, "{to: 10.0.0.0/24, via: 10.0.0.254}",
     "3: machines.client.routes.0.to: client itself has an address in 10.0.0.0/24;"
      " allowed: a network that the machine is not on"),
    ("client: {", "client: {image: ssscore, ",
     "3: machines.client.routes.0: image 'ssscore' does not support routes; allowed: leave them out"),
    ("router: {", "router: {image: ssscore, ",
     "3: machines.client.routes.0.via: the image of 'router' does not forward packets; "
     "allowed: a machine that boots linux or linux-python or linux-python-current or linux-python-paper\n"
     "5: machines.server.routes.0.via: the image of 'router' does not forward packets; "
     "allowed: a machine that boots linux or linux-python or linux-python-current or linux-python-paper"),
]  # fmt: skip


def written(path: Path, text: str) -> Network:
    path.write_text(text)
    return build_network(load_topology(str(path)))


@pytest.mark.parametrize(("old", "new", "lines"), CASES, ids=[case[1][:40] or "left out" for case in CASES])
def test_mistake(tmp_path: Path, old: str, new: str, lines: str) -> None:
    assert old in ROUTED
    path = tmp_path / "net.yaml"
    with pytest.raises(BadInput) as caught:
        written(path, ROUTED.replace(old, new, 1))
    assert caught.value.exit_code == 2
    assert str(caught.value).splitlines() == [f"{path}:{line}" for line in lines.splitlines()]


def test_a_machine_that_a_route_leads_to_forwards(tmp_path: Path) -> None:
    network = written(tmp_path / "net.yaml", ROUTED)
    assert {node.name: node.forwards for node in network.nodes} == {"client": False, "router": True, "server": False}
    jobs = {name: job.document() for name, job in build_idle_jobs(network, clock="virtual", seed=1).items()}
    assert jobs["client"]["routes"] == [{"to": "10.1.0.0/24", "via": "10.0.0.254"}]
    assert jobs["router"]["forward"] is True
    assert not {"routes", "forward"} & set(jobs["router"]) - {"forward"}


@pytest.mark.parametrize(("mtu", "sound"), [(575, False), (576, True), (1500, True), (1501, False)])
def test_an_mtu_is_one_that_the_image_takes(tmp_path: Path, mtu: int, sound: bool) -> None:
    text = f"""\
description: Two nodes
defaults: {{image: ssscore}}
machines:
  n1: {{interfaces: {{eth0: {{address: 10.0.0.1/24}}}}}}
  n2: {{interfaces: {{eth0: {{address: 10.0.0.2/24, mtu: {mtu}}}}}}}
segments:
  lan: {{kind: switch, rate: 10 Mbit/s, mtu: 9000, ports: ["n1:eth0", "n2:eth0"]}}
"""
    text = text.replace("address: 10.0.0.1/24", "address: 10.0.0.1/24, mtu: 1500")
    path = tmp_path / "net.yaml"
    if sound:
        assert written(path, text).nic("n2:eth0").mtu == mtu
        return
    with pytest.raises(BadInput) as caught:
        written(path, text)
    assert str(caught.value) == (
        f"{path}:5: machines.n2.interfaces.eth0.mtu: MTU {mtu} of n2:eth0, which boots ssscore; allowed: 576 to 1500"
    )


def called(folder: Path, text: str) -> Experiment:
    path = folder / "net.yaml"
    path.write_text(text)
    (experiment,) = load_experiments("quickstart", topology=str(path))
    return experiment


def test_calls_follow_routes(tmp_path: Path) -> None:
    network = called(tmp_path, ROUTED).network
    near, far = network.nic("client:eth0"), network.nic("server:eth0")
    assert network.route("client", "server") == (near, far)
    assert [(one.end, other.end) for one, other in network.passed("client", "server")] == [
        ("client:eth0", "router:eth0"),
        ("router:eth1", "server:eth0"),
    ]
    assert network.route("client", "router") == (near, network.nic("router:eth0"))
    assert network.way(near, network.nic("router:eth0")) == ["near"]


@pytest.mark.parametrize(
    "text",
    [
        ROUTED.replace(f", routes: [{OWN_ROUTE}]", ""),
        ROUTED.replace(", routes: [{to: 10.0.0.0/24, via: 10.1.0.254}]", ""),
        ROUTED.replace("to: 10.1.0.0/24", "to: 10.2.0.0/24"),
    ],
    ids=["no way there", "no way back", "another network"],
)
def test_calls_need_a_way_there_and_back(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadInput, match="'client' and 'server' have no common segment and no routes to each other"):
        called(tmp_path, text)


def test_routes_that_lead_in_a_circle_lead_nowhere(tmp_path: Path) -> None:
    text = ROUTED.replace("10.1.0.254/24}}}", "10.1.0.254/24}}, routes: [{to: 10.2.0.0/24, via: 10.0.0.1}]}")
    text = text.replace(OWN_ROUTE, f"{OWN_ROUTE}, {{to: 10.2.0.0/24, via: 10.0.0.254}}")
    network = written(tmp_path / "net.yaml", text)
    stranger = replace(network.nic("server:eth0"), address=IPv4Interface("10.2.0.9/24"))
    assert network.hops("client", stranger) == []


def test_a_router_must_not_cut_packets(tmp_path: Path) -> None:
    text = ROUTED.replace("10.1.0.254/24}", "10.1.0.254/24, mtu: 1400}")
    with pytest.raises(
        BadInput, match=r"packets of 1500 bytes from 'client' to 'server' exceed MTU 1400 of router:eth1"
    ):
        called(tmp_path, text)


def test_cell_edges_count_the_segments_behind_a_router(tmp_path: Path) -> None:
    text = ROUTED.replace("far: {kind: switch, rate: 10 Mbit/s", "far: {kind: atm")
    path = tmp_path / "net.yaml"
    path.write_text(text)
    (experiment,) = load_experiments("lane-edges", topology=str(path))
    (lane,) = load_experiments("lane-edges")
    assert [each.sizes for each in experiment.workloads] == [each.sizes for each in lane.workloads]  # type: ignore[attr-defined]
