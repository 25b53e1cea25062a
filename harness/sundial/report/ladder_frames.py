# SPDX-License-Identifier: Apache-2.0
"""What a ladder needs of a frame's bytes: which frame it is, to which exchange it belongs, and a few words."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

ETHERNET = 14
IPV4, ARP = 0x0800, 0x0806
ICMP, TCP, UDP = 1, 6, 17
_FLAGS = ((2, "SYN"), (1, "FIN"), (4, "RST"))
_ACK = 16
_REPLY = 2
_HALF = 1 << 31
_ICMP = {
    (0, 0): "echo reply",
    (3, 1): "host unreachable",
    (3, 3): "port unreachable",
    (3, 4): "fragmentation needed",
    (8, 0): "echo request",
    (11, 0): "time to live exceeded",
    (11, 1): "reassembly time exceeded",
}
"""By type and code (RFC 792)."""

Repeats = Callable[[bytes], Hashable]
"""What a payload asks for, the same each time it is sent; None if it does not ask, or is not known."""


@dataclass(frozen=True)
class Part:
    """A fragment of an IP packet: its place in the packet's payload, in bytes."""

    ident: int
    offset: int
    length: int


@dataclass(frozen=True)
class Segment:
    """What TCP says in its header."""

    seq: int
    ack: int
    flags: int
    length: int


@dataclass(frozen=True)
class Head:
    """A frame without what changes on its way."""

    key: Hashable
    """The same at the sender's and at the receiver's port of one segment."""
    words: str
    group: str = ""
    """Frames of one group differ in nothing but their place in a message; empty: the frame is not one of many."""
    asks: Hashable = None
    """The same for a frame that asks for the same again; None: it asks for nothing."""
    source: str = ""
    target: str = ""
    protocol: int = 0
    ports: tuple[int, int] | None = None
    part: Part | None = None
    tcp: Segment | None = None
    mac: tuple[bytes, bytes] | None = None
    type: int = 0

    @property
    def packet(self) -> tuple[str, str, int, int] | None:
        """What all fragments of a packet have in common."""
        return None if self.part is None else (self.source, self.target, self.protocol, self.part.ident)


def read_head(frame: bytes, *, ethernet: bool = True, repeats: Repeats | None = None) -> Head:
    """The head of a captured frame. `repeats` is asked for the payload of UDP, and for what is not IP the frame."""
    if not ethernet:
        return Head(frame, f"packet, {len(frame)} B", "packet", _asked(repeats, frame))
    if len(frame) < ETHERNET:
        return Head(frame, f"{len(frame)} B")
    kind = int.from_bytes(frame[12:14])
    mac = frame[:6], frame[6:12]
    if kind == IPV4 and len(frame) >= ETHERNET + 20:
        return _ip(frame, mac, repeats)
    if kind == ARP and len(frame) >= ETHERNET + 28:
        return _arp(frame, mac)
    words = f"type {kind:#06x}, {len(frame)} B"
    return Head(frame[ETHERNET:], words, f"type {kind:#06x}", _asked(repeats, frame), mac=mac, type=kind)


def _asked(repeats: Repeats | None, data: bytes) -> Hashable:
    return None if repeats is None else repeats(data)


def _arp(frame: bytes, mac: tuple[bytes, bytes]) -> Head:
    sender, target = (str(ipaddress.ip_address(frame[at : at + 4])) for at in (28, 38))
    reply = int.from_bytes(frame[20:22]) == _REPLY
    words = f"ARP: {sender} is here" if reply else f"ARP: where is {target}?"
    return Head(frame[ETHERNET : ETHERNET + 28], words, source=sender, target=target, mac=mac, type=ARP)


def _ip(frame: bytes, mac: tuple[bytes, bytes], repeats: Repeats | None) -> Head:
    first, total, ident, fragment, protocol = struct.unpack_from(">BxHHHxB", frame, ETHERNET)
    packet = frame[ETHERNET : ETHERNET + total]
    header = (first & 0xF) * 4
    source, target = (str(ipaddress.ip_address(packet[at : at + 4])) for at in (12, 16))
    offset, more = (fragment & 0x1FFF) * 8, bool(fragment & 0x2000)
    body = packet[header:]
    part = Part(ident, offset, len(body)) if offset or more else None
    common = {"source": source, "target": target, "protocol": protocol, "mac": mac, "type": IPV4}
    ends = (source, target, protocol)
    if offset:
        words = f"bytes {offset}-{offset + len(body) - 1} of the packet"
        return Head(packet, words, "fragment", (*ends, offset, hash(body)), part=part, **common)
    if protocol == UDP and len(body) >= 8:
        ports = struct.unpack_from(">HH", body)
        length = int.from_bytes(body[4:6]) - 8
        words = f"UDP, {length} B" + (f", bytes 0-{len(body) - 1} of the packet" if more else "")
        asks = (*ends, ports, _known(repeats, body[8:]) or hash(body))
        return Head(packet, words, asks=asks, ports=ports, part=part, **common)
    if protocol == TCP and len(body) >= 20:
        return _tcp(packet, body, ends, common)
    words = f"IP protocol {protocol}, {len(body)} B"
    if protocol == ICMP and len(body) > 1:
        words = f"ICMP: {_ICMP.get((body[0], body[1]), f'type {body[0]} code {body[1]}')}"
    return Head(packet, words, part=part, **common)


def _known(repeats: Repeats | None, payload: bytes) -> Hashable:
    return None if repeats is None else repeats(payload)


def _tcp(packet: bytes, body: bytes, ends: tuple[str, str, int], common: Mapping[str, object]) -> Head:
    ports = struct.unpack_from(">HH", body)
    seq, ack, bits = struct.unpack_from(">IIH", body, 4)
    segment = Segment(seq, ack, bits & 0x1FF, max(0, len(body) - (bits >> 12) * 4))
    opens = segment.flags & 3
    asks = (*ends, ports, seq, segment.length) if segment.length or opens else None
    group = "" if opens else "data" if segment.length else "acknowledgement"
    return Head(packet, "TCP", group, asks, ports=ports, tcp=segment, **common)  # type: ignore[arg-type]


def tcp_words(segment: Segment, first_sent: int, first_acked: int) -> str:
    """What a segment says; sequence numbers count from those given."""
    names = [name for bit, name in _FLAGS if segment.flags & bit]
    place = (segment.seq - first_sent) % 2**32
    if segment.length:
        names.append(f"bytes {place}-{place + segment.length - 1}")
    if segment.flags & _ACK:
        acked = (segment.ack - first_acked) % 2**32
        names.append(f"ACK {acked}" if acked < _HALF else "ACK of the call before")
    return "TCP " + ", ".join(names)
