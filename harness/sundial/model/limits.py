# SPDX-License-Identifier: Apache-2.0
"""How much data one call can carry: the limits of each library and protocol, in bytes of argument."""

from __future__ import annotations

from dataclasses import dataclass

from sundial.model.scenario import Raw, SunRpc
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


def size_limit(workload: SunRpc | Raw, transport: str, procedure: str, client: str) -> Limit:
    """Argument sizes that `procedure` over `transport` can carry when `client` calls."""
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
    return Limit(0, most, why)


def _padded(length: int) -> int:
    return -(-length // WORD) * WORD
