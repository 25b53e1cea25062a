# SPDX-License-Identifier: Apache-2.0
"""From files, scales, variations and overrides to experiments."""

import json
from pathlib import Path

import pytest

from sundial.errors import BadInput
from sundial.model.catalog import FOLDERS
from sundial.model.experiment import Experiment
from sundial.model.load import load_experiments, load_topology
from sundial.model.network import build_network
from sundial.model.topology import Topology
from sundial.segments.link.model import Link
from sundial.workloads.raw.model import Raw
from sundial.workloads.sunrpc.scenario import SunRpc

KEDZIERA_UDP_CALL_EDGES = {1429, 2909, 4389, 5869, 7349}
"""PROTOCOLS.md section 1, MTU 1500: first sizes with one more packet."""


def one(scenario: str, *overrides: str, **options: object) -> Experiment:
    (experiment,) = load_experiments(scenario, overrides=overrides, **options)  # type: ignore[arg-type]
    return experiment


def sizes(experiment: Experiment, workload: int = 0) -> list[int]:
    found = experiment.workloads[workload]
    assert isinstance(found, SunRpc | Raw)
    return [size for size in found.sizes if isinstance(size, int)]


def test_quickstart_covers_every_256_bytes_and_every_edge() -> None:
    udp = set(sizes(one("quickstart")))
    assert udp >= {0, 16, *range(256, 8193, 256)}
    assert udp >= {edge + step for edge in KEDZIERA_UDP_CALL_EDGES for step in (-1, 0, 1)}


def test_the_sweep_has_512_sizes_and_three_scales() -> None:
    for scale, calls, series in (("quick", ((0, 5),), 3), ("paper", ((0, 3000), (2048, 100)), 10)):
        workload = one("sunrpc-sweep", scale=scale).workloads[0]
        assert isinstance(workload, SunRpc)
        assert workload.sizes == tuple(range(16, 8193, 16))
        assert (workload.calls, workload.series) == (calls, series)
    assert one("sunrpc-sweep").scale == "smoke"
    assert one("sunrpc-sweep", scale="paper").scenario.deadline == 24 * 3600 * 10**9


def test_a_scenarios_own_topology_is_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below = tmp_path / "below"
    below.mkdir()
    quickstart = (FOLDERS["scenario"] / "quickstart.yaml").read_text()
    assert "topology: two-hosts-10base-t\n" in quickstart
    (below / "mine.yaml").write_text(quickstart.replace("two-hosts-10base-t", "wires.yaml"))
    wires = (FOLDERS["topology"] / "two-hosts-10base-t.yaml").read_text()
    (below / "wires.yaml").write_text(wires)
    monkeypatch.chdir(tmp_path)
    assert one("below/mine.yaml").topology.name == "wires"
    (below / "wires.yaml").rename(tmp_path / "wires.yaml")
    with pytest.raises(BadInput, match=r"^below/wires\.yaml: does not exist"):
        one("below/mine.yaml")
    assert one("below/mine.yaml", topology="wires.yaml").topology.name == "wires"


def test_set_wins_over_scale_and_reaches_every_workload() -> None:
    swept = one("sunrpc-sweep", "calls=7", "sizes=1472,1473", scale="paper")
    assert sizes(swept) == [1472, 1473]
    assert swept.workloads[0].calls == ((0, 7),)  # type: ignore[union-attr]
    quick = one("quickstart", "sizes=1472,1473")
    assert [sizes(quick, number) for number in range(4)] == [[1472, 1473]] * 4


def test_set_can_address_one_workload_and_any_topology_field() -> None:
    experiment = one("quickstart", "workloads.1.calls=9", "machines.client.mips=250", 'segments.lan.rate="100 Mbit/s"')
    assert [workload.calls for workload in experiment.workloads] == [((0, 3),), ((0, 9),), ((0, 3),), ((0, 3),)]  # type: ignore[union-attr]
    assert [f"{node.mips:f}" for node in experiment.network.nodes] == ["250", "125"]
    assert experiment.network.segments["lan"].rate == 100_000_000


def test_mtu_reaches_every_interface_and_moves_the_edges() -> None:
    experiment = one("quickstart", "mtu=576")
    assert {nic.mtu for nic in experiment.network.nics()} == {576}
    # 48 bytes of headers above the data; the first fragment carries 552 (PROTOCOLS.md section 2).
    assert 556 - 8 - 44 in sizes(experiment)


