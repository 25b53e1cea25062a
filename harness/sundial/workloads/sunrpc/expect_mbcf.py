# SPDX-License-Identifier: Apache-2.0
"""Frames of Sun RPC over memory-based communication, through each type of server.

Formats: guest-apps/sss-core/rpc/mbcf_messages.h (what RPC puts into TASKQUEs and FIFOs); types: kamesawa98 section 4.1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, get_args

from sundial.workloads.mbcf.expect import Exchange, Frame, expect_operation
from sundial.workloads.mbcf.wire import CLOSE_PAYLOAD, SIGNAL_MOST, TASKQUE_MOST
from sundial.workloads.sunrpc.expect import messages

RPC_HEAD = 16
"""struct mbm_head in front of what a TASKQUE write of RPC carries."""
RPC_SOURCE = 16
RPC_BIND = 24
RPC_BOUND = 56
SINGLE_MOST = TASKQUE_MOST - RPC_HEAD
"""Bytes of the longest call that goes in a TASKQUE write (type 1)."""
BINDER_QUERY = 32
BINDER_ANSWER = 8
RING_WORD = 8
"""The head of a record in a ring, and a tail."""

Server = Literal["mbcf1", "mbcf2", "mbcf12", "mbcf3", "mbcf3a", "mbcf3b"]
PER_CALL: tuple[Server, ...] = ("mbcf1", "mbcf2", "mbcf12")
"""Types that make a connection with each call."""


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
    server: Server, procedure: str, size: int, *, ack: bool = False, one_way: bool = False, credential: int = 0
) -> RpcCall:
    """The sequenced frames of one call. The reply is always a write into the client's FIFO.

    The option `ack` changes a one-way call alone; of others the reply, or the delayed ACK, brings what the client wants
    to know.
    """
    call, answer = messages(procedure, size, credential)
    asked = expect_request(server, call, ack and one_way)
    if asked is None:
        return RpcCall((), (), fails=True)
    request, reading = asked
    reply = () if one_way else expect_operation("fifo", answer).there
    own = reading.there + reply
    if server in PER_CALL and own:
        own = (replace(own[0], defines=True), *own[1:])
    close = (Frame("CLOSE", CLOSE_PAYLOAD),) if server in PER_CALL else ()
    return RpcCall(request.there + reading.back, own, request.there, reply, close)


def expect_binding(server: Server) -> RpcCall:
    """Setting up types 3, 3a and 3b: BIND in the server's TASKQUE, and the answer that hands out key and addresses.

    The connection ends when the client discards its handle.
    """
    if server in PER_CALL:
        raise ValueError(f"{server} makes a connection with each call")
    there = expect_operation("taskque", RPC_HEAD + RPC_BIND).there
    back = expect_operation("fifo", RPC_BOUND).there
    return RpcCall(there, back, there, back, (Frame("CLOSE", CLOSE_PAYLOAD),))


def expect_lookup() -> RpcCall:
    """Asking a node's binder where a program is: a TASKQUE write, answered by a WRITE into the asker's memory."""
    there = expect_operation("taskque", BINDER_QUERY).there
    back = expect_operation("write", BINDER_ANSWER).there
    return RpcCall(there, back, there, back)


def expect_rings() -> RpcCall:
    """Setting up rings: BIND, which names the client's, and an answer that is written into them."""
    there = expect_operation("taskque", RPC_HEAD + RPC_BIND).there
    back = expect_operation("write", RPC_BOUND).there
    return RpcCall(there, back, there, back, (Frame("CLOSE", CLOSE_PAYLOAD),))


def expect_in_rings(procedure: str, size: int, credential: int = 0) -> RpcCall:
    """One call in rings: each message is a WRITE, and the tail behind it another."""
    request, reply = (
        (*expect_operation("write", RING_WORD + length).there, *expect_operation("write", RING_WORD).there)
        for length in messages(procedure, size, credential)
    )
    return RpcCall(request, reply, request, reply)
