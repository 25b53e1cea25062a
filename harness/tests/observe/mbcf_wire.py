# SPDX-License-Identifier: Apache-2.0
"""MBCF frames packed by hand from guest-apps/sss-core/mbcf/wire.def; nothing here imports `sundial`."""

from __future__ import annotations

import struct

ACK, SYN, SYNACK, RST, PROBE = range(5)
TASKQUE, WRITE, READ, FIFO, SIGNAL, SWAP, CAS, FETCH_ADD, CLOSE = range(0x10, 0x19)
RESULT = 0x20
UNSURE, ACK_NOW, MORE, RETX, WIDE, PART = 1, 2, 4, 8, 16, 32

EPOCH = {1: 0x00010A01, 2: 0x00020B02, 3: 0x00030C03}
"""Of each node in these tests."""


def mac(node: int) -> bytes:
    return bytes.fromhex("0253440000") + bytes([node])


def frame(
    op: int,
    source: tuple[int, int],
    target: tuple[int, int],
    *,
    seq: int = 0,
    ack: int | None = None,
    payload: bytes = b"",
    flags: int = 0,
    status: int = 0,
    key: int = 0,
    address: int = 0,
    op_id: int = 0,
    epoch: int | None = None,
    ack_epoch: int | None = None,
    length: int | None = None,
    version: int = 1,
) -> bytes:
    """One Ethernet frame. `ack` None: it acknowledges nothing (ack_epoch 0). `status` of a SIGNAL: its arguments."""
    acked = 0 if ack is None else EPOCH[target[0]] & 0xFFFF
    head = struct.pack(
        ">BBBBHHHHIIIQQIHH", version, op, flags, status, *source, *target,
        EPOCH[source[0]] if epoch is None else epoch, seq, ack or 0, key, address, op_id,
        len(payload) if length is None else length, acked if ack_epoch is None else ack_epoch,
    )  # fmt: skip
    assert len(head) == 48
    whole = mac(target[0]) + mac(source[0]) + b"\x88\xb6" + head + payload
    return whole + bytes(max(0, 60 - len(whole)))
