# SPDX-License-Identifier: Apache-2.0
"""How PDUs read: their names, words and bytes."""

from __future__ import annotations

import struct
from collections.abc import Hashable
from uuid import UUID

from sundial.workloads.dce.expect_pdu import Flags, Pdu, Type


def encode(pdu: Pdu) -> bytes:
    """The bytes of a PDU (C706 section 12.5.2); all that is reserved is 0."""
    little = pdu.little_endian

    def uuid(value: UUID) -> bytes:
        return value.bytes_le if little else value.bytes

    numbers = struct.pack(
        pdu.order + "IIIHHHHH", pdu.boot_time, pdu.interface_version, pdu.sequence, pdu.opnum, pdu.interface_hint,
        pdu.activity_hint, len(pdu.body), pdu.fragment,
    )  # fmt: skip
    return b"".join((
        bytes((4, pdu.type, pdu.flags, pdu.flags2, 0x10 if little else 0, 0, 0, pdu.serial >> 8)),
        uuid(pdu.object), uuid(pdu.interface), uuid(pdu.activity), numbers, bytes((pdu.auth, pdu.serial & 0xFF)),
        pdu.body,
    ))  # fmt: skip


FIELDS = (
    (0, "version"), (1, "type"), (2, "flags1"), (3, "flags2"), (4, "drep"), (7, "serial"), (8, "object"),
    (24, "interface"), (40, "activity"), (56, "boot time"), (60, "interface version"), (64, "sequence number"),
    (68, "opnum"), (70, "interface hint"), (72, "activity hint"), (74, "length"), (76, "fragment number"),
    (78, "authentication"), (79, "serial"), (80, "body"),
)  # fmt: skip


def field_at(place: int) -> str:
    """The field of a PDU that has its byte `place`."""
    return next(name for begin, name in reversed(FIELDS) if place >= begin)


def name_of(pdu: Pdu) -> tuple[Hashable, ...]:
    """What tells a PDU from others of its side."""
    control = pdu.body if pdu.type in (Type.FACK, Type.NOCALL) else b""
    asks = pdu.flags & (Flags.FRAGMENT | Flags.NO_FACK)
    return pdu.type, pdu.activity, pdu.sequence, pdu.fragment, pdu.serial, asks, control


def words(pdu: Pdu) -> str:
    """A PDU in words."""
    name = pdu.type.name.lower().replace("_", " ")
    text = f"{name} of call {pdu.sequence}"
    if pdu.type in (Type.REQUEST, Type.RESPONSE):
        text += f", fragment {pdu.fragment}, serial {pdu.serial}" + (", asking for a fack" if pdu.asks else "")
    elif pdu.type in (Type.FACK, Type.NOCALL) and pdu.body:
        text += f" up to fragment {pdu.fragment}, body {pdu.body[12:].hex(' ')}"
    return text


def alike(one: Pdu, other: Pdu) -> bool:
    return (one.type, one.sequence, one.fragment) == (other.type, other.sequence, other.fragment)


class _Reading:
    name = staticmethod(name_of)
    words = staticmethod(words)
    alike = staticmethod(alike)
    encode = staticmethod(encode)
    field_at = staticmethod(field_at)

    @staticmethod
    def kind(pdu: Pdu) -> Type:
        return pdu.type


READING = _Reading()
