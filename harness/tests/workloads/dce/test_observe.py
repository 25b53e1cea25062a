# SPDX-License-Identifier: Apache-2.0
"""PDUs in frames: what names them, also where the frame has no more than their beginning."""

from __future__ import annotations

from sundial.workloads.dce.expect_pdu import Flags, Type
from sundial.workloads.dce.observe import read
from sundial.workloads.dce.verify_message import encode
from sundial.workloads.dce.verify_stream import SUNDIAL
from tests.workloads.dce.dialogue import ACTIVITY, pdu

HEADERS = bytes(42)


def test_a_first_ip_fragment_names_its_pdu() -> None:
    whole = encode(pdu(Type.REQUEST, flags=Flags.FRAGMENT, body=bytes(4016)))
    assert read(HEADERS + whole[:1472]) == {
        "dce_type": 0, "dce_flags": int(Flags.FRAGMENT), "dce_serial": 0, "dce_sequence": 0, "dce_fragment": 0,
        "dce_length": 4016, "dce_opnum": 1, "dce_activity": str(ACTIVITY), "dce_interface": str(SUNDIAL),
        "dce_asks": True,
    }  # fmt: skip


def test_both_byte_orders_and_what_is_no_pdu() -> None:
    for little in (True, False):
        found = read(HEADERS + encode(pdu(Type.RESPONSE, little_endian=little, sequence=0x01020304, serial=0x0506)))
        assert (found["dce_type"], found["dce_sequence"], found["dce_serial"]) == (2, 0x01020304, 0x0506)
    assert read(HEADERS + b"\x04\x00\x00\x00\x55" + bytes(80)) == {}
