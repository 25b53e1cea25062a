# SPDX-License-Identifier: Apache-2.0
"""Sizes at which the number of packets changes, and their neighbours."""

from __future__ import annotations

from collections.abc import Callable

from sundial.expect.calls import RAW_TCP_LEAST, sunrpc_messages
from sundial.expect.ip import MAX_UDP_PAYLOAD, check_mtu, udp_packet_count
from sundial.expect.sunrpc import RECORD_MARK, WORD, Library, padded, record_buffer, record_fragments
from sundial.expect.tcp import segment_size, tcp_segment_count

Count = Callable[[int], tuple[int, int]]

LARGEST_UDP_ECHO = (MAX_UDP_PAYLOAD - sunrpc_messages("echo", 0)[0]) // WORD * WORD
"""Most bytes that an AUTH_NONE echo call can carry in one datagram."""


def edge_sizes(
    transport: str,
    mtu: int,
    smallest: int,
    largest: int,
    *,
    credential: int = 0,
    timestamps: bool = True,
    buffer: int = 0,
    library: Library = "libtirpc",
) -> list[int]:
    """Sizes of an echo at and next to each edge, sorted, within smallest..largest (bytes of data).

    An edge is a size at which the call or the reply takes another number of packets than one byte less. Each gives
    the sizes one byte and, for Sun RPC (where four bytes share one XDR word), four bytes to either side as well.
    `transport` is one of sunrpc-udp, sunrpc-tcp, raw-udp, raw-tcp; sizes it cannot carry are left out. The message
    limit of a UDP handle is not applied: it is set by the workload.
    """
    check_mtu(mtu)
    beyond = largest + WORD
    counts: dict[str, tuple[Count, int, int]] = {
        "sunrpc-udp": (_sunrpc_udp(mtu, credential), 0, LARGEST_UDP_ECHO - padded(credential)),
        "sunrpc-tcp": (_sunrpc_tcp(mtu, credential, timestamps, record_buffer(buffer, library), library), 0, beyond),
        "raw-udp": (lambda size: (udp_packet_count(size, mtu),) * 2, 0, MAX_UDP_PAYLOAD),
        "raw-tcp": (_raw_tcp(mtu, timestamps), RAW_TCP_LEAST, beyond),
    }
    if transport not in counts:
        raise ValueError(f"transport {transport!r}: known are {', '.join(counts)}")
    count, least, most = counts[transport]
    low, high = max(smallest, least), min(largest, most)
    steps = (-WORD, -1, 0, 1, WORD) if transport.startswith("sunrpc") else (-1, 0, 1)
    found: set[int] = set()
    before = count(max(low - WORD - 1, least))
    for size in range(max(low - WORD, least + 1), min(high + WORD, most) + 1):
        now = count(size)
        if now != before:
            found.update(size + step for step in steps)
        before = now
    return sorted(size for size in found if low <= size <= high)


def _sunrpc_udp(mtu: int, credential: int) -> Count:
    def count(size: int) -> tuple[int, int]:
        call, reply = sunrpc_messages("echo", size, credential)
        return udp_packet_count(call, mtu), udp_packet_count(reply, mtu)

    return count


def _sunrpc_tcp(mtu: int, credential: int, timestamps: bool, buffer: int, library: Library) -> Count:
    segment = segment_size(mtu, timestamps)

    def packets(message: int, empty: bool) -> int:
        records = record_fragments(message, buffer, library, ends_in_word=empty)
        return tcp_segment_count(tuple(RECORD_MARK + length for length in records), segment)

    def count(size: int) -> tuple[int, int]:
        call, reply = sunrpc_messages("echo", size, credential)
        return packets(call, size == 0), packets(reply, size == 0)

    return count


def _raw_tcp(mtu: int, timestamps: bool) -> Count:
    segment = segment_size(mtu, timestamps)
    return lambda size: (tcp_segment_count((size,), segment),) * 2
