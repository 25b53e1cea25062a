# SPDX-License-Identifier: Apache-2.0
"""The table that mbcf/generate.py wrote against frames packed by hand."""

from __future__ import annotations

import pytest

from sundial.workloads.mbcf import wire
from tests.observe import mbcf_wire

VALUES = {
    "version": 0x11, "op": 0x12, "flags": 0x13, "status": 0x14, "source_node": 1, "source_task": 0x1617,
    "target_node": 2, "target_task": 0x1A1B, "epoch": 0x1C1D1E1F, "seq": 0x20212223, "ack": 0x24252627,
    "key": 0x28292A2B2C2D2E2F, "address": 0x3031323334353637, "op_id": 0x38393A3B, "length": 0x3C3D,
    "ack_epoch": 0x3E3F,
}  # fmt: skip


def test_fields() -> None:
    given = dict(VALUES)
    source = (given.pop("source_node"), given.pop("source_task"))
    target = (given.pop("target_node"), given.pop("target_task"))
    packed = mbcf_wire.frame(given.pop("op"), source, target, **given)[wire.ETHERNET :]
    assert {name: int.from_bytes(packed[field.bytes]) for name, field in wire.FIELDS.items()} == VALUES
    assert sum(field.size for field in wire.FIELDS.values()) == wire.HEADER


@pytest.mark.parametrize("names", [wire.OPERATIONS, wire.FLAGS])
def test_operations_and_flags(names: dict[int, str]) -> None:
    assert names == {getattr(mbcf_wire, name): name for name in names.values()}
