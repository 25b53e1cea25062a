# SPDX-License-Identifier: Apache-2.0
"""The drawing of topologies: complete, well-formed, inside its frame, the same every time."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

from sundial.model.load import load_topology
from sundial.report import topology_read, topology_svg, wire_time
from sundial.report.topology_view import Machine, Nic, Segment, Topology, rate_text, time_text
from tests.report import synthetic

SVG = "{http://www.w3.org/2000/svg}"
SHIPPED = (
    "two-hosts-10base-t", "two-hosts-100base-tx", "two-hosts-switched", "two-hosts-wan", "two-hosts-netem", "office",
)  # fmt: skip


def shipped(name: str) -> dict[str, Any]:
    """A topology of the project as run.json holds it."""
    topology = load_topology(name)
    return {"topology": {**topology.model_dump(mode="json", exclude_none=True), "clock": topology.clock}}


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_topologies_are_read_and_drawn(name: str) -> None:
    topology = topology_read.read(shipped(name))
    assert topology.name == name
    words = texts(topology_svg.draw(topology))
    for machine in topology.machines:
        assert machine.name in words
        for nic in machine.nics:
            assert nic.mac in words
            assert not nic.address or nic.address in words
    for segment in topology.segments:
        assert segment.name in words
        assert set(segment.lines) <= set(words)


@pytest.mark.parametrize("name", SHIPPED)
def test_every_pair_of_hosts_has_a_wire_time(name: str) -> None:
    topology = topology_read.read(shipped(name))
    hosts = [machine.name for machine in topology.machines if machine.role != "bridge"]
    path = wire_time.hops(topology, hosts[0], hosts[-1])
    assert path
    assert wire_time.transit_ns([1514], path) > 8 * 1514 * 1e9 / 100e6


def stars() -> list[Topology]:
    topologies = []
    for kind in ("hub", "switch"):
        for count in range(2, 9):
            machines = tuple(
                Machine(f"host{k}", (Nic("eth0", "lan", f"10.0.0.{k}/24", f"02:53:44:00:00:0{k}"),), role)
                for k in range(1, count + 1)
                for role in ("" if count % 2 else "client" if k > 1 else "server",)
            )
            topologies.append(Topology("star", machines, (Segment("lan", (kind, "100 Mb/s")),)))
    return topologies


@pytest.mark.parametrize("topology", stars(), ids=lambda star: f"{star.segments[0].lines[0]}-{len(star.machines)}")
def test_nothing_lies_outside_or_overlaps(topology: Topology) -> None:
    root = ElementTree.fromstring(topology_svg.draw(topology))
    width, height = (float(value) for value in root.attrib["viewBox"].split()[2:])
    boxes = []
    for element in root.iter(f"{SVG}rect"):
        if "stroke" in element.attrib:
            x, y, w, h = (float(element.attrib[name]) for name in ("x", "y", "width", "height"))
            assert x >= 0
            assert y >= 0
            assert x + w <= width
            assert y + h <= height
            boxes.append((x, y, x + w, y + h))
    assert len(boxes) == len(topology.machines) + len(topology.segments)
    for index, one in enumerate(boxes):
        for other in boxes[index + 1 :]:
            apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
            assert apart, (one, other)


def test_a_loop_and_an_island_are_drawn() -> None:
    machines = (
        Machine("a", (Nic("eth0", "x"), Nic("eth1", "y"))),
        Machine("b", (Nic("eth0", "x"), Nic("eth1", "y"))),
        Machine("alone", ()),
    )
    svg = topology_svg.draw(Topology("loop", machines, (Segment("x"), Segment("y"), Segment("z"))))
    assert {"a", "b", "alone", "x", "y", "z"} <= set(texts(svg))


def test_names_cannot_break_the_markup() -> None:
    topology = Topology("t", (Machine("<b>&\"'", (Nic("eth0", "x"),)),), (Segment("x", ("<script>",)),))
    assert "<b>&\"'" in texts(topology_svg.draw(topology))


def test_same_topology_same_bytes() -> None:
    run = {"topology": synthetic.office().topology}
    assert topology_svg.draw(topology_read.read(run)) == topology_svg.draw(topology_read.read(run))


def test_a_topology_that_cannot_be_read_is_drawn_from_the_nodes() -> None:
    run = synthetic.run_json(synthetic.two_hosts()) | {"topology": {"from": "another version"}}
    topology = topology_read.read(run, ["client"], ["server"])
    assert [machine.role for machine in topology.machines] == ["client", "server"]
    assert "10.0.0.1/24" in texts(topology_svg.draw(topology))
    assert wire_time.hops(topology, "client", "server") is None


def test_an_unknown_kind_of_segment_is_never_taken_for_a_known_one() -> None:
    run = synthetic.run_json(synthetic.two_hosts())
    (segment,) = run["topology"]["segments"].values()
    segment["kind"] = "fddi"
    topology = topology_read.read(run)
    assert [segment.lines for segment in topology.segments] == [("segment",)]
    assert wire_time.hops(topology, "client", "server") is None


def test_nothing_known_nothing_drawn() -> None:
    assert topology_svg.draw(topology_read.read({})) == ""


def test_wan_path_counts_shaper_delay_and_line() -> None:
    topology = topology_read.read({"topology": synthetic.wan().topology})
    path = wire_time.hops(topology, "client", "server")
    assert path is not None
    # Shaper: 1514 B at 2 Mb/s; line: 1526 B at 100 Mb/s; 10 ms of delay and 50 us of propagation.
    assert wire_time.transit_ns([1514], path) == pytest.approx(6_056_000 + 122_080 + 10_050_000, abs=2)


@pytest.mark.parametrize(
    ("bps", "text"), [(10**7, "10 Mb/s"), (155_520_000, "155.52 Mb/s"), (10**9, "1 Gb/s"), (None, "")]
)
def test_rates(bps: int | None, text: str) -> None:
    assert rate_text(bps) == text


@pytest.mark.parametrize(("ns", "text"), [(25, "25 ns"), (9600, "9.6 µs"), (10_000_000, "10 ms"), (1.5e9, "1.5 s")])
def test_times(ns: float, text: str) -> None:
    assert time_text(ns) == text
