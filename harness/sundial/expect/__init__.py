# SPDX-License-Identifier: Apache-2.0
"""Protocol arithmetic: what each message must look like on the wire, from the RFCs. Pure, standard library only."""

from sundial.expect.calls import (
    Call,
    Leg,
    Options,
    Procedure,
    Protocol,
    Shape,
    Transport,
    expect_call,
    tcp_leg,
    udp_leg,
)
from sundial.expect.edges import edge_sizes
from sundial.expect.ip import Packet
from sundial.expect.sunrpc import Library, auth_sys_bytes, record_buffer, shipped_records

__all__ = [
    "Call",
    "Leg",
    "Library",
    "Options",
    "Packet",
    "Procedure",
    "Protocol",
    "Shape",
    "Transport",
    "auth_sys_bytes",
    "edge_sizes",
    "expect_call",
    "record_buffer",
    "shipped_records",
    "tcp_leg",
    "udp_leg",
]
