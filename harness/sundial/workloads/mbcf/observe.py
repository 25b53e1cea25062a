# SPDX-License-Identifier: Apache-2.0
"""MBCF in captures: fields of our own dissector (harness/wireshark/mbcf.lua), and a digest of what a frame asks for."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from sundial.observe.pcap import Capture, Interface
from sundial.observe.workload import Dissection, Field, ServerPorts
from sundial.workloads.mbcf.wire import ETHERNET, ETHERTYPE, FIELDS, HEADER

DISSECTOR = Path(__file__).resolve().parents[3] / "wireshark" / "mbcf.lua"

_NUMBERS = {
    "mbcf_op": "mbcf.op",
    "mbcf_flags": "mbcf.flags",
    "mbcf_status": "mbcf.status",
    "mbcf_source": "mbcf.src.node",
    "mbcf_source_task": "mbcf.src.task",
    "mbcf_target": "mbcf.dst.node",
    "mbcf_target_task": "mbcf.dst.task",
    "mbcf_epoch": "mbcf.epoch",
    "mbcf_seq": "mbcf.seq",
    "mbcf_ack": "mbcf.ack",
    "mbcf_ack_epoch": "mbcf.ack_epoch",
    "mbcf_op_id": "mbcf.op_id",
    "mbcf_length": "mbcf.length",
    "mbcf_part_offset": "mbcf.part.offset",
    "mbcf_part_total": "mbcf.part.total",
    "mbcf_read_length": "mbcf.read.length",
    "mbcf_connection": "mbcf.taskque.connection",
}
_TEXTS = {"mbcf_address": "mbcf.address", "mbcf_data": "mbcf.data"}

_ETHERTYPE_AT = 12
_ETHERTYPE = ETHERTYPE.to_bytes(2, "big")
_CHANGES = ("version", "flags", "ack", "ack_epoch")
_KEPT = tuple(
    slice(ETHERNET + place.offset, ETHERNET + place.offset + place.size)
    for name, place in FIELDS.items()
    if name not in _CHANGES
)
"""Parts of a frame that are the same when it is sent again; and so is its payload."""
_PAYLOAD = slice(ETHERNET + HEADER, None)


class _Mbcf:
    """`mbcf_data`: the first 36 bytes of an operation's data in hexadecimal, behind the heads of the protocol.
    `mbcf_digest`: of all that stays the same when a frame is sent again, so of what it asks for."""

    fields = (
        *(Field(column, tshark, "number") for column, tshark in _NUMBERS.items()),
        *(Field(column, tshark, "all") for column, tshark in _TEXTS.items()),
    )
    computed: Mapping[str, type[pl.DataType]] = {"mbcf_digest": pl.UInt32}

    def carried_by(self, capture: Capture, interface: Interface) -> bool:
        start = (16 if capture.classic else 28) + _ETHERTYPE_AT
        data = capture.data
        return any(data[block[0] + start : block[0] + start + 2] == _ETHERTYPE for block in interface.blocks)

    def options(self, ports: ServerPorts) -> Sequence[str]:
        return (f"-X lua_script:{DISSECTOR}", "-o mbcf.brief:TRUE")

    def compute(self, capture: Capture, interface: Interface) -> Sequence[pl.Series]:
        return [pl.Series("mbcf_digest", [_digest(capture.packet(block)) for block in interface.blocks], pl.UInt32)]


def _digest(frame: bytes) -> int | None:
    """Null where the frame is no MBCF."""
    if frame[_ETHERTYPE_AT : _ETHERTYPE_AT + 2] != _ETHERTYPE:
        return None
    return zlib.crc32(b"".join(frame[part] for part in (*_KEPT, _PAYLOAD)))


KIND: Dissection = _Mbcf()
