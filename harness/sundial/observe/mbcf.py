# SPDX-License-Identifier: Apache-2.0
"""MBCF in captures: fields of our own dissector (harness/wireshark/mbcf.lua), and a digest of what a frame asks for."""

from __future__ import annotations

import zlib
from pathlib import Path

import polars as pl

from sundial.observe.pcap import Capture, Interface

DISSECTOR = Path(__file__).resolve().parents[2] / "wireshark" / "mbcf.lua"
OPTIONS = (f"-X lua_script:{DISSECTOR}", "-o mbcf.brief:TRUE")
ETHERTYPE = b"\x88\xb6"

UNSIGNED = (
    ("mbcf_op", "mbcf.op"),
    ("mbcf_flags", "mbcf.flags"),
    ("mbcf_status", "mbcf.status"),
    ("mbcf_source", "mbcf.src.node"),
    ("mbcf_source_task", "mbcf.src.task"),
    ("mbcf_target", "mbcf.dst.node"),
    ("mbcf_target_task", "mbcf.dst.task"),
    ("mbcf_epoch", "mbcf.epoch"),
    ("mbcf_seq", "mbcf.seq"),
    ("mbcf_ack", "mbcf.ack"),
    ("mbcf_ack_epoch", "mbcf.ack_epoch"),
    ("mbcf_op_id", "mbcf.op_id"),
    ("mbcf_length", "mbcf.length"),
    ("mbcf_part_offset", "mbcf.part.offset"),
    ("mbcf_part_total", "mbcf.part.total"),
    ("mbcf_read_length", "mbcf.read.length"),
    ("mbcf_connection", "mbcf.taskque.connection"),
)
TEXT = (("mbcf_address", "mbcf.address"), ("mbcf_data", "mbcf.data"))

COLUMNS: dict[str, type[pl.DataType]] = {
    **{name: pl.UInt32 for name, _ in UNSIGNED},
    "mbcf_address": pl.String,
    "mbcf_data": pl.String,
    "mbcf_digest": pl.UInt32,
}
"""Null in frames of other EtherTypes. `mbcf_data`: the first 36 bytes of an operation's data in hexadecimal, behind the
heads of the protocol. `mbcf_digest`: of all that stays the same when a frame is sent again, so of what it asks for."""

_ETHERTYPE_AT = 12
# Of a frame: operation; status to sequence number; key to length; payload. Left out: flags, ack, ack_epoch.
_STABLE = (slice(15, 16), slice(17, 34), slice(38, 60), slice(62, None))


def carries(capture: Capture, interface: Interface) -> bool:
    """Whether any frame seen at `interface` is MBCF."""
    start = (16 if capture.classic else 28) + _ETHERTYPE_AT
    data = capture.data
    return any(data[block[0] + start : block[0] + start + 2] == ETHERTYPE for block in interface.blocks)


def digests(capture: Capture, interface: Interface) -> pl.Series:
    """One value for each frame of `interface`, null where it is no MBCF."""
    found: list[int | None] = []
    for block in interface.blocks:
        frame = capture.packet(block)
        if frame[_ETHERTYPE_AT : _ETHERTYPE_AT + 2] == ETHERTYPE:
            found.append(zlib.crc32(b"".join(frame[part] for part in _STABLE)))
        else:
            found.append(None)
    return pl.Series("mbcf_digest", found, dtype=pl.UInt32)
