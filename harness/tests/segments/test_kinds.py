# SPDX-License-Identifier: Apache-2.0
"""Kinds of segments: each is whole, what it draws and computes."""

from pathlib import Path
from typing import Any, get_args

import pytest
from click.testing import CliRunner

from sundial.cli.topology import topology
from sundial.kinds import load
from sundial.model.load import load_topology
from sundial.model.network import build_network
from sundial.model.schema import schema_text
from sundial.model.topology import SEGMENT_KINDS, Topology
from sundial.plan import segment
from sundial.plan.segment import SegmentPlan
from sundial.report.segment import SegmentReport
from sundial.report.wire_time import INSTANT_BPS, Hop

HARNESS = Path(__file__).resolve().parents[2]
WRITTEN = {name: kind.model for name, kind in SEGMENT_KINDS.items() if kind.model is not None}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_kind_that_is_written_is_named_as_its_folder_and_answers_every_stage(name: str) -> None:
    assert get_args(WRITTEN[name].model_fields["kind"].annotation) == (name,)
    assert name in load("segments", "plan", SegmentPlan)
    assert name in load("segments", "report", SegmentReport)


def test_help_and_schema_show_every_kind_that_is_written() -> None:
    shown = CliRunner().invoke(topology, ["--help"]).output
    schema = schema_text(Topology)
    for name in WRITTEN:
        assert f"    {name}: " in shown
        assert f'"const": "{name}"' in schema


def of(kind: str, **fields: Any) -> Any:
    return WRITTEN[kind].model_validate({"kind": kind, "ports": ["a:eth0", "b:eth0"], **fields})


def lines(written: Any) -> list[str]:
    return load("segments", "report", SegmentReport)[written.kind].lines(written)


def hops(written: Any, sender: str = "a:eth0", receiver: str = "b:eth0") -> list[Hop]:
    return list(load("segments", "report", SegmentReport)[written.kind].hops(written, sender, receiver))


def test_a_hub_is_one_line_from_station_to_station() -> None:
    hub = of("hub", rate="100 Mbit/s", cable_delay={"a:eth0": "10 ns", "b:eth0": "500 ns"})
    assert lines(hub) == ["hub, half duplex", "100 Mb/s", "cable 10 ns", "cable 500 ns", "repeater 460 ns"]
    assert hops(hub) == [Hop(100_000_000, 10 + 460 + 500)]


def test_a_switch_stores_and_forwards_between_the_rates_of_two_ports() -> None:
    switch = of("switch", rate={"a:eth0": "10 Mbit/s", "b:eth0": "1 Gbit/s"}, propagation="0 ns")
    assert lines(switch) == ["switch, full duplex", "10 Mb/s", "1 Gb/s", "forwarding 5 µs"]
    assert hops(switch) == [Hop(10**7, 5000), Hop(10**9, 0)]
    assert hops(switch, "b:eth0", "a:eth0") == [Hop(10**9, 5000), Hop(10**7, 0)]


def test_a_link_shapes_and_delays_what_a_port_sends() -> None:
    shaped = {"delay": "3 ms", "jitter": "1 ms", "rate": "1 Mbit/s", "packet_overhead": 4}
    link = of("link", rate="10 Mbit/s", impairments={"both": {"loss": "1 %"}, "b:eth0": shaped})
    assert lines(link) == [
        "link, full duplex", "10 Mb/s", "propagation 25 ns",
        "from a:", "loss 1 %", "from b:", "delay 3 ms ± 1 ms", "loss 1 %", "shaped to 1 Mb/s",
    ]  # fmt: skip
    assert hops(link) == [Hop(10**7, 25)]
    assert hops(link, "b:eth0", "a:eth0") == [
        Hop(10**6, 0, False, 4),
        Hop(INSTANT_BPS, 3_000_000, False),
        Hop(10**7, 25),
    ]
    report = load("segments", "report", SegmentReport)["link"]
    assert report.delays_vary(link)
    assert not report.delays_vary(of("link", rate="10 Mbit/s"))


def test_a_link_that_counts_cells_says_so_to_the_wire_minimum() -> None:
    cells = {"rate": "149760 kbit/s", "packet_overhead": 10, "cell_size": 48, "cell_overhead": 5}
    link = of("link", rate="1 Gbit/s", impairments={"both": cells})
    assert hops(link)[0] == Hop(149_760_000, 0, False, 10, 48, 5)


def test_a_link_that_impairs_both_ways_alike_says_so_once() -> None:
    link = of("link", rate="10 Mbit/s", impairments={"both": {"gemodel": {"p": "1 %", "r": "10 %"}, "limit": 9}})
    assert lines(link)[3:] == ["both ways:", "loss in bursts (Gilbert-Elliott)", "queue of 9 frames"]


def test_a_bridge_is_a_segment_in_a_guest() -> None:
    client, bridge, server = build_network(load_topology("two-hosts-netem")).nodes
    assert [segment.bridge(node) for node in (client, server)] == [None, None]
    assert [segment.start_ns(node) for node in (client, bridge)] == [0, 1_000_000_000]
    assert segment.bridge(bridge) == {
        "ports": ["eth0", "eth1"],
        "netem": {nic.device: nic.netem for nic in bridge.nics},
    }
    notes = [note for kind in load("segments", "report", SegmentReport).values() for note in kind.notes(bridge)]
    assert notes == [f"netem on {nic.device}: {nic.netem}" for nic in bridge.nics if nic.netem]
