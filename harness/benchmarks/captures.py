# SPDX-License-Identifier: Apache-2.0
"""Large captures, made without a run: small echoes over UDP, as a tap on one wire sees them."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from sundial.workloads.raw.expect import MAGIC

FRAME = 60
"""Bytes of the shortest Ethernet frame, without its check sequence."""
PORT = 7
CLIENTS = 200
"""Ports that one client calls from in turn."""
_CALLS_AT_ONCE = 200_000
_GAP_NS = 10_000
_PAYLOAD = FRAME - 42

_BLOCK = np.dtype(
    [
        ("head", "<u4", 3), ("high", "<u4"), ("low", "<u4"), ("captured", "<u4"), ("original", "<u4"),
        ("ethernet", "u1", 14), ("ip", "u1", 4), ("ip_id", ">u2"), ("fragment", ">u2"), ("ttl", "u1", 2),
        ("ip_sum", ">u2"), ("source", "u1", 4), ("target", "u1", 4), ("source_port", ">u2"), ("target_port", ">u2"),
        ("udp_length", ">u2"), ("udp_sum", ">u2"), ("magic", "u1", 4), ("number", ">u4"), ("length", ">u4"),
        ("rest", "u1", _PAYLOAD - 12), ("total", "<u4"),
    ]
)  # fmt: skip


def write_small_frames(path: Path, frames: int) -> None:
    """A pcapng file of `frames` frames of 60 bytes: requests and their echoes, each with a number of its own."""
    with path.open("wb") as file:
        file.write(struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28))
        resolution = struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)
        length = 20 + len(resolution)
        file.write(struct.pack("<IIHHI", 1, length, 1, 0, 0) + resolution + struct.pack("<I", length))
        for first in range(0, frames // 2, _CALLS_AT_ONCE):
            file.write(_blocks(np.arange(first, min(first + _CALLS_AT_ONCE, frames // 2))).tobytes())


def _blocks(calls: np.ndarray) -> np.ndarray:
    blocks = np.zeros((len(calls), 2), _BLOCK)
    both = calls[:, None]
    at = (2 * both + [0, 1]) * _GAP_NS
    addresses = np.array([[10, 0, 0, 1], [10, 0, 0, 2]], np.uint8)
    ports = np.stack([20_000 + calls % CLIENTS, np.full(len(calls), PORT)], axis=1)
    macs = [bytes.fromhex("020000000001"), bytes.fromhex("020000000002")]
    blocks["head"] = 6, _BLOCK.itemsize, 0
    blocks["high"], blocks["low"] = at >> 32, at & 0xFFFFFFFF
    blocks["captured"] = blocks["original"] = FRAME
    for way in (0, 1):
        blocks["ethernet"][:, way] = np.frombuffer(macs[1 - way] + macs[way] + b"\x08\x00", np.uint8)
        blocks["source"][:, way], blocks["target"][:, way] = addresses[way], addresses[1 - way]
        blocks["source_port"][:, way], blocks["target_port"][:, way] = ports[:, way], ports[:, 1 - way]
    blocks["ip"] = 0x45, 0, 0, 28 + _PAYLOAD
    blocks["ttl"] = 64, 17
    blocks["udp_length"] = 8 + _PAYLOAD
    blocks["magic"] = np.frombuffer(MAGIC, np.uint8)
    blocks["number"], blocks["length"] = both, _PAYLOAD
    blocks["total"] = _BLOCK.itemsize
    blocks["ip_sum"] = _ip_checksum(blocks)
    return blocks


def _ip_checksum(blocks: np.ndarray) -> np.ndarray:
    """Of the 20 bytes behind the Ethernet header (RFC 1071); UDP goes without one (RFC 768)."""
    begin = _BLOCK.fields["ip"][1] if _BLOCK.fields else 0
    octets = blocks.reshape(-1, 1).view(np.uint8)[:, begin : begin + 20].astype(np.uint32)
    sums = (octets[:, ::2] * 256 + octets[:, 1::2]).sum(axis=1)
    sums = (sums & 0xFFFF) + (sums >> 16)
    checksums: np.ndarray = ~((sums & 0xFFFF) + (sums >> 16)) & 0xFFFF
    return checksums.reshape(blocks.shape)
