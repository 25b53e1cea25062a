# SPDX-License-Identifier: Apache-2.0
"""What operations of mbcf-client carry, and where to: data are the pattern of payloads, operands follow from the number
of the call, and the server has told the addresses before (guest-apps/sss-core/tasks/common/mbcf_target.h)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sundial.verify.sockets.pattern import pattern
from sundial.workloads.mbcf.expect import Exchange, Frame
from sundial.workloads.mbcf.verify_fields import PLACE_BYTES
from sundial.workloads.mbcf.wire import PART_HEAD, PAYLOAD

PLACE = f"WRITE:{PLACE_BYTES}"
"""How a server tells where its memory is: accesskey, memory, FIFO, handler and word, 8 bytes each, little endian."""
_PLACES = {"write": 1, "read": 1, "fifo": 2, "signal": 3, "swap": 4, "cas": 4, "fetch_add": 4}
_LOW = 0xFFFF_FFFF


@dataclass(frozen=True)
class Carried:
    """Of a frame as it was sent first: CRC of its data, where it goes to, and the first bytes in hexadecimal."""

    content: int
    address: str | None
    data: str


Rows = Sequence[tuple[int, str]]
Problem = tuple[str, str, str, list[int]]
"""field, expected, seen, rows."""


def check_contents(
    carried: Mapping[int, Carried], procedure: str, size: int, number: int, sent: Rows, back: Rows, expected: Exchange
) -> Iterator[Problem]:
    """Problems with the data of one operation, the `number`th of its batch, whose frames are those expected."""
    asked, result = _data(procedure, size, number % 256 if procedure in ("write", "fifo") else number)
    for name, content, rows, frames in (
        ("mbcf.data", asked, sent, expected.there),
        ("mbcf.result data", result, back, expected.back),
    ):
        for (row, _), part in zip(rows, _split(content, frames), strict=True):
            if carried[row].content != zlib.crc32(part):
                yield name, f"{len(part)} bytes of call {number}", "others", [row]


def check_places(
    carried: Mapping[int, Carried], procedure: str, sent: Rows, expected: Exchange, told: Carried | None
) -> Iterator[Problem]:
    """Problems with the addresses of one operation, beside what its server has `told`."""
    if told is None:
        return
    place = 8 * _PLACES[procedure]
    # Of the word only the low half is kept of what the server said.
    begin = int.from_bytes(bytes.fromhex(told.data)[place : place + 8], "little")
    for (row, _), frame in zip(sent, expected.there, strict=True):
        seen = int(carried[row].address or "0", 16)
        if (seen ^ begin) & (_LOW if procedure in ("swap", "cas", "fetch_add") else -1):
            yield "mbcf.address", f"0x{begin:x}, as the server said", f"0x{seen:x}", [row]
        if procedure in ("write", "read"):
            begin += frame.payload if procedure == "write" else expected.back[0].payload


def _split(content: bytes, frames: Sequence[Frame]) -> Iterator[bytes]:
    """What each frame carries of it."""
    at = 0
    for frame in frames:
        size = frame.payload - (PART_HEAD if frame.part else 0)
        yield content[at : at + size]
        at += size


@lru_cache(maxsize=4096)
def _data(procedure: str, size: int, number: int) -> tuple[bytes, bytes]:
    """What an operation carries, and what its RESULTs do."""
    if procedure == "read":
        lengths = [min(PAYLOAD, size - at) for at in range(0, size, PAYLOAD)] or [0]
        return b"".join(length.to_bytes(4) + bytes(4) for length in lengths), _pattern(0, size)
    if procedure == "signal":
        return _word(number) + _pattern(number, size), b""
    if procedure == "swap":
        return _word(number + 1), _word(number)
    if procedure == "cas":
        return _word(number) + _word(number + 1), _word(number)
    if procedure == "fetch_add":
        return _word(number + 1), _word(number * (number + 1) // 2)
    return _pattern(number, size), b""


def _pattern(number: int, size: int) -> bytes:
    return pattern(np.array([number]), 0, size).tobytes()


def _word(value: int) -> bytes:
    return value.to_bytes(8)
