# SPDX-License-Identifier: Apache-2.0
"""How much data one call can carry: the limits of each library and protocol, in bytes of argument."""

from __future__ import annotations

from dataclasses import dataclass

from sundial.model.scenario import Mbcf, Raw, SunRpc
from sundial.model.sizes import SIZE_MOST

UDP_MESSAGE_DEFAULT = 8800
"""UDPMSGSIZE of libtirpc and glibc, both ways."""
UDP_PAYLOAD_MOST = 65507
"""65535 less IP and UDP headers."""
WRAPSTRING_MOST = 9000
"""A bare string (`xdr_wrapstring`) in libtirpc, also over TCP."""
RAW_TCP_LEAST = 16
"""The header of a raw payload, without which a TCP stream has no message boundaries."""
TCP_MTU_LEAST = 88
"""Linux keeps 48 bytes for data and options in a segment (tcp_min_snd_mss), behind 40 bytes of headers: with less, IP
would cut its segments."""
TASKQUE_MOST = 1392
"""What a write to a TASKQUE carries beside the writer's key: one packet, no more."""
TASKQUE_HEAD = 16
"""Where replies go and how long they may be, before the call (`rpc/mbcf_messages.h`)."""
SIGNAL_MOST = 1376
"""What a memory-based SIGNAL carries beside its four arguments: one packet, no more."""
SEGMENT_MOST = 131072
"""The largest segment of one MBCF operation."""
MBCF_RPC_MOST = 65536
"""Data of one call over MBCF: the buffers of its library."""
ATOMIC_SIZE = 8
CALL_HEADER = 40
REPLY_HEADER = 24
WORD = 4


@dataclass(frozen=True)
class Limit:
    """Sizes allowed, and why not more."""

    least: int
    most: int
    why: str

    @property
    def allowed(self) -> str:
        return f"{self.least} to {self.most} bytes ({self.why})"


def auth_sys_bytes(machine: str) -> int:
    """Bytes that AUTH_SYS credentials add to a call: stamp, name, uid, gid, no further groups (RFC 5531 appendix A)."""
    return 5 * WORD + _padded(len(machine))


def size_limit(workload: SunRpc | Raw | Mbcf, transport: str, procedure: str, client: str) -> Limit:
    """Argument sizes that `procedure` over `transport` can carry when `client` calls.

    `procedure` is the operation of an MBCF workload.
    """
    if isinstance(workload, Mbcf):
        return _operation_limit(procedure)
    if isinstance(workload, Raw):
        if transport == "udp":
            return Limit(0, UDP_PAYLOAD_MOST, "one UDP datagram")
        return Limit(RAW_TCP_LEAST, SIZE_MOST, "the payload's header at least")
    if procedure == "null":
        return Limit(0, 0, "null has no argument")
    most, why = SIZE_MOST, "this testbed's own limit"
    if procedure == "echo_string":
        most, why = WRAPSTRING_MOST, "a bare string in libtirpc"
    if transport == "udp":
        message = workload.udp_message_size or UDP_MESSAGE_DEFAULT
        credentials = auth_sys_bytes(client) if workload.auth == "sys" else 0
        header = REPLY_HEADER if procedure == "source" else CALL_HEADER + credentials
        fits = (message - header - WORD) // WORD * WORD
        if fits < most:
            most, why = fits, f"a UDP message of {message} bytes; udp_message_size changes it"
    elif transport != "tcp":
        fits, because = _mbcf_message(transport, procedure, auth_sys_bytes(client) if workload.auth == "sys" else 0)
        if fits < most:
            most, why = fits, because
    return Limit(0, most, why)


def _mbcf_message(transport: str, procedure: str, credentials: int) -> tuple[int, str]:
    """Bytes of argument that a request over MBCF carries, and why; `source` has none, its result goes to a FIFO."""
    if transport != "mbcf1" or procedure == "source":
        return MBCF_RPC_MOST, "the MBCF library's buffers"
    head = TASKQUE_HEAD + CALL_HEADER + credentials + WORD
    fits = (TASKQUE_MOST - head) // WORD * WORD
    return fits, f"{TASKQUE_MOST} bytes of one TASKQUE write less {head} of heads; the other types carry more"


def _operation_limit(operation: str) -> Limit:
    if operation in ("swap", "cas", "fetch_add"):
        return Limit(ATOMIC_SIZE, ATOMIC_SIZE, "one word")
    if operation == "signal":
        return Limit(0, SIGNAL_MOST, "one packet")
    return Limit(0, SEGMENT_MOST, "one segment")


def _padded(length: int) -> int:
    return -(-length // WORD) * WORD
