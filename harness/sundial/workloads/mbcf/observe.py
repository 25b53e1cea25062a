# SPDX-License-Identifier: Apache-2.0
"""MBCF in captures: the fields of its frames, read from the bytes, and a digest of what a frame asks for.

Nothing of this comes from the dissector: what a tag stands for also follows from frames of other ports (`verify_tags`).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from sundial.observe.headers import Headers
from sundial.observe.pcap import Capture, Interface
from sundial.observe.workload import Reader
from sundial.workloads.mbcf.wire import (
    ACK,
    CLOSE,
    DEFINES,
    DEFINITION,
    ETHERNET,
    ETHERTYPE,
    FIELDS,
    FIFO,
    HEADER,
    OPENED,
    PART,
    PART_HEAD,
    PAYLOAD_FIELDS,
    READ,
    SIGNAL,
    SIGNAL_ARGUMENT,
    STATUS_MASK,
    SYN,
    SYNACK,
    TASKQUE,
    TASKQUE_HEAD,
    VERSION_SHIFT,
)

DISSECTOR = Path(__file__).resolve().parents[3] / "wireshark" / "mbcf.lua"

DATA_SHOWN = 36
"""Bytes of data that `mbcf_data` has."""

_HEADER = struct.Struct(">6s6sHBBBBIIIIHHI")
_DEFINITION = struct.Struct(">HHIQ")
_ETHERTYPE_AT = 12
_ETHERTYPE = ETHERTYPE.to_bytes(2, "big")
_CHANGES = ("flags", "ack")
_KEPT = tuple(
    slice(ETHERNET + place.offset, ETHERNET + place.offset + place.size)
    for name, place in FIELDS.items()
    if name not in _CHANGES and place.offset < HEADER
)
"""Parts of a header that are the same when the frame is sent again; and so is all behind it."""
_REST = slice(ETHERNET + HEADER, None)

_NUMBERS = (
    "op", "flags", "version", "status", "tag", "epoch", "target_epoch", "seq", "ack", "length", "op_id", "last",
    "defined_source", "defined_target", "defined_high", "part_offset", "part_total", "read_length", "read_reserved",
    "permission", "connection", "close_connection", "close_peer", "nonce", "echo", "excess", "digest", "content",
)  # fmt: skip
_WIDE = ("source_mac", "target_mac", "defined_key", "taskque_key")
_HEADS: Mapping[int, tuple[tuple[str, str], ...]] = {
    TASKQUE: (
        ("taskque_key", "taskque_key"),
        ("permission", "taskque_permission"),
        ("connection", "taskque_connection"),
    ),
    READ: (("read_length", "read_length"), ("read_reserved", "read_reserved")),
    CLOSE: (("close_connection", "close_connection"), ("close_peer", "close_peer")),
    **dict.fromkeys((SYN, SYNACK, OPENED), (("nonce", "nonce"), ("echo", "echo"))),
}
_PART = (("part_total", "part_total"), ("part_offset", "part_offset"))


class _Mbcf:
    """`mbcf_last`: the word behind op_id. `mbcf_data`: the first bytes of an operation's data in hexadecimal, behind
    the heads of the protocol. `mbcf_excess`: bytes of padding that are not zero, or are too many. `mbcf_digest`: of
    all that stays the same when a frame is sent again, so of what it asks for; `mbcf_content`: of the payload
    behind the head of a part."""

    columns: Mapping[str, type[pl.DataType]] = {
        **{f"mbcf_{name}": pl.UInt32 for name in _NUMBERS},
        **{f"mbcf_{name}": pl.UInt64 for name in _WIDE},
        "mbcf_data": pl.String,
    }

    def carried_by(self, interface: Interface, headers: Headers) -> bool:
        return bool((headers.heads.number(_ETHERTYPE_AT, len(_ETHERTYPE)) == ETHERTYPE).any())

    def read(self, capture: Capture, interface: Interface, headers: Headers) -> Sequence[pl.Series]:
        rows = [read_frame(capture.packet(block)) for block in interface.each()]
        return [
            pl.Series(column, [row.get(column) for row in rows], dtype, strict=True)
            for column, dtype in self.columns.items()
        ]


def read_frame(frame: bytes) -> dict[str, int | str]:
    """The columns of one frame; none where it is not MBCF, or too short for its header."""
    if frame[_ETHERTYPE_AT : _ETHERTYPE_AT + 2] != _ETHERTYPE or len(frame) < ETHERNET + HEADER:
        return {}
    target, source, _, op, flags, first, tag, *numbers = _HEADER.unpack_from(frame)
    epoch, target_epoch, seq, ack, length, op_id, last = numbers
    found: dict[str, int | str] = {
        "mbcf_source_mac": int.from_bytes(source), "mbcf_target_mac": int.from_bytes(target), "mbcf_op": op,
        "mbcf_flags": flags, "mbcf_version": first >> VERSION_SHIFT, "mbcf_status": first & STATUS_MASK,
        "mbcf_tag": tag, "mbcf_epoch": epoch, "mbcf_target_epoch": target_epoch, "mbcf_seq": seq, "mbcf_ack": ack,
        "mbcf_length": length, "mbcf_op_id": op_id, "mbcf_last": last,
        "mbcf_digest": zlib.crc32(b"".join(frame[part] for part in (*_KEPT, _REST))),
    }  # fmt: skip
    at = ETHERNET + HEADER
    if flags & DEFINES and len(frame) >= at + DEFINITION:
        names = ("mbcf_defined_source", "mbcf_defined_target", "mbcf_defined_high", "mbcf_defined_key")
        found |= zip(names, _DEFINITION.unpack_from(frame, at), strict=True)
        at += DEFINITION
    payload, padding = frame[at : at + length], frame[at + length :]
    found["mbcf_excess"] = len(padding) - padding.count(0) + max(0, len(frame) - max(60, at + length))
    in_parts = op == FIFO and flags & PART
    found["mbcf_content"] = zlib.crc32(payload[PART_HEAD if in_parts else 0 :])
    heads = _PART if in_parts else _HEADS.get(op, ())
    for name, field in heads:
        place = PAYLOAD_FIELDS[field]
        if len(payload) >= place.offset + place.size:
            found[f"mbcf_{name}"] = int.from_bytes(payload[place.bytes])
    data = payload[_head_bytes(op, flags, first & STATUS_MASK) :]
    if data and op >= TASKQUE:
        found["mbcf_data"] = data[:DATA_SHOWN].hex()
    return found


def repeated(frame: bytes) -> int | None:
    """What a frame asks for: the same each time it is sent. None for acknowledgements and what is not MBCF."""
    read = read_frame(frame)
    return None if read.get("mbcf_op", ACK) == ACK else int(read["mbcf_digest"])


def _head_bytes(op: int, flags: int, status: int) -> int:
    """Bytes of the payload in front of the data."""
    if op == TASKQUE:
        return TASKQUE_HEAD
    if op == SIGNAL:
        return SIGNAL_ARGUMENT * status
    return PART_HEAD if op == FIFO and flags & PART else 0


KIND: Reader = _Mbcf()
