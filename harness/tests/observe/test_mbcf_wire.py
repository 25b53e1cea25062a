# SPDX-License-Identifier: Apache-2.0
"""The table that wiregen.py wrote against frames packed by hand."""

from __future__ import annotations

import pytest

from sundial.workloads.mbcf import wire
from tests.observe import mbcf_wire

VALUES = {
    "op": 0x11, "flags": 0x53, "version_status": 0x54, "tag": 0x15, "epoch": 0x16171819, "target_epoch": 0x1A1B1C1D,
    "seq": 0x1E1F2021, "ack": 0x22232425, "length": 0x2627, "op_id": 0x2829, "offset": 0x3E3F4041,
    "tag_source_task": 0x2A2B, "tag_target_task": 0x2C2D, "tag_address_high": 0x3A3B3C3D,
    "tag_key": 0x2E2F303132333435,
}  # fmt: skip
OVERLAID = {"source_task", "target_task", "request"}
"""What stands where other operations have their offset."""


def test_fields() -> None:
    packed = mbcf_wire.frame(
        VALUES["op"], (1, VALUES["tag_source_task"]), (2, VALUES["tag_target_task"]), flags=0x13, version=2,
        status=0x14, tag=VALUES["tag"], epoch=VALUES["epoch"], target_epoch=VALUES["target_epoch"], seq=VALUES["seq"],
        ack=VALUES["ack"], length=VALUES["length"], op_id=VALUES["op_id"], key=VALUES["tag_key"],
        address=VALUES["tag_address_high"] << 32 | VALUES["offset"],
    )[wire.ETHERNET :]  # fmt: skip
    read = {name: int.from_bytes(packed[field.bytes]) for name, field in wire.FIELDS.items() if name not in OVERLAID}
    assert read == VALUES
    own = [field for name, field in wire.FIELDS.items() if name not in OVERLAID]
    assert sum(field.size for field in own) == wire.HEADER + wire.DEFINITION
    assert wire.HEADER == 28


def test_words_that_depend_on_the_operation() -> None:
    closed = mbcf_wire.frame(mbcf_wire.CLOSE, (1, 0x1617), (2, 0x1819))[wire.ETHERNET :]
    assert closed[wire.FIELDS["source_task"].bytes] == b"\x16\x17"
    assert closed[wire.FIELDS["target_task"].bytes] == b"\x18\x19"
    result = mbcf_wire.frame(mbcf_wire.RESULT, (1, 0), (2, 0), answers=0x01020304)[wire.ETHERNET :]
    assert result[wire.FIELDS["request"].bytes] == b"\1\2\3\4"


@pytest.mark.parametrize("names", [wire.OPERATIONS, wire.FLAGS])
def test_operations_and_flags(names: dict[int, str]) -> None:
    assert names == {getattr(mbcf_wire, name): name for name in names.values()}
