# SPDX-License-Identifier: Apache-2.0
"""Backplanes that cannot be: the field, what is wrong there, and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from sundial.errors import BadInput
from sundial.model.check import check_clock
from sundial.model.load import load_topology
from sundial.model.network import build_network

GOOD = """\
description: Two nodes on a backplane
defaults: {image: ssscore}
machines:
  a:
    interfaces:
      eth0: {address: 10.0.0.1/24}
      vmmc0: {}
  b:
    interfaces:
      eth0: {address: 10.0.0.2/24}
      vmmc0: {}
segments:
  lan: {kind: switch, rate: 100 Mbit/s, ports: ["a:eth0", "b:eth0"]}
  backplane:
    kind: vmmc
    ports: ["a:vmmc0", "b:vmmc0"]
"""
SHORT = "a time from 1 ns to 1 ms, such as '1 us'"


def write(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "t.yaml"
    file.write_text(text)
    return file


def test_a_backplane_without_a_field_has_the_figures_of_the_machine(tmp_path: Path) -> None:
    topology = load_topology(str(write(tmp_path, GOOD)))
    network = build_network(topology)
    (mapped,) = (nic for nic in network.node("a").nics if nic.mapped)
    assert (mapped.device, mapped.index, mapped.address) == ("vmmc0", 1, None)
    assert [nic.device for nic in network.node("a").network_adapters] == ["eth0"]
    assert network.mapped_captures == ["wire/backplane.pcapng"]
    assert check_clock(topology, "virtual") == []
    (finding,) = check_clock(topology, "real")
    assert finding.path == ("segments", "backplane", "kind")


@pytest.mark.parametrize(("combine_bytes", "fifo"), [(8, "5560 B"), (1024, "6912 B"), (4096, "17664 B")])
def test_the_least_fifo_is_allowed(tmp_path: Path, combine_bytes: int, fifo: str) -> None:
    text = GOOD.replace("kind: vmmc", f"kind: vmmc\n    combine_bytes: {combine_bytes}\n    fifo: {fifo}")
    load_topology(str(write(tmp_path, text)))


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("image: ssscore", "image: linux",
         ["image 'linux' has no driver for it; allowed: a machine that boots ssscore"]),
        ("b:\n    interfaces:\n      eth0: {address: 10.0.0.2/24}\n      vmmc0: {}",
         "b:\n    interfaces:\n      eth0: {address: 10.0.0.2/24}\n      vmmc0: {address: 10.0.1.2/24}",
         ["interfaces.vmmc0.address: it carries stores, not packets; allowed: {}: nothing to set"]),
        ("      eth0: {address: 10.0.0.1/24}\n", "",
         ["machines.a.interfaces: vmmc0 tells the kernel of what arrives through eth0, which is missing; "
          "allowed: eth0 beside it"]),
        ('ports: ["a:vmmc0", "b:vmmc0"]', 'ports: ["a:vmmc0", "b:vmmc0", "a:vmmc0"]',
         ["port 'a:vmmc0' is used twice (also in segment 'backplane'); allowed: each port once"]),
        ('["a:eth0", "b:eth0"]}', '["a:eth0", "b:eth0", "b:vmmc0"]}',
         ["'b:vmmc0' does not fit into a segment of kind switch; allowed: eth0 to eth7"]),
        ('["a:vmmc0", "b:vmmc0"]', '["a:eth0", "b:vmmc0"]',
         ["port 'a:eth0' is used twice (also in segment 'lan')"]),
        ("vmmc0: {}\nseg", "vmmc0: {}\n    adapter: {latency: 5 us}\nseg",
         ["machines.b.adapter: b:vmmc0 has no descriptors to fetch; allowed: no latency"]),
        ("kind: vmmc", "kind: vmmc\n    word_latency: 99 ns",
         ["'99 ns' is out of range; allowed: a time from 100 ns to 1 ms, such as '4.25 us'"]),
        ("kind: vmmc", "kind: vmmc\n    word_latency: 347 ns",
         ["word_latency: writing a word alone takes longer; allowed: 348 ns and more"]),
        ("kind: vmmc", "kind: vmmc\n    combine_bytes: 0", ["combine_bytes: 0 is out of range"]),
        ("kind: vmmc", "kind: vmmc\n    combine_bytes: 4097", ["combine_bytes: 4097 is out of range"]),
        ("kind: vmmc", "kind: vmmc\n    combine_timeout: 0 ns", [f"combine_timeout: '0 ns' is out of range; allowed: {SHORT}"]),
        ("kind: vmmc", "kind: vmmc\n    deliberate_setup: 2 ms", ["deliberate_setup: '2 ms' is out of range"]),
        ("kind: vmmc", "kind: vmmc\n    fifo: 5559 B", ["fifo: '5559 B' is out of range; allowed: a size from 5560 B to 1 MiB"]),
        ("kind: vmmc", "kind: vmmc\n    fifo: 6911 B",
         ["fifo: a packet of 1024 combined bytes and a page or message behind it could overflow it; "
          "allowed: 6912 B and more"]),
        ("kind: vmmc", "kind: vmmc\n    fifo: 8 KiB\n    combine_bytes: 4096", ["allowed: 17664 B and more"]),
        ("kind: vmmc", "kind: vmmc\n    link_rate: 1500 Mbit/s",
         ["link_rate: a byte takes no whole number of ns; allowed: 8 Gbit/s divided by such a number"]),
        ("kind: vmmc", "kind: vmmc\n    link_rate: 100 Mbit/s",
         ["link_rate: memory would have a packet before it has left; allowed: 184 Mbit/s (dma_rate) and more"]),
        ("kind: vmmc", "kind: vmmc\n    link_rate: 200 Mbit/s\n    word_latency: 1 us",
         ["link_rate: a word's packet takes longer than word_latency; allowed: a faster line"]),
        ("kind: vmmc", "kind: vmmc\n    mtu: 576",
         ["backplane.mtu: a backplane carries stores, not frames; allowed: nothing: leave it out"]),
        ("kind: vmmc", "kind: vmmc\n    adapter: {ring_frames: 3}", ["backplane.adapter: a backplane carries stores"]),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_line(tmp_path: Path, old: str, new: str, lines: list[str]) -> None:
    assert GOOD.count(old) >= 1
    with pytest.raises(BadInput) as caught:
        load_topology(str(write(tmp_path, GOOD.replace(old, new, 1))))
    said = str(caught.value)
    for line in lines:
        assert line in said, said
