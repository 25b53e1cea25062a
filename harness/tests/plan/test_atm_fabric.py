# SPDX-License-Identifier: Apache-2.0
"""An ATM segment in fabric.json: every field by port, in base units, as the fabric takes it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sundial.model.load import load_topology
from sundial.model.network import build_network
from sundial.plan.build import plan_topology
from sundial.plan.paths import RunPaths

SUNDIAL_FABRIC = Path(__file__).parents[2] / "fabric" / "target" / "release" / "sundial-fabric"

OWN = """\
description: Every field
machines:
  client: {interfaces: {eth0: {address: 10.0.0.1/24}}}
  server: {interfaces: {eth0: {address: 10.0.0.2/24}}}
  third: {interfaces: {eth0: {address: 10.0.0.3/24}}}
segments:
  elan:
    kind: atm
    line: {"client:eth0": oc-3c, "server:eth0": atm-25, "third:eth0": 155.52 Mbit/s}
    frame_size: 4544
    propagation: {"client:eth0": 1 us, "server:eth0": 20 us, "third:eth0": 0 ns}
    tx_latency: 3 us
    rx_latency: {"client:eth0": 1 us, "server:eth0": 2 us, "third:eth0": 3 us}
    interleave: cells
    cdv: 2 us
    queue: {cells: 200, discard: ppd, vc_cells: 150, clp1_above: 100}
    lane: {resolution: static, service_line: taxi-100, retries: 2, ageing: 10 s}
    contracts: {"client:eth0": {rate: 50 Mbit/s, tolerance: 200 us, action: tag}, "third:eth0": {rate: 100 Mbit/s}}
    shaping: {"third:eth0": 80 Mbit/s}
    impairments:
      both: {cell_loss: 0.01 %}
      "to server:eth0": {payload_bit: 0.05 %, header_bit: 1 %}
      "from server:eth0": {gemodel: {p: 0.01 %, r: 10 %}}
    capture: {cells: false, cells_most: 5}
    ports: ["client:eth0", "server:eth0", "third:eth0"]
