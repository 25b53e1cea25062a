# SPDX-License-Identifier: Apache-2.0
"""Lengths of DCE RPC calls over UDP: PDUs of a message, IP packets of a PDU, and sizes at which either changes.

A parameter of the interface of sizes is a fixed array of bytes, whose NDR (C706 section 14.3.3.1) is the bytes
themselves: a message of N bytes is N bytes long. The twelve functions have messages of their own (`expect_ndr`).
Khandker's runtime cuts a message into PDUs of 4096 bytes with their header.
"""

from __future__ import annotations

from functools import lru_cache

from sundial.expect.call import Call, Leg, Shape
from sundial.expect.edges import edges
from sundial.expect.ip import Packet, PerPacket, check_mtu, one, udp_packet_count, udp_packets
from sundial.workloads.dce import expect_ndr
from sundial.workloads.dce.expect_pdu import HEADER
from sundial.workloads.functions import BY_NAME

FRAGMENT = 4096
"""A PDU with its header, where a scenario says nothing else (khandker section 3)."""
FRAGMENT_LEAST, FRAGMENT_MOST = 1464, 8192
FRAGMENT_STEP = 8
"""Bodies of all but the last fragment are multiples of 8, so that NDR's alignment goes on."""
SIZE_MOST = 196_608
PROCEDURES = ("null", "put", "get", "echo")


SSS_CORE = "sss-core"
"""The platform whose tasks are the same programs, with less memory."""
TABLE_BYTES = 7 * 1024 * 1024
"""Of an SSS-CORE server's table of activities (guest-apps/sss-core/dce/runtime.c); Linux gives more than enough."""
ACTIVITIES, MAPPER_ACTIVITIES = 128, 16
"""Most activities that a server and an endpoint mapper have places for (guest-apps/dce/dce_server.c)."""
_ACTIVITY_BYTES = 2176
"""Of a place beside its fragments, arguments and results (guest-apps/sss-core/README.md, DCE RPC)."""
_KEPT_BYTES, _SLOTS_MOST = 64 * 1024, 64
_ALIGNED = 16


def slots(fragment: int) -> int:
    """Fragments that a sender keeps: 64 KiB of them, in a power of two, but 64 at most."""
    places = 1
    while places < _SLOTS_MOST and places * fragment < _KEPT_BYTES:
        places *= 2
    return places


def place_bytes(fragment: int, largest: int) -> int:
    """Of one activity in a server's table; `largest`: bytes of arguments or results."""
    parts = (slots(fragment) * fragment, largest + FRAGMENT_MOST - HEADER, max(largest, 4))
    return _ACTIVITY_BYTES + sum(-(-part // _ALIGNED) * _ALIGNED for part in parts)


def bodies(size: int, fragment: int = FRAGMENT) -> tuple[int, ...]:
    """Body lengths of the PDUs of a message of `size` bytes; `fragment` is a PDU with its header."""
    room = fragment - HEADER
    full, rest = divmod(size, room)
    return (room,) * full + ((rest,) if rest or not full else ())


def pdu_packets(size: int, mtu: int, fragment: int = FRAGMENT) -> tuple[tuple[Packet, ...], ...]:
    """IP packets of each PDU of a message."""
    return tuple(udp_packets(HEADER + body, mtu) for body in bodies(size, fragment))


def message_leg(size: int, mtu: int, fragment: int = FRAGMENT) -> Leg:
    """All packets of a message that is sent once."""
    packets = tuple(packet for each in pdu_packets(size, mtu, fragment) for packet in each)
    return Leg("udp", size, size + HEADER * len(bodies(size, fragment)), bodies(size, fragment), packets)


def parameters(procedure: str, size: int) -> tuple[int, int]:
    """Bytes in and out of a call of a procedure, or of a function. Raises ValueError."""
    if procedure in BY_NAME:
        return expect_ndr.lengths(procedure)
    if procedure not in PROCEDURES:
        raise ValueError(f"procedure {procedure!r}: known are {', '.join(PROCEDURES)}")
    return size if procedure in ("put", "echo") else 0, size if procedure in ("get", "echo") else 0


@lru_cache(maxsize=16384)
def expect_call(shape: Shape, fragment: int = FRAGMENT) -> Call:
    """The packets of request and response, without acknowledgements. Raises ValueError for what there is not."""
    if not 0 <= shape.size <= SIZE_MOST:
        raise ValueError(f"size {shape.size}: 0 to {SIZE_MOST}")
    request, response = parameters(shape.procedure, shape.size)
    return Call(message_leg(request, shape.mtu, fragment), message_leg(response, shape.mtu, fragment))


def packet_count(size: int, mtu: int, fragment: int = FRAGMENT, each: PerPacket = one) -> int:
    """What the IP packets of a message count for, in closed form."""
    room = fragment - HEADER
    full, rest = divmod(size, room)
    counted = full * udp_packet_count(fragment, mtu, each)
    return counted + (udp_packet_count(HEADER + rest, mtu, each) if rest or not full else 0)


def edge_sizes(
    mtu: int, smallest: int, largest: int, *, fragment: int = FRAGMENT, cells: PerPacket | None = None
) -> list[int]:
    """Sizes at and one byte beside each at which a message takes another number of packets; with `cells`, of cells."""
    check_mtu(mtu)
    each = cells or one

    def count(size: int) -> tuple[int, int]:
        return (packet_count(size, mtu, fragment, each),) * 2

    return edges(count, smallest, largest, 0, SIZE_MOST, (-1, 0, 1))
