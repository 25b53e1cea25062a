# SPDX-License-Identifier: Apache-2.0
"""Captures of PDUs for tests, made by hand: AAL5 by its definition, ERF records by struct; nothing of `sundial`."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

from tests.verify.bed import EPOCH_NS, block, option

OUT, IN = 2, 1


def crc32(octets: bytes) -> int:
    """Bit by bit: most significant bit first, all ones before, inverted after (I.363.5)."""
    value = 0xFFFFFFFF
    for octet in octets:
        value ^= octet << 24
        for _ in range(8):
            value = (value << 1 ^ (0x04C11DB7 if value >> 31 else 0)) & 0xFFFFFFFF
    return value ^ 0xFFFFFFFF


def cpcs(sdu: bytes) -> bytes:
    """SDU, pad and trailer."""
    padded = sdu + bytes(-(len(sdu) + 8) % 48) + bytes(2) + struct.pack(">H", len(sdu))
    return padded + struct.pack(">I", crc32(padded))


@dataclass
class Pdu:
    """One record. `interface`: a port's number, or as many as there are ports for the fate."""

    at: int
    interface: int
    direction: int
    vci: int
    sdu: bytes
    comment: str | None = None
    lctr: int = 0
    bad: bool = False

    def block(self) -> bytes:
        ticks = EPOCH_NS + self.at
        data = cpcs(self.sdu)
        stamp = (ticks // 10**9 << 32) + (ticks % 10**9 << 32) // 10**9
        flags = 0x04 | (self.direction == IN) | (0x10 if self.bad else 0)
        head = struct.pack("<Q", stamp) + struct.pack(">BBHHH", 4, flags, len(data) + 20, self.lctr, len(data) + 4)
        packet = head + struct.pack(">I", self.vci << 4) + data
        options = option(2, struct.pack("<I", self.direction)) if self.direction else b""
        if self.comment is not None:
            options += option(1, self.comment.encode())
        fixed = struct.pack("<IIIII", self.interface, ticks >> 32, ticks & 0xFFFFFFFF, len(packet), len(packet))
        return block(6, fixed + packet + bytes(-len(packet) % 4) + options + option(0, b""))


@dataclass
class PduTape:
    """What a capture of PDUs holds: `ports`, then the fate interface of `name`."""

    ports: list[str]
    name: str = "elan"
    pdus: list[Pdu] = field(default_factory=list)

    def pdu(self, at: int, interface: int, direction: int, vci: int, sdu: bytes, **more: object) -> None:
        self.pdus.append(Pdu(at, interface, direction, vci, sdu, **more))  # type: ignore[arg-type]

    def write(self, folder: Path) -> Path:
        """As `atm/NAME.pdus.pcapng` of a run's `wire/`."""
        parts = [block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
        for port in [*self.ports, f"{self.name}:fate"]:
            parts.append(
                block(
                    1, struct.pack("<HHI", 197, 0, 0) + option(2, port.encode()) + option(9, b"\x09") + option(0, b"")
                )
            )
        order = sorted(range(len(self.pdus)), key=lambda place: (self.pdus[place].at, place))
        path = folder / "atm" / f"{self.name}.pdus.pcapng"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join([*parts, *(self.pdus[place].block() for place in order)]))
        return path