"""


def planned(folder: Path, paths: RunPaths, text: str) -> dict[str, Any]:
    path = folder / "own.yaml"
    path.write_text(text)
    return plan_topology(build_network(load_topology(str(path))), paths, clock="virtual", seed=1).fabric


def accepted(folder: Path, fabric: dict[str, Any]) -> str:
    """What the fabric says of a configuration; empty: nothing is wrong."""
    path = folder / "fabric.json"
    path.write_text(json.dumps(fabric))
    return subprocess.run([SUNDIAL_FABRIC, "check", path], capture_output=True, text=True, check=False).stderr


def test_every_field_is_by_port_in_base_units(tmp_path: Path, paths: RunPaths) -> None:
    fabric = planned(tmp_path, paths, OWN)
    (elan,) = fabric["segments"]
    assert elan["max_frame_bytes"] == 4542
    assert elan["lines"] == [
        {"rate_bps": 149_760_000, "cell_octets": 53},
        {"rate_bps": 25_600_000, "cell_octets": 54},
        {"rate_bps": 155_520_000, "cell_octets": 53},
    ]
    assert elan["propagation_ns"] == [1000, 20_000, 0]
    assert elan["tx_latency_ns"] == [3000, 3000, 3000]
    assert elan["rx_latency_ns"] == [1000, 2000, 3000]
    assert (elan["encapsulation"], elan["interleave"]) == ("lane", "cells")
    assert (elan["cell_latency_ns"], elan["cdv_ns"]) == (10_000, 2000)
    assert elan["queue"] == {"cells": 200, "discard": "ppd", "epd_above": None, "vc_cells": 150, "clp1_above": 100}
    assert elan["contracts"] == [
        {"rate_bps": 50_000_000, "tolerance_ns": 200_000, "action": "tag"},
        None,
        {"rate_bps": 100_000_000, "tolerance_ns": 0, "action": "drop"},
    ]
    assert elan["shaping_bps"] == [None, None, 80_000_000]
    loss = {"cell_loss": 0.0001, "gemodel": None, "payload_bit": 0.0, "header_bit": 0.0}
    bursts = {"p": 0.0001, "r": 0.1, "one_minus_h": 1.0, "one_minus_k": 0.0}
    assert elan["impairments"] == {
        "from": [loss, {**loss, "cell_loss": 0.0, "gemodel": bursts}, loss],
        "to": [loss, {**loss, "payload_bit": 0.0005, "header_bit": 0.01}, loss],
    }
    assert elan["capture"] == {"cells": False, "cells_most": 5}
    lane = elan["lane"]
    assert (lane["frame_size"], lane["resolution"], lane["elan"]) == (4544, "static", "elan")
    assert lane["service_line"] == {"rate_bps": 100_000_000, "cell_octets": 54}
    assert (lane["retries"], lane["ageing_ns"], lane["flush_time_out_ns"]) == (2, 10 * 10**9, 4 * 10**9)
    assert "addresses" not in elan
    assert accepted(tmp_path, fabric) == ""


def test_early_packet_discard_begins_at_half_of_the_queue(tmp_path: Path, paths: RunPaths) -> None:
    text = OWN.replace("discard: ppd", "discard: epd")
    assert planned(tmp_path, paths, text)["segments"][0]["queue"]["epd_above"] == 100


def test_a_routed_segment_has_the_addresses_behind_its_ports(tmp_path: Path, paths: RunPaths) -> None:
    text = OWN.replace("frame_size: 4544", "encapsulation: routed")
    text = "\n".join(line for line in text.splitlines() if "    lane:" not in line)
    fabric = planned(tmp_path, paths, text)
    (elan,) = fabric["segments"]
    assert elan["addresses"] == [["10.0.0.1"], ["10.0.0.2"], ["10.0.0.3"]]
    assert elan["max_frame_bytes"] == 9194
    assert "lane" not in elan
    assert accepted(tmp_path, fabric) == ""


@pytest.mark.parametrize(
    "written",
    [
        "line: 64 kbit/s\n    lane: {vc_setup: 10 s}", "line: 10 Gbit/s", "cdv: 10 s",
        "propagation: 10 s\n    lane: {resolution: static}",
        "lane: {vc_setup: 10 s, service_latency: 10 s}", "lane: {vc_setup: 18544 ns}",
        "lane: {unknown_frames: 10, retries: 0, vcc_time_out: 1 h, ageing: 1 ms}", "frame_size: 18190",
        "queue: {cells: 1000000, discard: epd, epd_above: 1000000}", "queue: {cells: 1, discard: epd}",
        "contracts: {'client:eth0': {rate: 64 kbit/s, tolerance: 10 s}}", "shaping: 64 kbit/s",
        "capture: {cells_most: 100000000}", "encapsulation: bridged\n    mtu: 18174",
    ],
)  # fmt: skip
def test_what_the_model_takes_the_fabric_takes(tmp_path: Path, paths: RunPaths, written: str) -> None:
    machines, _, _ = OWN.partition("segments:")
    ports = '["client:eth0", "server:eth0", "third:eth0"]'
    text = f"{machines}segments:\n  elan:\n    kind: atm\n    ports: {ports}\n    {written}\n"
    assert accepted(tmp_path, planned(tmp_path, paths, text)) == ""


def test_a_channel_that_is_there_too_soon_is_refused_by_both(tmp_path: Path, paths: RunPaths) -> None:
    machines, _, _ = OWN.partition("segments:")
    text = f'{machines}segments: {{elan: {{kind: atm, ports: ["client:eth0", "server:eth0", "third:eth0"]}}}}\n'
    fabric = planned(tmp_path, paths, text)
    fabric["segments"][0]["lane"]["vc_setup_ns"] = 18_543
    assert "vc_setup_ns: 18543 is less than the way of the shortest frame, 18544" in accepted(tmp_path, fabric)
