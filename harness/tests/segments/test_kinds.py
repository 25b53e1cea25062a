# SPDX-License-Identifier: Apache-2.0
"""Kinds of segments: each is whole, what it draws and computes, and a new one is one new folder."""

import json
import os
import subprocess
import sys
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


RING_MODEL = '''
from typing import Annotated, Literal
from sundial.model.fields import In
from sundial.model.finding import Finding
from sundial.model.segment import SegmentBase, SegmentKind
from sundial.units import RATE

class Ring(SegmentBase):
    """A token ring."""
    kind: Literal["ring"]
    """A ring."""
    rate: Annotated[int, In(RATE)]
    """Bits a second."""

    def check(self, path):
        if len(self.ports) < 3:
            yield Finding((*path, "ports"), "a ring of two", "3 or more")

class RingKind(SegmentKind):
    model = Ring

KIND = RingKind()
'''
RING_PLAN = """
from sundial.plan.segment import SegmentPlan

class RingPlan(SegmentPlan):
    def fabric(self, segment):
        return {"rate_bps": segment.rate, "token_ns": 24}

KIND = RingPlan()
"""
RING_REPORT = """
from sundial.report.segment import SegmentReport

class RingReport(SegmentReport):
    def lines(self, segment):
        return ["token ring"]

KIND = RingReport()
"""
USE_A_RING = """
import json, sys
import sundial.segments
sundial.segments.__path__.append(sys.argv[1])
from sundial.errors import BadInput
from sundial.model.load import load_topology
from sundial.model.network import build_network
from sundial.model.schema import schema_text
from sundial.model.topology import Topology
from sundial.plan.segment import own_fields
from sundial.report import topology_read, topology_svg

topology = load_topology(sys.argv[2])
run = {"topology": {**topology.model_dump(mode="json", exclude_none=True), "clock": "virtual"}}
try:
    refused = str(load_topology(sys.argv[3]))
except BadInput as error:
    refused = error.message
print(json.dumps({
    "fields": own_fields(build_network(topology).segments["lan"]),
    "in_schema": '"ring"' in schema_text(Topology),
    "drawn": "token ring" in topology_svg.draw(topology_read.read(run)),
    "refused": refused,
}))
"""
HOST = "  {name}:\n    interfaces:\n      eth0: {{address: 10.0.0.{number}/24}}\n"


def ring_of(folder: Path, *machines: str) -> Path:
    path = folder / f"ring-{len(machines)}.yaml"
    hosts = "".join(HOST.format(name=name, number=number) for number, name in enumerate(machines, 1))
    ports = json.dumps([f"{name}:eth0" for name in machines])
    path.write_text(
        f"description: A ring\nmachines:\n{hosts}segments:\n  lan: {{kind: ring, rate: 4 Mbit/s, ports: {ports}}}\n"
    )
    return path


def test_a_new_kind_is_one_new_folder(tmp_path: Path) -> None:
    folder = tmp_path / "kinds" / "ring"
    folder.mkdir(parents=True)
    for name, text in {"__init__": "", "model": RING_MODEL, "plan": RING_PLAN, "report": RING_REPORT}.items():
        (folder / f"{name}.py").write_text(text)
    arguments = [folder.parent, ring_of(tmp_path, "a", "b", "c"), ring_of(tmp_path, "a", "b")]
    done = subprocess.run(
        [sys.executable, "-c", USE_A_RING, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(HARNESS)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == {
        "fields": {"rate_bps": 4_000_000, "token_ns": 24},
        "in_schema": True,
        "drawn": True,
        "refused": f"{arguments[2]}:10: segments.lan.ports: a ring of two; allowed: 3 or more",
    }
