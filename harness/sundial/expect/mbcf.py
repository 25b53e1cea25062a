# SPDX-License-Identifier: Apache-2.0
"""Frames of memory-based communication: of each operation, and of Sun RPC through each type of server.

Formats: guest-apps/sss-core/mbcf/wire.h (packets), rpc/mbcf_messages.h (what RPC puts into TASKQUEs and FIFOs); types:
kamesawa98 section 4.1. When acknowledgements are due: `mbcf_acks`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, get_args

from sundial.expect.calls import Leg, Procedure, sunrpc_messages
from sundial.expect.ip import Packet

HEADER = 48
PAYLOAD = 1408
PART_HEAD = 8
TASKQUE_HEAD = 16
ARGUMENT = 8
READ_PAYLOAD = 8
WORD_PAYLOAD = 8
"""Operand of swap and fetch and add, and the old value in their results; compare and swap has two operands."""
TASKQUE_MOST = PAYLOAD - TASKQUE_HEAD
SIGNAL_MOST = PAYLOAD - 4 * ARGUMENT
"""Of a SIGNAL with all its arguments; RPC takes no more in any (guest-apps/sss-core/rpc/mbcf_messages.h)."""

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
PER_CALL: tuple[Server, ...] = ("mbcf1", "mbcf2", "mbcf12")
"""Types that make a connection with each call."""
Kind = Literal["TASKQUE", "WRITE", "READ", "FIFO", "SIGNAL", "SWAP", "CAS", "FETCH_ADD", "CLOSE", "RESULT", "ACK"]


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame: `payload` bytes behind the header; `part` of a FIFO segment; `now`: to be acknowledged at once."""

    kind: Kind
    payload: int
    more: bool = False
    now: bool = False
    part: bool = False

    @property
    def packet(self) -> Packet:
        """The frame as Ethernet arithmetic knows it: all behind its header is the packet."""
        return Packet(HEADER + self.payload, self.payload)

    @property
    def text(self) -> str:
        """For comparison: kind, bytes of payload, `+` where parts follow, `!` where the ACK is wanted at once."""
        return f"{self.kind}:{self.payload}{'+' if self.more else ''}{'!' if self.now else ''}"


@dataclass(frozen=True, slots=True)
class Exchange:
    """What one operation takes: frames of its sender, and the RESULTs that come back."""

    there: tuple[Frame, ...]
    back: tuple[Frame, ...] = ()
    ack: tuple[Frame, ...] = ()
    """The ACK that its user waits for, where no other frame leaves in the same instant to carry it."""


@dataclass(frozen=True, slots=True)
class RpcCall:
    """Sequenced frames of one call by sender. `fails`: the request does not fit its type."""

    client: tuple[Frame, ...]
    server: tuple[Frame, ...]
    request: tuple[Frame, ...] = ()
    """Of the client's frames those that carry the request's bytes or name where they are."""
    reply: tuple[Frame, ...] = ()
    close: tuple[Frame, ...] = ()
    """What the server sends when all is over: the end of the connection that the call has made."""
    fails: bool = False

    @property
    def frames(self) -> int:
        """Of both sides, the end included."""
        return len(self.client) + len(self.server) + len(self.close)


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
def expect_operation(operation: Operation, length: int, ack: bool = False, arguments: int = 4) -> Exchange:
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
        head = TASKQUE_HEAD if operation == "taskque" else ARGUMENT * arguments
        if length > PAYLOAD - head:
            raise ValueError(f"{operation} of {length} bytes: at most {PAYLOAD - head}")
        return _acknowledged((Frame("TASKQUE" if operation == "taskque" else "SIGNAL", head + length),), ack)
    if length not in (4, 8):
        raise ValueError(f"{operation} of {length} bytes: atomic operations are on 4 or 8")
    words: dict[Operation, tuple[Kind, int]] = {"swap": ("SWAP", 1), "cas": ("CAS", 2), "fetch_add": ("FETCH_ADD", 1)}
    name, operands = words[operation]
    return Exchange((Frame(name, operands * WORD_PAYLOAD),), (Frame("RESULT", WORD_PAYLOAD),) if ack else ())


def expect_request(server: Server, message: int, ack: bool = False) -> tuple[Exchange, Exchange] | None:
    """A call of `message` bytes: what the client begins, and what the server does to get it (READ); None: too long.

    `ack`: nothing but the acknowledgement tells the client that it was taken.
    """
    nothing = Exchange(())
    if server == "mbcf12":
        server = "mbcf1" if message <= SINGLE_MOST else "mbcf2"
    if server == "mbcf1":
        if message > SINGLE_MOST:
            return None
        return expect_operation("taskque", RPC_HEAD + message, ack), nothing
    if server == "mbcf2":
        return expect_operation("taskque", RPC_HEAD + RPC_SOURCE, ack), expect_operation("read", message)
    if server in ("mbcf3", "mbcf3a"):
        return expect_operation("fifo", message, ack), nothing
    if server == "mbcf3b":
        if message <= SIGNAL_MOST:
            return expect_operation("signal", message, ack, arguments=0), nothing
        signal = expect_operation("signal", 0, ack, arguments=2)  # where it was written, and how long it is
        return Exchange(expect_operation("write", message).there + signal.there, ack=signal.ack), nothing
    raise ValueError(f"server {server!r}: known are {', '.join(get_args(Server))}")


@lru_cache(maxsize=16384)
def expect_rpc(
    server: Server, procedure: Procedure, size: int, *, ack: bool = False, one_way: bool = False, credential: int = 0
) -> RpcCall:
    """The sequenced frames of one call. The reply is always a write into the client's FIFO.

    The option `ack` changes a one-way call alone; of others the reply, or the delayed ACK, brings what the client wants
    to know.
    """
    call, answer = sunrpc_messages(procedure, size, credential)
    asked = expect_request(server, call, ack and one_way)
    if asked is None:
        return RpcCall((), (), fails=True)
    request, reading = asked
    reply = () if one_way else expect_operation("fifo", answer).there
    close = (Frame("CLOSE", 0),) if server in PER_CALL else ()
    return RpcCall(request.there + reading.back, reading.there + reply, request.there, reply, close)


def expect_binding(server: Server) -> RpcCall:
    """Setting up types 3, 3a and 3b: BIND in the server's TASKQUE, and the answer that hands out key and addresses.

    The connection ends when the client discards its handle.
    """
    if server in PER_CALL:
        raise ValueError(f"{server} makes a connection with each call")
    there = expect_operation("taskque", RPC_HEAD + RPC_BIND).there
    back = expect_operation("fifo", RPC_BOUND).there
    return RpcCall(there, back, there, back, (Frame("CLOSE", 0),))


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