def test_cell_edges_are_the_sizes_that_add_a_cell_and_their_neighbours() -> None:
    """By hand, over LAN emulation: UDP calls at 1 and replies at 17 modulo 48; 8 less where a fragment goes before."""
    lane = one("lane-edges")
    first = {size for size in range(1, 1429) if size % 48 in (1, 17)}
    second = {size for size in range(1481, 2049) if size % 48 in (41, 9)}  # the least fragment fills two cells
    edges = first | {1429, 1445} | second
    expected = {edge + step for edge in edges for step in (-1, 0, 1)} | {0, 2048}
    assert set(sizes(lane, 0)) == {size for size in expected if size <= 2048}
    tcp = {size for size in range(1, 1401) if size % 48 in (21, 37)}
    assert set(sizes(lane, 1)) >= {edge + step for edge in tcp for step in (-1, 0, 1)}
    raw = {size for size in range(1, 1472) if size % 48 == 45}
    assert set(sizes(lane, 2)) >= {edge + step for edge in raw for step in (-1, 0, 1) if edge + step >= 0}


def test_cell_edges_follow_the_encapsulation_and_the_way() -> None:
    clip = set(sizes(one("lane-edges", topology="two-hosts-clip")))
    assert clip == {edge + step for edge in range(1, 2049) if edge % 48 in (9, 25) for step in (-1, 0, 1)} | {0, 2048}
    mixed = one("lane-edges", topology="pc-hub-lane")
    assert sizes(mixed) == sizes(one("lane-edges"))
    with pytest.raises(BadInput) as caught:
        one("lane-edges", topology="two-hosts-10base-t")
    assert (
        str(caught.value)
        .splitlines()[0]
        .endswith(
            "workloads.0.sizes: cell-edges needs a segment with cells, and there is none between 'client' and "
            "'server'; "
            "allowed: sizes, ranges FIRST:LAST:STEP and the word 'edges'"
        )
    )


def test_edges_are_those_of_packets_on_atm_too() -> None:
    lan, lane = (one("quickstart", topology=name) for name in ("two-hosts-10base-t", "two-hosts-lane"))
    assert [sizes(lan, number) for number in range(4)] == [sizes(lane, number) for number in range(4)]


def test_loss_makes_one_run_for_each_value_unless_it_is_set() -> None:
    def losses(experiments: list[Experiment]) -> list[str]:
        found = []
        for experiment in experiments:
            wan = experiment.topology.segments["wan"]
            assert isinstance(wan, Link)
            found.append(f"{wan.sending('client:eth0').loss}")
        return found

    assert losses(load_experiments("loss")) == ["0.01", "0.05", "0.2"]
    assert losses(load_experiments("loss", overrides=["segments.wan.impairments.both.loss=2 %"])) == ["0.02"]


def test_options_win_over_set() -> None:
    experiment = one("quickstart", "seed=5", "topology=office", "clock=real", seed=6)
    assert (experiment.seed, experiment.network.name, experiment.clock) == (6, "office", "real")
    assert one("quickstart", "clock=real", clock="virtual").clock == "virtual"


def test_everybody_but_the_server_calls() -> None:
    assert one("quickstart", topology="office").workloads[0].clients == tuple(f"client{n}" for n in range(1, 6))
    assert one("quickstart", topology="two-hosts-netem").workloads[0].clients == ("client",)


def test_what_goes_into_run_json_can_be_read_again() -> None:
    for experiment in load_experiments("loss"):
        text = json.loads(json.dumps(experiment.topology_json()))
        assert Topology.model_validate(text).segments == experiment.topology.segments
        assert json.loads(json.dumps(experiment.scenario_json()))["variant"] == experiment.variant


def test_a_port_s_own_impairments_go_before_those_of_both(tmp_path: Path) -> None:
    text = Path(__file__).parents[3].joinpath("topologies/two-hosts-wan.yaml").read_text()
    path = tmp_path / "one-way.yaml"
    path.write_text(text + '      "client:eth0": {loss: 50 %}\n')
    wan = load_topology(str(path)).segments["wan"]
    assert isinstance(wan, Link)
    assert f"{wan.sending('client:eth0').loss} {wan.sending('server:eth0').loss}" == "0.5 0.01"
    assert wan.sending("client:eth0").delay == wan.sending("server:eth0").delay == 10_000_000


def test_a_bridge_makes_one_broadcast_domain_of_two_segments() -> None:
    network = build_network(load_topology("two-hosts-netem"))
    assert network.domains == {"near": 0, "far": 0}
    route = network.route("client", "server")
    assert route is not None
    assert [nic.end for nic in route] == ["client:eth0", "server:eth0"]
    assert [nic.end for nic in network.neighbours(route[0])] == ["server:eth0"]


def test_mac_addresses_are_local_unicast_and_follow_the_order_of_the_file() -> None:
    macs = [nic.mac for nic in build_network(load_topology("office")).nics()]
    assert macs == [f"02:53:44:00:00:{number:02x}" for number in range(1, 7)]


@pytest.mark.parametrize("scenario", ["quickstart", "atm-faults", "dce-faults", "vrpc-sweep"])
def test_nothing_but_the_seed_depends_on_the_seed(scenario: str) -> None:
    assert [each.with_seed(7) for each in load_experiments(scenario, seed=1)] == load_experiments(scenario, seed=7)
