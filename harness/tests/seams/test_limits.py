# SPDX-License-Identifier: Apache-2.0
"""Limits that stand in C or Rust and again in Python: each pair agrees."""

from __future__ import annotations

import re
from pathlib import Path

from sundial.machines import shm
from sundial.model.devices import DEVICES_MOST, PORTS_MOST
from sundial.model.fields import In
from sundial.model.scenario import Scenario
from sundial.model.segment import MTU_MOST
from sundial.model.topology import ADAPTER_LATENCY, MACHINES_MOST
from sundial.seams.fabric import Machine as FabricMachine
from sundial.seams.fabric import Segment
from sundial.segments.hub.model import CARRIER_SENSE_NS
from sundial.units import NS_PER_S

HARNESS = Path(__file__).parents[2]
ETHERNET_HEADER_BYTES = 14
SLOT_HEADER_BYTES, SLOT_ALIGNMENT_BYTES = 16, 64


def constant(path: str, pattern: str) -> int:
    """The only number in a source that `pattern` stands before."""
    (number,) = re.findall(rf"{pattern}\s*(0x[0-9a-f]+|[\d_]+)", (HARNESS / path).read_text())
    return int(number, 0)


def longest_frame() -> int:
    return constant("fabric/core/src/frame.rs", r"MAX_FRAME_BYTES: usize =")


def sync(name: str) -> int:
    return constant("clock/sync.h", rf"#define {name}")


def test_the_shared_memory_is_read_as_it_is_laid_out() -> None:
    assert sync("SYNC_MACHINES") == shm.MACHINES
    assert sync("SYNC_NICS") == shm.NICS
    assert sync("SYNC_VERSION") == shm.VERSION
    assert sync(r"SYNC_MAGIC\s+UINT64_C\(") == shm.MAGIC


def test_a_topology_has_as_many_machines_as_the_shared_memory() -> None:
    assert sync("SYNC_MACHINES") == MACHINES_MOST


def test_the_largest_mtu_makes_the_longest_frame() -> None:
    longest = longest_frame()
    assert longest == MTU_MOST + ETHERNET_HEADER_BYTES
    (limit,) = (item.le for item in Segment.model_fields["max_frame_bytes"].metadata if hasattr(item, "le"))
    assert longest == limit


def test_the_longest_frame_of_lan_emulation_fits_into_an_elan_of_the_largest_frame_size() -> None:
    """18190 octets of AAL5 SDU, the LEC ID among them (af-lane-0021 2.1)."""
    assert longest_frame() == 18190 - 2


def test_a_slot_holds_more_than_the_longest_frame() -> None:
    """Otherwise a frame that is too long would be cut off to one that is not."""
    more = constant("fabric/io/src/config.rs", r"const MORE: usize =")
    assert more > 0
    assert longest_frame() + more + SLOT_HEADER_BYTES + SLOT_ALIGNMENT_BYTES <= sync("SYNC_SLOT_MOST")


def test_a_topology_has_as_many_devices_as_the_fabric_takes() -> None:
    devices = "fabric/io/src/config/devices.rs"
    assert constant(devices, r"const DEVICES: usize =") == DEVICES_MOST
    assert constant(devices, r"const PORTS: .* = 2\.\.=") == PORTS_MOST


def test_an_adapters_latency_has_one_limit() -> None:
    assert constant("fabric/io/src/config/raw.rs", r"const ADAPTER_LATENCY_MOST_NS: u64 =") == ADAPTER_LATENCY.most
    (limit,) = (each.le for each in FabricMachine.model_fields["adapter_latency_ns"].metadata if hasattr(each, "le"))
    assert limit == ADAPTER_LATENCY.most


def test_a_hub_that_the_harness_accepts_is_one_that_the_fabric_accepts() -> None:
    hub = "fabric/segments/src/hub/mod.rs"
    sense = {10_000_000: "CARRIER_SENSE_10_NS", 100_000_000: "CARRIER_SENSE_100_NS"}
    assert {rate: constant(hub, rf"{name}: u64 =") for rate, name in sense.items()} == CARRIER_SENSE_NS


def longest(field: str) -> int:
    (longest_ns,) = (item.kind.most for item in Scenario.model_fields[field].metadata if isinstance(item, In))
    return longest_ns


def test_the_clock_of_an_atm_segment_outlasts_the_longest_run() -> None:
    """A run fails at its deadline, and its wires stay open for `linger` after that at most."""
    last_ns = constant("fabric/segments/src/atm/units.rs", r"const LAST_HOUR: u64 =") * 3600 * NS_PER_S
    assert longest("deadline") + longest("linger") < last_ns
