# SPDX-License-Identifier: Apache-2.0
"""Captures as other programs leave them, made by hand: packets of any two ends, in files of any form.

Its arithmetic is its own: nothing here imports `sundial`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.verify.bed import address, checksum, summed

CLIENT, SERVER, PORT = "10.0.0.1", "10.0.0.2", 2049
ETHERNET = 1
FIN, SYN, PSH, ACK = 1, 2, 8, 16
STEP_NS = 100_000


@dataclass(frozen=True)
class Packet:
    at: int
    frame: bytes
    interface: int = 0


def ip(
    source: str, target: str, protocol: int, payload: bytes, ident: int = 0, offset: int = 0, more: bool = False
) -> bytes:
    flags = (0x2000 if more else 0) | offset // 8
    begin = struct.pack(">BBHHHBB", 0x45, 0, 20 + len(payload), ident, flags, 64, protocol)
    ends = address(source) + address(target)
    return begin + struct.pack(">H", checksum(begin + ends)) + ends + payload


def ethernet(packet: bytes, kind: int = 0x0800) -> bytes:
    return (b"\2SD\0\0\2\2SD\0\0\1" + struct.pack(">H", kind) + packet).ljust(60, b"\0")


def call(xid: int, size: int = 40, procedure: int = 1, version: int = 2) -> bytes:
    """An RPC call of so many bytes with the header."""
    return struct.pack(">10I", xid, 0, version, 100003, 3, procedure, 0, 0, 0, 0) + bytes(range(1, 9)) * (size // 8 - 5)


def reply(xid: int, size: int = 24) -> bytes:
    return struct.pack(">6I", xid, 1, 0, 0, 0, 0) + bytes(range(1, 9)) * (size // 8 - 3)


def record(message: bytes, *fragments: int) -> bytes:
    """With its marks; `fragments`: bytes of all but the last."""
    found, at = b"", 0
    for size in fragments:
        found += struct.pack(">I", size) + message[at : at + size]
        at += size
    return found + struct.pack(">I", 1 << 31 | len(message) - at) + message[at:]


@dataclass
class Scene:
    """Packets in time."""

    packets: list[Packet] = field(default_factory=list)
    now: int = 10**18
    number: int = 0
    """Of the last datagram."""

    def add(self, packet: bytes, interface: int = 0, early_ns: int = 0) -> None:
        """`early_ns`: stamped so much before the packet in front of it."""
        self.now += STEP_NS
        at = self.packets[-1].at - early_ns if early_ns else self.now
        self.packets.append(Packet(at, ethernet(packet), interface))

    def udp(
        self, source: tuple[str, int], target: tuple[str, int], data: bytes, mtu: int = 1500, ident: int | None = None,
        reverse: bool = False, leave_out: int | None = None, early_ns: int = 0,
    ) -> None:  # fmt: skip
        self.number += 1
        whole = summed(source[0], target[0], 17, struct.pack(">HHHH", source[1], target[1], 8 + len(data), 0) + data)
        unit = (mtu - 20) // 8 * 8 if len(whole) > mtu - 20 else len(whole)
        pieces = [(at, whole[at : at + unit]) for at in range(0, len(whole), unit)]
        parts = [
            ip(source[0], target[0], 17, piece, self.number if ident is None else ident, at, at + unit < len(whole))
            for at, piece in pieces
        ]
        for place, part in reversed(list(enumerate(parts))) if reverse else enumerate(parts):
            if place != leave_out:
                self.add(part, early_ns=early_ns)
                if target[0].endswith(".255"):
                    last = self.packets[-1]
                    self.packets[-1] = replace(last, frame=b"\xff" * 6 + last.frame[6:])


@dataclass
class Connection:
    """Two streams; positions are those of the next byte."""

    scene: Scene
    port: int
    server_port: int = PORT
    begins: tuple[int, int] = (1000, 9_000_000)
    mss: int = 1460
    at: dict[bool, int] = field(default_factory=lambda: {False: 0, True: 0})

    def segment(
        self,
        back: bool,
        data: bytes,
        flags: int = ACK | PSH,
        at: int | None = None,
        options: bytes = b"",
        early_ns: int = 0,
    ) -> None:
        here = (CLIENT, self.port), (SERVER, self.server_port)
        source, target = here[::-1] if back else here
        pos = self.at[back] if at is None else at
        seq = (self.begins[back] + (0 if flags & SYN else 1) + pos) % 2**32
        ack = (self.begins[not back] + 1 + self.at[not back]) % 2**32
        length = (20 + len(options)) // 4 << 12
        head = struct.pack(">HHIIHHHH", source[1], target[1], seq, ack, length | flags, 65535, 0, 0)
        self.scene.add(
            ip(source[0], target[0], 6, summed(source[0], target[0], 6, head + options + data)), early_ns=early_ns
        )
        if at is None:
            self.at[back] += len(data)

    def open(self, early_ns: int = 0) -> None:
        mss = struct.pack(">BBH", 2, 4, self.mss)
        self.segment(False, b"", SYN, options=mss)
        self.segment(True, b"", SYN | ACK, options=mss, early_ns=early_ns)
        self.segment(False, b"", ACK)

    def close(self) -> None:
        self.segment(False, b"", FIN | ACK)
        self.segment(True, b"", FIN | ACK)

    def send(self, back: bool, data: bytes, *cuts: int) -> None:
        """In segments of the given sizes, and the rest in those of the MSS."""
        for size in [*cuts, *[self.mss] * (len(data) // self.mss + 1)]:
            if data:
                self.segment(back, data[:size])
                data = data[size:]


def classic(
    path: Path, packets: Sequence[Packet], order: str = "<", nanoseconds: bool = True, link: int = ETHERNET,
    snap: int = 1 << 18, ahead: bytes | None = None,
) -> Path:  # fmt: skip
    """`ahead`: what is in front of each IP packet in place of Ethernet's header."""
    unit = 1 if nanoseconds else 1000
    parts = [struct.pack(f"{order}IHHiIII", 0xA1B23C4D if nanoseconds else 0xA1B2C3D4, 2, 4, 0, 0, snap, link)]
    for packet in packets:
        frame = packet.frame if ahead is None else ahead + packet.frame[14:]
        seconds, rest = divmod(packet.at, 10**9)
        parts.append(struct.pack(f"{order}IIII", seconds, rest // unit, len(frame[:snap]), len(frame)) + frame[:snap])
    path.write_bytes(b"".join(parts))
    return path


def section(packets: Iterable[Packet], order: str = "<", kind: int = 6, interfaces: int = 1, snap: int = 0) -> bytes:
    """A section of pcapng with enhanced (6), simple (3) or obsolete packet blocks (2)."""

    def block(number: int, body: bytes) -> bytes:
        total = struct.pack(f"{order}I", 12 + len(body))
        return struct.pack(f"{order}I", number) + total + body + total

    parts = [block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1))]
    for place in range(interfaces):
        name = struct.pack(f"{order}HH", 2, 4) + f"eth{place}".encode() + bytes(4)
        parts.append(block(1, struct.pack(f"{order}HHI", ETHERNET, 0, snap) + name))
    for packet in packets:
        recorded = packet.frame[: snap or None]
        at = packet.at // 1000
        times = struct.pack(f"{order}4I", at >> 32, at & 0xFFFFFFFF, len(recorded), len(packet.frame))
        head = {
            6: struct.pack(f"{order}I", packet.interface) + times,
            2: struct.pack(f"{order}HH", packet.interface, 7) + times,
            3: struct.pack(f"{order}I", len(packet.frame)),
        }[kind]
        parts.append(block(kind, head + recorded + bytes(-len(recorded) % 4)))
    return b"".join(parts)
