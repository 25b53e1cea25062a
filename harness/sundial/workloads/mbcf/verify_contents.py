# SPDX-License-Identifier: Apache-2.0
"""What operations of mbcf-client carry: data are the pattern of payloads, and operands follow from the number of the
call."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from sundial.verify.findings import Finding
from sundial.verify.sockets.pattern import pattern
from sundial.workloads.mbcf.expect import Exchange, Frame
from sundial.workloads.mbcf.wire import PART_HEAD, PAYLOAD


class Carried(NamedTuple):
    """Of a frame as it was sent first: what it is, the tasks and memory that it is about, and where its payload is."""

    op: int
    flags: int
    length: int
    content: int
    """CRC of its data."""
    source_task: int
    target_task: int
    key: int | None
    address: int | None
    op_id: int
    answers: int | None
    """The row of the frame that a RESULT answers."""
    at: int
    """Where the payload begins, in bytes of the frame."""
    capture: str
    begin: int
    """Where it begins in that file."""


Rows = Sequence[tuple[int, str]]


def check_contents(
    carried: Mapping[int, Carried],
    procedure: str,
    size: int,
    number: int,
    sent: Rows,
    back: Rows,
    expected: Exchange,
    call: int | None,
) -> Iterator[Finding]:
    """Findings about the data of one operation, the `number`th of its batch, whose frames are those expected."""
    # The pattern repeats after 256 calls.
    asked, result = _data(procedure, size, number % 256 if procedure in ("write", "fifo", "read") else number)
    for name, content, rows, frames in (
        ("mbcf.data", asked, sent, expected.there),
        ("mbcf.result data", result, back, expected.back),
    ):
        for (row, _), part in zip(rows, _split(content, frames), strict=True):
            if carried[row].content != zlib.crc32(part):
                yield Finding(call, name, f"{len(part)} bytes of call {number}", "others", [row])


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
        return b"".join(length.to_bytes(4) + bytes(4) for length in lengths), _pattern(number, size)
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
