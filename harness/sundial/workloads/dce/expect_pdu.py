# SPDX-License-Identifier: Apache-2.0
"""PDUs of connectionless DCE RPC as bytes: the header (C706 section 12.5.2) and the bodies that the runtime makes.

Only reading: what a program under test wrote is compared with what the standard says.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from uuid import UUID

HEADER = 80
VERSION = 4


class Type(IntEnum):
    """C706 section 12.5.2.2, ptype."""

    REQUEST = 0
    PING = 1
    RESPONSE = 2
    FAULT = 3
    WORKING = 4
    NOCALL = 5
    REJECT = 6
    ACK = 7
    CL_CANCEL = 8
    FACK = 9
    CANCEL_ACK = 10


FROM_CLIENT = frozenset({Type.REQUEST, Type.PING, Type.ACK, Type.CL_CANCEL})
"""A fack goes both ways: requests are acknowledged by the server, responses by the client."""


class Flags(IntFlag):
    """C706 section 12.5.2.3, flags1."""

    LAST_FRAGMENT = 0x02
    FRAGMENT = 0x04
    NO_FACK = 0x08
    MAYBE = 0x10
    IDEMPOTENT = 0x20
    BROADCAST = 0x40


CANCEL_PENDING = 0x02
"""C706 section 12.5.2.3, flags2: in a response, a cancel that came before the call ended."""

NO_HINT = 0xFFFF
"""Interface and activity hints (C706 section 12.5.2.13 and 14): not known."""


class BadPdu(ValueError):
    """Bytes that are no PDU; says why."""


@dataclass(frozen=True, slots=True)
class Pdu:
    """One PDU: a datagram's payload."""

    type: Type
    flags: Flags
    flags2: int
    little_endian: bool
    """The first four bits of drep; characters are ASCII and floating point is IEEE, or it is refused."""
    serial: int
    """Of this transmission; both halves of the header's number."""
    object: UUID
    interface: UUID
    activity: UUID
    boot_time: int
    interface_version: int
    """Major in the low 16 bits, minor in the high ones."""
    sequence: int
    opnum: int
    interface_hint: int
    activity_hint: int
    fragment: int
    auth: int
    body: bytes

    @property
    def asks(self) -> bool:
        """Whether a fragment that leaves its message incomplete must be answered by a fack: fragments only, and not
        the last (C706 section 12.5.2.3)."""
        return bool(self.flags & Flags.FRAGMENT) and not self.flags & (Flags.NO_FACK | Flags.LAST_FRAGMENT)

    @property
    def last(self) -> bool:
        """Whether the message ends here: a message of one PDU is not a fragment."""
        return not self.flags & Flags.FRAGMENT or bool(self.flags & Flags.LAST_FRAGMENT)

    @property
    def order(self) -> str:
        """Of its integers, as `struct` writes it."""
        return "<" if self.little_endian else ">"


def _uuid(data: bytes, little: bool) -> UUID:
    return UUID(bytes_le=data) if little else UUID(bytes=data)


def parse(payload: bytes) -> Pdu:
    """The PDU in the payload of a datagram. Raises BadPdu."""
    if len(payload) < HEADER:
        raise BadPdu(f"{len(payload)} bytes, shorter than a header")
    if payload[0] & 0x0F != VERSION:
        raise BadPdu(f"version {payload[0] & 0x0F}")
    if payload[1] & 0x1F > max(Type):
        raise BadPdu(f"packet type {payload[1] & 0x1F}")
    integers, characters = payload[4] >> 4, payload[4] & 0x0F
    if integers > 1 or characters or payload[5]:
        raise BadPdu(f"data representation {payload[4:7].hex()}")
    little = integers == 1
    boot, version, sequence, opnum, interface_hint, activity_hint, length, fragment = struct.unpack_from(
        ("<" if little else ">") + "IIIHHHHH", payload, 56
    )
    if length > len(payload) - HEADER:
        raise BadPdu(f"body of {length} bytes in {len(payload) - HEADER}")
    return Pdu(
        type=Type(payload[1] & 0x1F),
        flags=Flags(payload[2] & 0x7E),
        flags2=payload[3],
        little_endian=little,
        serial=payload[7] << 8 | payload[79],
        object=_uuid(payload[8:24], little),
        interface=_uuid(payload[24:40], little),
        activity=_uuid(payload[40:56], little),
        boot_time=boot,
        interface_version=version,
        sequence=sequence,
        opnum=opnum,
        interface_hint=interface_hint,
        activity_hint=activity_hint,
        fragment=fragment,
        auth=payload[78],
        body=payload[HEADER : HEADER + length],
    )


FACK_WITHOUT_SERIAL = 12
FACK_FIXED = 16
"""Bytes of a fack's body before the words of its selective acknowledgement."""
NONE_IN_ORDER = 0xFFFF
"""A fack's fragment number before fragment 0 has come."""


@dataclass(frozen=True, slots=True)
class Fack:
    """The body of a fack, or of a nocall that has one (C706 section 12.5.3.4)."""

    version: int
    window: int
    """What the receiver offers, in KB."""
    most_tsdu: int
    most_fragment: int
    serial: int | None
    """Of the transmission that it answers; None in the old form without it."""
    selected: tuple[int, ...]
    """Words of the selective acknowledgement: bit i of word w stands for fragment + 1 + 32 w + i."""

    def beyond(self, fragment: int) -> frozenset[int]:
        """Fragments received out of order, where `fragment` is the header's: the highest in order."""
        first = (fragment + 1) % (1 << 16)
        return frozenset(
            first + 32 * place + bit for place, word in enumerate(self.selected) for bit in range(32) if word >> bit & 1
        )


def parse_fack(pdu: Pdu) -> Fack | None:
    """The body of a fack; None where there is none. Raises BadPdu."""
    body = pdu.body
    if not body:
        return None
    if len(body) < FACK_WITHOUT_SERIAL:
        raise BadPdu(f"fack of {len(body)} bytes")
    version, _, window, tsdu, fragment = struct.unpack_from(pdu.order + "BBHII", body)
    if len(body) < FACK_FIXED:
        return Fack(version, window, tsdu, fragment, None, ())
    serial, words = struct.unpack_from(pdu.order + "HH", body, FACK_WITHOUT_SERIAL)
    if len(body) < FACK_FIXED + 4 * words:
        raise BadPdu(f"selective acknowledgement of {words} words in a fack of {len(body)} bytes")
    return Fack(version, window, tsdu, fragment, serial, struct.unpack_from(f"{pdu.order}{words}I", body, FACK_FIXED))


def parse_status(pdu: Pdu) -> int:
    """The status in a fault or a reject (C706 sections 12.5.3.5 and 12.5.3.8). Raises BadPdu."""
    if len(pdu.body) < 4:
        raise BadPdu(f"{pdu.type.name.lower()} of {len(pdu.body)} bytes")
    return int(struct.unpack_from(pdu.order + "I", pdu.body)[0])
