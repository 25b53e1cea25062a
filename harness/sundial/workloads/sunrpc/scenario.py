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
    """Where a server ends itself, for experiments with faults."""

    when: Literal["before", "during", "after"]
    """Before the call is executed, when it has been and is not answered yet, or after its reply."""
    call: Annotated[int, Whole(1, CALLS_MOST)]
    """The call, counted from 1 over all clients."""
    restart: Annotated[bool, Flag()] = False
    """It is restarted each time, knowing nothing of what was before; where the server's image restarts services."""


class SunRpc(Traced, FunctionCalling):
    """ONC RPC: libtirpc and rpcbind on Linux, SSS-CORE's own library and portmapper there."""

    app: Literal["sunrpc"]
    """Sun RPC calls."""
    transports: Annotated[tuple[str, ...], Words(*TRANSPORTS)]
    """One after the other: sockets, memory-based communication with a server of one of its types, or vRPC: messages in
    rings, which are written over a backplane (vrpc) or by remote WRITEs of MBCF (vrpc-mbcf)."""
    procedures: Annotated[tuple[str, ...], Words("null", "echo", "echo_string", "sink", "source")] = Field(
        default=(), validate_default=False, exclude_if=operator.not_
    )
    """null has no argument; echo returns it; sink returns nothing; source returns so many bytes. Left out: echo,
    or the functions that are written."""
    one_way: Annotated[bool, Flag()] = False
    """Over TCP or MBCF and with the procedure sink alone: calls without reply, which the library collects and sends
    together over TCP; one call with a reply ends those of a size."""
    depth: Annotated[int, Whole(1, DEPTH_MOST)] = 1
    """MBCF: calls under way at the same time, each with its result."""
    ack: Annotated[bool, Flag()] = True
    """MBCF: ask for the acknowledgement of each request that the user sees, as kamesawa98's library does."""
    semantics: Semantics | None = None
    """How often a call is executed; left out: at least once over UDP, at most once over TCP and vRPC, exactly once over
    MBCF.
    At most once over UDP needs a server whose image keeps replies."""
    reply_cache: Annotated[int, Whole(1, 4096)] | None = None
    """Replies that the server keeps for calls that come again; only with at_most_once."""
    die: Dying | None = None
    """The server's echo task ends itself."""
    wait: Literal["poll", "notify"] | None = None
    """vRPC: how both ends wait for messages. poll (left out): they look at memory; notify: they sleep until their
    kernel says that something has come."""
    deliberate_above: Annotated[int, Whole(0, MESSAGE_MOST)] | None = None
    """vrpc: longer messages, in bytes with their RPC header, go by deliberate update; left out: 1024."""
    auth: Literal["none", "sys"] = "none"
    """AUTH_NONE or AUTH_SYS credentials."""
    send_buffer: Buffer | None = None
    """Send buffer of the record stream over TCP; left out: the library's 65536."""
    recv_buffer: Buffer | None = None
    """Receive buffer of the record stream over TCP; left out: the library's 65536."""
    udp_message_size: Annotated[int, In(SIZE.between("400", "65504", example="60000"))] | None = None
    """Largest UDP message (clntudp_bufcreate); left out: the library's 8800."""
