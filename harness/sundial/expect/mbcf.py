# SPDX-License-Identifier: Apache-2.0
"""Frames of memory-based communication: of each operation, and of Sun RPC through each type of server.

Formats: guest-apps/sss-core/mbcf/wire.h (packets), rpc/mbcf_messages.h (what RPC puts into TASKQUEs and FIFOs); types:
kamesawa98 section 4.1. When acknowledgements are due: `mbcf_acks`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

from sundial.expect.calls import Leg, Procedure, sunrpc_messages
from sundial.expect.ip import Packet

HEADER = 48
PAYLOAD = 1408
PART_HEAD = 8
TASKQUE_HEAD = 16
SIGNAL_HEAD = 32
READ_PAYLOAD = 8
WORD_PAYLOAD = 8
"""Operand of swap and fetch and add, and the old value in their results; compare and swap has two operands."""
TASKQUE_MOST = PAYLOAD - TASKQUE_HEAD
SIGNAL_MOST = PAYLOAD - SIGNAL_HEAD

RPC_HEAD = 16
"""struct mbm_head in front of what a TASKQUE write of RPC carries."""
RPC_SOURCE = 16
RPC_BIND = 24
RPC_BOUND = 56
SINGLE_MOST = TASKQUE_MOST - RPC_HEAD
"""Bytes of the longest call that goes in a TASKQUE write (type 1)."""
BINDER_QUERY = 32
BINDER_ANSWER = 8

Operation = Literal["taskque", "write", "read", "fifo", "signal", "swap", "cas", "fetch_add"]
Server = Literal["mbcf1", "mbcf2", "mbcf12", "mbcf3", "mbcf3a", "mbcf3b"]
Kind = Literal["TASKQUE", "WRITE", "READ", "FIFO", "SIGNAL", "SWAP", "CAS", "FETCH_ADD", "RESULT"]


@dataclass(frozen=True, slots=True)
class Frame:
    """One sequenced frame: `payload` bytes behind the header; `part` of a FIFO segment; `asks` for a RESULT."""

    kind: Kind
    payload: int
    more: bool = False
    asks: bool = False
    part: bool = False

    @property
    def packet(self) -> Packet:
        """The frame as Ethernet arithmetic knows it: all behind its header is the packet."""
        return Packet(HEADER + self.payload, self.payload)

    @property
    def text(self) -> str:
        """For comparison: kind, bytes of payload, `+` where parts follow, `!` where a result is asked for."""
        return f"{self.kind}:{self.payload}{'+' if self.more else ''}{'!' if self.asks else ''}"


@dataclass(frozen=True, slots=True)
class Exchange:
    """What one operation takes: frames of its sender, and the RESULTs that come back (none: success is not told)."""

    there: tuple[Frame, ...]
    back: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True)
class RpcCall:
    """Frames of one call by sender. `fails`: the request does not fit its type."""

    client: tuple[Frame, ...]
    server: tuple[Frame, ...]
    request: tuple[Frame, ...] = ()
    """Of the client's frames those that carry the request's bytes or name where they are."""
    reply: tuple[Frame, ...] = ()
    fails: bool = False

    @property
    def frames(self) -> int:
        """Sequenced frames, CLOSE left out."""
        return len(self.client) + len(self.server)


def _parts(length: int, most: int) -> tuple[int, ...]:
    """`length` bytes in parts of at most `most`; nothing is one empty part."""
    full, rest = divmod(length, most)
    return (most,) * full + ((rest,) if rest or not full else ())


def _several(kind: Kind, length: int, ack: bool, head: int = 0, room: int = PAYLOAD) -> Exchange:
    """An operation that may take several frames; then its last one asks for a RESULT in any case."""
    if length <= room:
        return Exchange((Frame(kind, head + length, asks=ack),), (Frame("RESULT", 0),) if ack else ())
    inner = PART_HEAD if kind == "FIFO" else 0
    sizes = _parts(length, room - inner)
    last = len(sizes) - 1
    frames = tuple(
        Frame(kind, inner + size, more=place < last, asks=place == last, part=kind == "FIFO")
        for place, size in enumerate(sizes)
    )
    return Exchange(frames, (Frame("RESULT", 0),))


@lru_cache(maxsize=16384)
def expect_operation(operation: Operation, length: int, ack: bool = False) -> Exchange:
    """Frames of one operation with `length` bytes of data. Raises ValueError for what the protocol cannot carry.

    `ack`: its RESULT is asked for, as READ and the atomic operations that give back the old value always do.
    """
    if operation not in get_args(Operation):
        raise ValueError(f"operation {operation!r}: known are {', '.join(get_args(Operation))}")
    if length < 0:
        raise ValueError(f"length {length}: must not be negative")
    if operation == "write":
        return _several("WRITE", length, ack)
    if operation == "fifo":
        return _several("FIFO", length, ack)
    if operation == "read":
        sizes = _parts(length, PAYLOAD)
        last = len(sizes) - 1
        asked = tuple(Frame("READ", READ_PAYLOAD, more=place < last, asks=True) for place in range(len(sizes)))
        return Exchange(asked, tuple(Frame("RESULT", size) for size in sizes))
    if operation in ("taskque", "signal"):
        head, most = (TASKQUE_HEAD, TASKQUE_MOST) if operation == "taskque" else (SIGNAL_HEAD, SIGNAL_MOST)
        if length > most:
            raise ValueError(f"{operation} of {length} bytes: at most {most}")
        kind: Kind = "TASKQUE" if operation == "taskque" else "SIGNAL"
        return Exchange((Frame(kind, head + length, asks=ack),), (Frame("RESULT", 0),) if ack else ())
    if length not in (4, 8):
        raise ValueError(f"{operation} of {length} bytes: atomic operations are on 4 or 8")
    words: dict[Operation, tuple[Kind, int]] = {"swap": ("SWAP", 1), "cas": ("CAS", 2), "fetch_add": ("FETCH_ADD", 1)}
    name, operands = words[operation]
    there = (Frame(name, operands * WORD_PAYLOAD, asks=ack),)
    return Exchange(there, (Frame("RESULT", WORD_PAYLOAD),) if ack else ())


def expect_request(server: Server, message: int, ack: bool = False) -> tuple[Exchange, Exchange] | None:
    """A call of `message` bytes: what the client begins, and what the server does to get it (READ); None: too long."""
    nothing = Exchange(())
    if server == "mbcf12":
        server = "mbcf1" if message <= SINGLE_MOST else "mbcf2"
    if server == "mbcf1":
        if message > SINGLE_MOST:
            return None
        return expect_operation("taskque", RPC_HEAD + message, ack), nothing
    if server == "mbcf2":
        return expect_operation("taskque", RPC_HEAD + RPC_SOURCE, ack), expect_operation("read", message, True)
    if server in ("mbcf3", "mbcf3a"):
        return expect_operation("fifo", message, ack), nothing
    if server == "mbcf3b":
        if message <= SIGNAL_MOST:
            return expect_operation("signal", message, ack), nothing
        write, signal = expect_operation("write", message), expect_operation("signal", 0, ack)
        return Exchange(write.there + signal.there, write.back + signal.back), nothing
    raise ValueError(f"server {server!r}: known are {', '.join(get_args(Server))}")


@lru_cache(maxsize=16384)
def expect_rpc(
    server: Server, procedure: Procedure, size: int, *, ack: bool = False, one_way: bool = False, credential: int = 0
) -> RpcCall:
    """The sequenced frames of one call, CLOSE left out. The reply is always a write into the client's FIFO."""
    call, answer = sunrpc_messages(procedure, size, credential)
    asked = expect_request(server, call, ack)
    if asked is None:
        return RpcCall((), (), fails=True)
    request, reading = asked
    reply = Exchange(()) if one_way else expect_operation("fifo", answer)
    return RpcCall(
        request.there + reading.back + reply.back,
        request.back + reading.there + reply.there,
        request.there,
        reply.there,
    )


def expect_binding(server: Server) -> RpcCall:
    """Setting up types 3, 3a and 3b: BIND in the server's TASKQUE, and the answer that hands out key and addresses."""
    if server in ("mbcf1", "mbcf2", "mbcf12"):
        raise ValueError(f"{server} makes a connection with each call")
    there = expect_operation("taskque", RPC_HEAD + RPC_BIND).there
    back = expect_operation("fifo", RPC_BOUND).there
    return RpcCall(there, back, there, back)


def expect_lookup() -> RpcCall:
    """Asking a node's binder where a program is: a TASKQUE write, answered by a WRITE into the asker's memory."""
    there = expect_operation("taskque", BINDER_QUERY).there
    back = expect_operation("write", BINDER_ANSWER).there
    return RpcCall(there, back, there, back)


def largest_message(server: Server) -> int | None:
    """Bytes of the longest call of a type, None where only memory limits it."""
    return SINGLE_MOST if server == "mbcf1" else None


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
