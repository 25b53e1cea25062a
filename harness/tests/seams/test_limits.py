# SPDX-License-Identifier: Apache-2.0
"""Limits that stand in C or Rust and again in Python: each pair agrees."""

from __future__ import annotations

import re
from pathlib import Path

from sundial.machines import shm
from sundial.model.segment import MTU_MOST
from sundial.model.topology import MACHINES_MOST
from sundial.segments.hub.model import CARRIER_SENSE_NS

HARNESS = Path(__file__).parents[2]
ETHERNET_HEADER_BYTES = 14


def constant(path: str, pattern: str) -> int:
    """The only number in a source that `pattern` stands before."""
    (number,) = re.findall(rf"{pattern}\s*(0x[0-9a-f]+|[\d_]+)", (HARNESS / path).read_text())
    return int(number, 0)


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
    longest = constant("fabric/core/src/frame.rs", r"MAX_FRAME_BYTES: usize =")
    assert longest == MTU_MOST + ETHERNET_HEADER_BYTES


def test_a_hub_that_the_harness_accepts_is_one_that_the_fabric_accepts() -> None:
    hub = "fabric/segments/src/hub/mod.rs"
    sense = {10_000_000: "CARRIER_SENSE_10_NS", 100_000_000: "CARRIER_SENSE_100_NS"}
    assert {rate: constant(hub, rf"{name}: u64 =") for rate, name in sense.items()} == CARRIER_SENSE_NS
