# SPDX-License-Identifier: Apache-2.0
"""MBCF frames packed by hand from guest-apps/sss-core/mbcf/wire.def; nothing here imports `sundial`."""

from __future__ import annotations

import struct

ACK, SYN, SYNACK, RST, PROBE, OPENED = range(6)
TASKQUE, WRITE, READ, FIFO, SIGNAL, SWAP, CAS, FETCH_ADD, CLOSE = range(0x10, 0x19)
RESULT = 0x20
UNSURE, ACK_NOW, MORE, RETX, WIDE, PART, DEFINES = 1, 2, 4, 8, 16, 32, 64

EPOCH = {1: 0x00010A01, 2: 0x00020B02, 3: 0x00030C03}
"""Of each node in these tests."""


def mac(node: int) -> bytes:
    return bytes.fromhex("0253440000") + bytes([node])


def nonces(nonce: int, echo: int = 0) -> bytes:
    """The payload of a handshake."""
    return struct.pack(">II", nonce, echo)


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
    target_epoch: int | None = None,
    length: int | None = None,
    version: int = 2,
    tag: int = 0,
    answers: int = 0,
    short: bool = False,
) -> bytes:
    """One Ethernet frame. `ack` None: the receiver is not known (target_epoch 0). `status` of a SIGNAL: its arguments.
    A request to a task's memory defines its tag, unless it is `short`. `answers`: the number that a RESULT names."""
    known = 0 if ack is None else EPOCH[target[0]]
    keyed = WRITE <= op <= FETCH_ADD
    last = address & 0xFFFFFFFF if keyed else answers if op == RESULT else source[1] << 16 | target[1]
    defines = keyed and not short
    head = struct.pack(
        ">BBBBIIIIHHI", op, flags | (DEFINES if defines else 0), version << 5 | status, tag,
        EPOCH[source[0]] if epoch is None else epoch, known if target_epoch is None else target_epoch, seq, ack or 0,
        len(payload) if length is None else length, op_id, last,
    )  # fmt: skip
    assert len(head) == 28
    if defines:
        head += struct.pack(">HHIQ", source[1], target[1], address >> 32, key)
    whole = mac(target[0]) + mac(source[0]) + b"\x88\xb6" + head + payload
    return whole + bytes(max(0, 60 - len(whole)))
