# SPDX-License-Identifier: Apache-2.0
"""Lengths of raw echoes: a header of magic, sequence number, length and attempt, then a pattern; as much comes back."""

from __future__ import annotations

from functools import lru_cache

from sundial.expect.call import Call, Shape, tcp_leg, udp_leg
from sundial.expect.edges import Count, edges
from sundial.expect.ip import MAX_UDP_PAYLOAD, PerPacket, check_mtu, one, udp_packet_count
from sundial.expect.tcp import segment_size, tcp_segment_count
from sundial.workloads import functions
from sundial.workloads.raw.expect_functions import values

HEADER = 16
MAGIC = b"SDL1"
TCP_LEAST = HEADER
"""TCP messages need their whole header, since a stream has no message ends."""
KEYED = 8
"""Shorter payloads over UDP lack the sequence number, and are matched by order."""


@lru_cache(maxsize=16384)
def expect_call(shape: Shape) -> Call:
    """The packets of one call. Raises ValueError for what the protocol does not know or cannot carry."""
    function = functions.BY_NAME.get(shape.procedure)
    if function is not None:
        return _expect_function(shape, function)
    if shape.procedure != "echo":
        raise ValueError(f"procedure {shape.procedure!r}: raw sockets have echo and the twelve functions")
    size, mtu, connection = shape.size, shape.mtu, shape.connection
    if shape.transport == "udp":
        return Call(udp_leg(size, mtu), udp_leg(size, mtu))
    if size < TCP_LEAST:
        raise ValueError(f"size {size}: raw TCP needs at least {TCP_LEAST} bytes")
    return Call(
        tcp_leg(size, (size,), mtu, connection.timestamps, connection.request_mss),
        tcp_leg(size, (size,), mtu, connection.timestamps, connection.reply_mss),
    )


def messages(name: str) -> tuple[int, int]:
    """Bytes of a function's call and reply."""
    call, reply = (HEADER + len(values(name, reply=side)) for side in (False, True))
    return call, reply


def _expect_function(shape: Shape, function: functions.Function) -> Call:
    if shape.size != function.size:
        raise ValueError(f"{shape.size} bytes: the values of function {function.name} have {function.size}")
    mtu, connection = shape.mtu, shape.connection
    call, reply = messages(function.name)
    if shape.transport == "udp":
        return Call(udp_leg(call, mtu), udp_leg(reply, mtu))
    return Call(
        tcp_leg(call, (call,), mtu, connection.timestamps, connection.request_mss),
        tcp_leg(reply, (reply,), mtu, connection.timestamps, connection.reply_mss),
    )


def edge_sizes(
    transport: str, mtu: int, smallest: int, largest: int, *, timestamps: bool = True, cells: PerPacket | None = None
) -> list[int]:
    """Sizes at and one byte beside each at which an echo takes another number of packets, within smallest..largest.

    With `cells`, those of an IP packet by its length: another number of cells.
    """
    check_mtu(mtu)
    each = cells or one
    if transport == "udp":
        return edges(_udp(mtu, each), smallest, largest, 0, MAX_UDP_PAYLOAD, _STEPS)
    if transport != "tcp":
        raise ValueError(f"transport {transport!r}: known are udp, tcp")
    return edges(_tcp(mtu, timestamps, each), smallest, largest, TCP_LEAST, largest + 1, _STEPS)


_STEPS = (-1, 0, 1)


def _udp(mtu: int, each: PerPacket) -> Count:
    return lambda size: (udp_packet_count(size, mtu, each),) * 2


def _tcp(mtu: int, timestamps: bool, each: PerPacket) -> Count:
    segment = segment_size(mtu, timestamps)
    return lambda size: (tcp_segment_count((size,), segment, timestamps, each),) * 2
