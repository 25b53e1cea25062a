# SPDX-License-Identifier: Apache-2.0
"""Sun RPC in scenarios.

Semantics are those of kamesawa98 section 3.2.
"""

from __future__ import annotations

import operator
from typing import Annotated, Literal

from pydantic import Field

from sundial.model.fields import Flag, In, Strict, Whole
from sundial.model.lists import CALLS_MOST, Words
from sundial.model.workload import Buffer, Semantics, Traced, Transport
from sundial.units import SIZE
from sundial.workloads import sockets
from sundial.workloads.function_calls import FunctionCalling
from sundial.workloads.mbcf import transports as over_mbcf

VRPC, VRPC_MBCF = "vrpc", "vrpc-mbcf"
"""In rings that both ends write into one another's memory: over a backplane, and by remote WRITEs of MBCF."""
RINGS = tuple(Transport(name, ("at_most_once",), between_nodes=True) for name in (VRPC, VRPC_MBCF))
TRANSPORTS: dict[str, Transport] = {each.name: each for each in (*sockets.TRANSPORTS, *over_mbcf.TRANSPORTS, *RINGS)}
DEPTH_MOST = 32
DELIBERATE_ABOVE = 1024
MESSAGE_MOST = 98296
"""Bytes of the longest message in a ring (guest-apps/sss-core/include/rpc/vrpc.h)."""
PROCEDURE = "echo"
"""Where neither procedures nor functions are written."""


class Dying(Strict):
    """Death of a server, for experiments with faults."""

    when: Literal["before", "during", "after"]
    """Moment: before the call is executed, after it but before the reply, or after the reply."""
    call: Annotated[int, Whole(1, CALLS_MOST)]
    """Number of the call, counted from 1 over all clients; over mbcf3b, over those of the task that executes it."""
    restart: Annotated[bool, Flag()] = False
    """Restart it each time, without its former state; the server's image must support this."""


class SunRpc(Traced, FunctionCalling):
    """ONC RPC: libtirpc and rpcbind on Linux, SSS-CORE's own library and portmapper there."""

    app: Literal["sunrpc"]
    """Sun RPC calls."""
    transports: Annotated[tuple[str, ...], Words(*TRANSPORTS)]
    """Transports, in sequence: sockets, memory-based communication by type of server, or vRPC, whose messages are in
    rings, written over a backplane (vrpc) or by remote WRITEs of MBCF (vrpc-mbcf)."""
    procedures: Annotated[tuple[str, ...], Words("null", "echo", "echo_string", "sink", "source")] = Field(
        default=(), validate_default=False, exclude_if=operator.not_
    )
    """null has no argument, echo returns it, sink returns nothing, source returns as many bytes. Default: echo, or the
    functions if they are given."""
    one_way: Annotated[bool, Flag()] = False
    """Calls without reply, over TCP or MBCF and only for sink. Over TCP the library collects them and sends them
    together; one call with a reply ends those of a size."""
    depth: Annotated[int, Whole(1, DEPTH_MOST)] = 1
    """MBCF: calls under way in parallel, each with its result."""
    ack: Annotated[bool, Flag()] = True
    """MBCF: request an acknowledgement of each request, as kamesawa98's library does."""
    semantics: Semantics | None = None
    """Semantics of calls. Default: at least once over UDP, at most once over TCP and vRPC, exactly once over MBCF.
    At most once over UDP needs a server image that keeps replies."""
    reply_cache: Annotated[int, Whole(1, 4096)] | None = None
    """Replies that the server keeps for retransmitted calls; only with at_most_once."""
    die: Dying | None = None
    """End the server's echo task; over mbcf3b, each task that executes calls of a client."""
    wait: Literal["poll", "notify"] | None = None
    """vRPC: how both ends wait for messages. poll (default): they poll memory; notify: they sleep until their kernel
    notifies them."""
    deliberate_above: Annotated[int, Whole(0, MESSAGE_MOST)] | None = None
    """vrpc: longer messages, in bytes with their RPC header, use deliberate update. Default: 1024."""
    auth: Literal["none", "sys"] = "none"
    """Credentials: AUTH_NONE or AUTH_SYS."""
    send_buffer: Buffer | None = None
    """Send buffer of the record stream over TCP. Default: the library's 65536."""
    recv_buffer: Buffer | None = None
    """Receive buffer of the record stream over TCP. Default: the library's 65536."""
    udp_message_size: Annotated[int, In(SIZE.between("400", "65504", example="60000"))] | None = None
    """Largest UDP message (clntudp_bufcreate). Default: the library's 8800."""
