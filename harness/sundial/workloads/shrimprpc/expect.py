# SPDX-License-Identifier: Apache-2.0
"""What calls of guest-apps/shrimp/echo.x are in memory (guest-apps/shrimp/README.md, "Layout"), and in how many packets
they travel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from sundial.segments.vmmc.wire import NOTIFY, PAGE, WORD
from sundial.workloads.vmmc.expect import CONTROL_PAGE, Piece, pieces

NULL = "null"
FIXED_PROCEDURES = ("in_64", "out_64", "inout_64")
PROCEDURES = (NULL, "in", "out", "inout", *FIXED_PROCEDURES)
"""In the order of their numbers."""
WITH_ARGUMENTS, WITH_RESULTS = ("in", "inout", "in_64", "inout_64"), ("out", "inout", "out_64", "inout_64")
"""Those that carry data there and back."""
FIXED = 64
"""Bytes of echo_64."""
ECHO_LIMIT = 16384
PROGRAM, VERSION = 0x20001997, 1
HASH = 0xBE49850972249E28
"""Of the interface, as shrimpgen makes it (`generator/emit.py`)."""
DATA_PAGES = 5
"""The largest call: ECHO_LIMIT bytes, how many they are, and the flag."""
END = CONTROL_PAGE + DATA_PAGES * PAGE
"""Of the buffer in its export."""
_PROCEDURE_BITS = 16


def flag(sequence: int, low: int) -> bytes:
    """The last word: `low` is the procedure or, of a reply, the status."""
    return (sequence << _PROCEDURE_BITS | low).to_bytes(WORD, "little")


def _counted(data: bytes) -> bytes:
    """Data of variable size and, behind it, how much of it there is."""
    return data + bytes(-len(data) % WORD) + len(data).to_bytes(WORD, "little")


def arguments(procedure: str, number: int, payload: bytes) -> bytes:
    """What is below the flag of the `number`th call of a batch; `payload` is the pattern of that call."""
    if procedure == "out":
        return number.to_bytes(WORD, "little") + len(payload).to_bytes(WORD, "little")
    if procedure in ("in", "inout"):
        return _counted(payload)
    return payload if procedure in ("in_64", "inout_64") else b""


def results(procedure: str, payload: bytes) -> bytes:
    """The same of the reply; `payload` is what comes back."""
    if procedure in ("out", "inout"):
        return _counted(payload)
    return payload if procedure in ("out_64", "inout_64") else b""


def sizes(procedure: str, size: int) -> tuple[int, int]:
    """Bytes of a call and of its reply, flags included."""
    payload = bytes(size)
    return len(arguments(procedure, 0, payload)) + WORD, len(results(procedure, payload)) + WORD


def packets(
    length: int, combine_bytes: int, notify: bool, breaks: Mapping[int, int] = MappingProxyType({})
) -> tuple[Piece, ...]:
    """One packet where its bytes are no more than a packet combines, and lie in one page; it ends with the buffer.

    `notify`: those in the last page, where the flag is, notify the receiver. `breaks`: where an interrupt kept the node
    from storing, and why what was combined left then.
    """
    begin, last = END - length, END - PAGE
    found: list[Piece] = []
    for end in (*sorted(breaks), END):
        parts = pieces("au-combined", begin, end - begin, combine_bytes)
        found += parts if end == END else (*parts[:-1], replace(parts[-1], reason=breaks[end]))
        begin = end
    return tuple(replace(each, flags=NOTIFY if notify and each.offset >= last else 0) for each in found)
