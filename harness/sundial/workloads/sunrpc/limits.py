# SPDX-License-Identifier: Apache-2.0
"""How much data one Sun RPC call can carry, in bytes of argument."""

from __future__ import annotations

from sundial.model.limits import Limit
from sundial.model.sizes import SIZE_MOST
from sundial.workloads import functions
from sundial.workloads.mbcf.wire import TASKQUE_MOST
from sundial.workloads.sunrpc.expect import CALL, REPLY, UDP_MESSAGE_DEFAULT, WORD, auth_sys_bytes, messages
from sundial.workloads.sunrpc.expect_mbcf import SINGLE_MOST
from sundial.workloads.sunrpc.scenario import TRANSPORTS, VRPC, VRPC_MBCF, SunRpc

WRAPSTRING_MOST = 9000
"""A bare string (`xdr_wrapstring`) in libtirpc, also over TCP."""
MBCF_MOST = 65536
"""Data of one call over MBCF: the buffers of its library."""


def credentials(workload: SunRpc, client: str) -> int:
    """Bytes of credentials in each call of a client."""
    return auth_sys_bytes(len(client), 0) if workload.auth == "sys" else 0


def size_limit(workload: SunRpc, transport: str, procedure: str, client: str) -> Limit:
    """Argument sizes that `procedure` over `transport` can carry when `client` calls."""
    if procedure == "null":
        return Limit(0, 0, "null has no argument")
    limits = [Limit(0, SIZE_MOST, "this testbed's own limit")]
    if procedure == "echo_string":
        limits.append(Limit(0, WRAPSTRING_MOST, "a bare string in libtirpc"))
    if TRANSPORTS[transport].between_nodes:
        limits.append(_node_limit(transport, procedure, credentials(workload, client)))
    elif not TRANSPORTS[transport].reliable:
        limits.append(_datagram_limit(workload, procedure, credentials(workload, client)))
    return min(limits, key=lambda limit: limit.most)


def function_limit(workload: SunRpc, transport: str, name: str, client: str) -> str | None:
    """What does not carry a function, or None."""
    call, reply = messages(name, functions.BY_NAME[name].size, credentials(workload, client))
    if transport == "udp":
        most = workload.udp_message_size or UDP_MESSAGE_DEFAULT
        return f"a UDP message of {most} bytes" if max(call, reply) > most else None
    return f"a call of {SINGLE_MOST} bytes" if transport == "mbcf1" and call > SINGLE_MOST else None


def _datagram_limit(workload: SunRpc, procedure: str, credential: int) -> Limit:
    message = workload.udp_message_size or UDP_MESSAGE_DEFAULT
    header = REPLY if procedure == "source" else CALL + credential
    return Limit(0, _words(message - header - WORD), f"a UDP message of {message} bytes; udp_message_size changes it")


def _node_limit(transport: str, procedure: str, credential: int) -> Limit:
    """Of the request; that of `source` has no data, and its result goes to a FIFO."""
    if transport in (VRPC, VRPC_MBCF):
        return Limit(0, MBCF_MOST, "what a ring holds")
    if transport != "mbcf1" or procedure == "source":
        return Limit(0, MBCF_MOST, "the MBCF library's buffers")
    heads = TASKQUE_MOST - SINGLE_MOST + CALL + credential + WORD
    why = f"{TASKQUE_MOST} bytes of one TASKQUE write less {heads} of headers; the other types carry more"
    return Limit(0, _words(TASKQUE_MOST - heads), why)


def _words(length: int) -> int:
    """The whole XDR words in `length` bytes, in bytes."""
    return length // WORD * WORD
