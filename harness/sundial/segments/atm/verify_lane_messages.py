# SPDX-License-Identifier: Apache-2.0
"""Control frames of LAN emulation (af-lane-0021, clause 4.2 and the tables of clauses 5 to 9), octet by octet.

A frame has 108 octets: marker ff00, protocol 01, version 01, opcode, status, transaction, LEC ID of the requester,
flags, source and target LAN destination, source ATM address, LAN type, frame size, number of TLVs, length of the name,
target ATM address, name of the emulated LAN. READY_IND and READY_QUERY end behind the opcode.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sundial.segments.atm.model import Atm
from sundial.segments.atm.verify_channels import (
    CONFIGURATION,
    CONTROL,
    DATA_DIRECT,
    DISTRIBUTE,
    MULTICAST,
    MULTICAST_SEND,
)
from sundial.segments.atm.verify_pdus import Pdus
from sundial.verify.frames import OUTBOUND
from sundial.verify.wire import Wire

CONFIGURE, JOIN, READY_QUERY, REGISTER, UNREGISTER, ARP, FLUSH, NARP, TOPOLOGY = range(1, 10)
RESPONSE = 0x0100
READY_IND = READY_QUERY + RESPONSE
"""Opcodes; a response is its request and RESPONSE."""
NAMES = {
    CONFIGURE: "LE_CONFIGURE_REQUEST", CONFIGURE + RESPONSE: "LE_CONFIGURE_RESPONSE", JOIN: "LE_JOIN_REQUEST",
    JOIN + RESPONSE: "LE_JOIN_RESPONSE", READY_IND: "READY_IND", READY_QUERY: "READY_QUERY", ARP: "LE_ARP_REQUEST",
    ARP + RESPONSE: "LE_ARP_RESPONSE", FLUSH: "LE_FLUSH_REQUEST", FLUSH + RESPONSE: "LE_FLUSH_RESPONSE",
    NARP: "LE_NARP_REQUEST",
}  # fmt: skip
READY = (READY_IND, READY_QUERY)

PREFIX = bytes.fromhex("ff000101")
FRAME = struct.Struct(">4sHHIHH8s8s20s4B20s32s")
SHORT = len(PREFIX) + 2

REMOTE, PROXY = 0x0001, 0x0080
"""Flags (table of clause 4.2): the address is behind a proxy; this client is one."""
ETHERNET = 1
SIZES = {1516: 1, 4544: 2, 9234: 3, 18190: 4}
"""Codes of LAN types and frame sizes."""
NO_LAN, NO_ATM, NO_NAME = bytes(8), bytes(20), bytes(32)
NAME_MOST = 32
BROADCAST = (1 << 48) - 1

NETWORK = bytes.fromhex("470005 80ffe1") + bytes(7)
"""In front of a MAC and a selector: the ATM addresses of a run."""
SERVER, BUS = (NETWORK + bytes.fromhex("025344020000") + bytes([selector]) for selector in (1, 2))

ON_CHANNELS: Mapping[tuple[int, bool], tuple[int, ...]] = {
    (CONFIGURATION, True): (CONFIGURE,),
    (CONFIGURATION, False): (CONFIGURE + RESPONSE,),
    (CONTROL, True): (JOIN, ARP, ARP + RESPONSE, FLUSH + RESPONSE, NARP),
    (CONTROL, False): (JOIN + RESPONSE, ARP + RESPONSE, FLUSH + RESPONSE),
    (DISTRIBUTE, False): (ARP, NARP),
    (MULTICAST_SEND, True): (FLUSH,),
    (MULTICAST, False): (FLUSH,),
}
"""By channel and whether a client sends: what may be there."""
ON_DATA_DIRECT = (READY_IND, READY_QUERY, FLUSH)


def client_address(mac: int) -> bytes:
    """The ATM address of the client with a MAC address."""
    return NETWORK + mac.to_bytes(6, "big") + b"\0"


def lan_destination(mac: int) -> bytes:
    """A MAC address with its tag."""
    return b"\0\1" + mac.to_bytes(6, "big")


@dataclass(frozen=True)
class Fields:
    """What is behind the prefix of a control frame."""

    opcode: int
    status: int
    transaction: int
    requester: int
    flags: int
    source: bytes
    target: bytes
    source_address: bytes
    lan_type: int
    size: int
    tlvs: int
    name_length: int
    target_address: bytes
    name: bytes


@dataclass(frozen=True)
class Message:
    """A control frame in the capture. `port`: of its client; `out`: the client sent it; `lost`: of a fate."""

    record: int
    port: int
    out: bool
    lost: bool
    vci: int
    at_ns: int
    octets: bytes

    @cached_property
    def opcode(self) -> int:
        return int.from_bytes(self.octets[4:6])

    @cached_property
    def fields(self) -> Fields | None:
        """None: it is none of 108 octets."""
        if len(self.octets) != FRAME.size:
            return None
        return Fields(*FRAME.unpack(self.octets)[1:])

    @property
    def whole(self) -> bool:
        """Whether it is one of either length."""
        short = self.opcode in READY
        return self.octets[:4] == PREFIX and len(self.octets) == (SHORT if short else FRAME.size)

    @property
    def target_mac(self) -> int:
        """The MAC address asked for; -1: none."""
        fields = self.fields
        return int.from_bytes(fields.target[2:]) if fields is not None and fields.target[:2] == b"\0\1" else -1


def read_messages(pdus: Pdus) -> list[Message]:
    """All control frames, in the order of the capture."""
    places = np.flatnonzero(pdus.control)
    octets, sizes = pdus.sent.take(places), pdus.sdu[places]
    columns = (
        pdus.numbers("row")[places], pdus.port[places], pdus.direction[places] == OUTBOUND, pdus.fate[places],
        pdus.vci[places], pdus.time_ns[places],
    )  # fmt: skip
    return [
        Message(record, port, out, lost, vci, at_ns, octets.frame(place)[: sizes[place]])
        for place, (record, port, out, lost, vci, at_ns) in enumerate(
            zip(*(column.tolist() for column in columns), strict=True)
        )
    ]


@dataclass(frozen=True)
class Clients:
    """Who takes part, as the topology has it."""

    macs: tuple[int, ...]
    relays: tuple[bool, ...]
    name: bytes
    size: int

    @cached_property
    def addresses(self) -> tuple[bytes, ...]:
        return tuple(client_address(mac) for mac in self.macs)

    def peer(self, address: bytes) -> int:
        """The port of the client with an ATM address; -1: none."""
        return self.addresses.index(address) if address in self.addresses else -1


def clients_of(segment: Atm, wire: Wire) -> Clients:
    """From the topology."""
    return Clients(
        tuple(wire.macs[port] for port in segment.ports),
        tuple(port in wire.rings for port in segment.ports),
        wire.name.encode()[:NAME_MOST],
        SIZES[segment.lane_frame_size],
    )


def is_data_direct(vci: int, ports: int) -> bool:
    """Whether a channel is one between clients."""
    return DATA_DIRECT <= vci < DATA_DIRECT + ports
