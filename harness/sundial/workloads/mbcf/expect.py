# SPDX-License-Identifier: Apache-2.0
"""Frames of each operation of memory-based communication.

Formats: guest-apps/sss-core/mbcf/wire.def. When acknowledgements are due: `expect_acks`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, get_args

from sundial.expect.call import Leg
from sundial.expect.ip import Packet
from sundial.workloads.mbcf.wire import (
    CAS_PAYLOAD,
    DEFINITION,
    HEADER,
    PART_HEAD,
    PAYLOAD,
    READ_PAYLOAD,
    SIGNAL_ARGUMENT,
    SIGNAL_ARGUMENTS,
    TASKQUE_HEAD,
    WORD_PAYLOAD,
)

Operation = Literal["taskque", "write", "read", "fifo", "signal", "swap", "cas", "fetch_add"]
Kind = Literal["TASKQUE", "WRITE", "READ", "FIFO", "SIGNAL", "SWAP", "CAS", "FETCH_ADD", "CLOSE", "RESULT", "ACK"]


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame: `payload` bytes behind the header; `part` of a FIFO segment; `now`: to be acknowledged at once;
    `defines`: the first one on its connection says what the tag of the others stands for."""

    kind: Kind
    payload: int
    more: bool = False
    now: bool = False
    part: bool = False
    defines: bool = False

    @property
    def packet(self) -> Packet:
        """The frame as Ethernet arithmetic knows it: all behind its header is the packet."""
        return Packet(HEADER + (DEFINITION if self.defines else 0) + self.payload, self.payload)

    @property
    def text(self) -> str:
        """For comparison: kind, bytes of payload, `+` where parts follow, `!` where the ACK is due at once."""
        return f"{self.kind}:{self.payload}{'+' if self.more else ''}{'!' if self.now else ''}"


@dataclass(frozen=True, slots=True)
class Exchange:
    """What one operation takes: frames of its sender, and the RESULTs that come back."""

    there: tuple[Frame, ...]
    back: tuple[Frame, ...] = ()
    ack: tuple[Frame, ...] = ()
    """The ACK that its user waits for, where no other frame leaves in the same instant to carry it."""


def _parts(length: int, most: int) -> tuple[int, ...]:
    """`length` bytes in parts of at most `most`; nothing is one empty part."""
    full, rest = divmod(length, most)
    return (most,) * full + ((rest,) if rest or not full else ())


def _acknowledged(there: tuple[Frame, ...], ack: bool) -> Exchange:
    """An operation without a result: where its user waits for the ACK, its last frame asks for that at once."""
    if not ack:
        return Exchange(there)
    return Exchange((*there[:-1], replace(there[-1], now=True)), ack=(Frame("ACK", 0),))


def _segment(kind: Kind, length: int, ack: bool) -> Exchange:
    """An operation that may take several frames."""
    if length <= PAYLOAD:
        return _acknowledged((Frame(kind, length),), ack)
    inner = PART_HEAD if kind == "FIFO" else 0
    sizes = _parts(length, PAYLOAD - inner)
    last = len(sizes) - 1
    frames = (Frame(kind, inner + size, more=at < last, part=kind == "FIFO") for at, size in enumerate(sizes))
    return _acknowledged(tuple(frames), ack)


@lru_cache(maxsize=16384)
def expect_operation(
    operation: Operation, length: int, ack: bool = False, arguments: int = SIGNAL_ARGUMENTS
) -> Exchange:
    """Frames of one operation with `length` bytes of data. Raises ValueError for what the protocol cannot carry.

    `ack`: its user waits for the acknowledgement, and nothing else is to bring it soon (MB_LAZY). An atomic operation
    has a RESULT then, a READ in any case, and that is the acknowledgement. `arguments`: of a SIGNAL.
    """
    if operation not in get_args(Operation):
        raise ValueError(f"operation {operation!r}: known are {', '.join(get_args(Operation))}")
    if length < 0:
        raise ValueError(f"length {length}: must not be negative")
    if operation == "write":
        return _segment("WRITE", length, ack)
    if operation == "fifo":
        return _segment("FIFO", length, ack)
    if operation == "read":
        sizes = _parts(length, PAYLOAD)
        last = len(sizes) - 1
        asked = tuple(Frame("READ", READ_PAYLOAD, more=place < last) for place in range(len(sizes)))
        return Exchange(asked, tuple(Frame("RESULT", size) for size in sizes))
    if operation in ("taskque", "signal"):
        head = TASKQUE_HEAD if operation == "taskque" else SIGNAL_ARGUMENT * arguments
        if length > PAYLOAD - head:
            raise ValueError(f"{operation} of {length} bytes: at most {PAYLOAD - head}")
        return _acknowledged((Frame("TASKQUE" if operation == "taskque" else "SIGNAL", head + length),), ack)
    if length not in (4, 8):
        raise ValueError(f"{operation} of {length} bytes: atomic operations are on 4 or 8")
    atomic: dict[Operation, tuple[Kind, int]] = {
        "swap": ("SWAP", WORD_PAYLOAD),
        "cas": ("CAS", CAS_PAYLOAD),
        "fetch_add": ("FETCH_ADD", WORD_PAYLOAD),
    }
    return Exchange((Frame(*atomic[operation]),), (Frame("RESULT", WORD_PAYLOAD),) if ack else ())


def mbcf_leg(frames: tuple[Frame, ...]) -> Leg:
    """Frames of one direction in the terms of other transports."""
    total = sum(frame.payload for frame in frames)
    packets = tuple(frame.packet for frame in frames)
    count = len(packets)
    return Leg("mbcf", total, total, (), packets, True, count, count, max((p.data for p in packets), default=0))


def frame_bytes(frames: tuple[Frame, ...]) -> int:
    """Ethernet frames without FCS, padded to the least length."""
    return sum(frame.packet.padded_frame for frame in frames)


def wire_bytes(frames: tuple[Frame, ...]) -> int:
    """Byte times on the wire, with preamble, FCS and gap of every frame."""
    return sum(frame.packet.wire for frame in frames)
