# SPDX-License-Identifier: Apache-2.0
"""Where the fields of a frame are, by its layers, and how its checksums are made right again."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

ARP, IPV4 = 0x0806, 0x0800
ICMP, TCP, UDP = 1, 6, 17
_ETHERNET = 14


@dataclass(frozen=True)
class Field:
    """Some bytes of a frame, or some bits of them."""

    name: str
    offset: int
    length: int
    mask: int | None = None
    """Of these bytes as a number; None: all."""

    @property
    def bits(self) -> int:
        return (1 << 8 * self.length) - 1 if self.mask is None else self.mask

    def get(self, data: bytes) -> int:
        return int.from_bytes(data[self.offset : self.offset + self.length]) & self.bits

    def put(self, data: bytes, value: int) -> bytes:
        old = int.from_bytes(data[self.offset : self.offset + self.length])
        new = (old & ~self.bits) | (value & self.bits)
        return data[: self.offset] + new.to_bytes(self.length) + data[self.offset + self.length :]


_ARP = (("hardware", 0, 2), ("protocol", 2, 2), ("hardware_length", 4, 1), ("protocol_length", 5, 1),
        ("operation", 6, 2), ("sender_mac", 8, 6), ("sender_ip", 14, 4), ("target_mac", 18, 6),
        ("target_ip", 24, 4))  # fmt: skip
_IP = (("version", 0, 1, 0xF0), ("header_length", 0, 1, 0x0F), ("tos", 1, 1), ("length", 2, 2), ("id", 4, 2),
       ("reserved", 6, 1, 0x80), ("dont_fragment", 6, 1, 0x40), ("more", 6, 1, 0x20), ("offset", 6, 2, 0x1FFF),
       ("ttl", 8, 1), ("protocol", 9, 1), ("checksum", 10, 2), ("source", 12, 4), ("target", 16, 4))  # fmt: skip
_UDP = (("source", 0, 2), ("target", 2, 2), ("length", 4, 2), ("checksum", 6, 2))
_TCP = (("source", 0, 2), ("target", 2, 2), ("seq", 4, 4), ("ack", 8, 4), ("header_length", 12, 1, 0xF0),
        ("reserved", 12, 1, 0x0F), ("cwr", 13, 1, 0x80), ("ece", 13, 1, 0x40), ("urg", 13, 1, 0x20),
        ("ack_flag", 13, 1, 0x10), ("psh", 13, 1, 8), ("rst", 13, 1, 4), ("syn", 13, 1, 2), ("fin", 13, 1, 1),
        ("window", 14, 2),
        ("checksum", 16, 2), ("urgent", 18, 2))  # fmt: skip
_ICMP = (("type", 0, 1), ("code", 1, 1), ("checksum", 2, 2), ("rest", 4, 4))
_TCP_OPTIONS = {1: "nop", 2: "mss", 3: "window_scale", 4: "sack_permitted", 5: "sack", 8: "timestamps"}
_DCE = (("version", 0, 1), ("type", 1, 1), ("flags1", 2, 1), ("flags2", 3, 1), ("drep", 4, 3), ("serial_hi", 7, 1),
        ("object", 8, 16), ("interface", 24, 16), ("activity", 40, 16), ("boot_time", 56, 4), ("version_of", 60, 4),
        ("sequence", 64, 4), ("opnum", 68, 2), ("interface_hint", 70, 2), ("activity_hint", 72, 2), ("length", 74, 2),
        ("fragment", 76, 2), ("auth", 78, 1), ("serial_lo", 79, 1))  # fmt: skip
_DCE_FACK = (("version", 0, 1), ("pad", 1, 1), ("window", 2, 2), ("tsdu", 4, 4), ("most", 8, 4), ("serial", 12, 2),
             ("selack_words", 14, 2))  # fmt: skip
_DCE_TYPES = ("request", "ping", "response", "fault", "working", "nocall", "reject", "ack", "cancel", "fack",
              "cancel_ack")  # fmt: skip
DCE_HEADER = 80
_DCE_PORTS = frozenset({135, *range(1027, 1035)})
_WORDS = 16
"""Of a payload, one by one: an RPC header, or the header of a raw payload."""


def ethertype(data: bytes) -> int:
    return int.from_bytes(data[12:14])


def is_ip(data: bytes) -> bool:
    return ethertype(data) == IPV4 and len(data) >= _ETHERNET + 20


def _ip_header(data: bytes) -> int:
    return (data[_ETHERNET] & 15) * 4


def fragment_offset(data: bytes) -> int:
    return (int.from_bytes(data[20:22]) & 0x1FFF) * 8


def is_fragment(data: bytes) -> bool:
    return is_ip(data) and bool(int.from_bytes(data[20:22]) & 0x3FFF)


def protocol(data: bytes) -> int:
    return data[23]


def datagram(data: bytes) -> tuple[int, bytes, bytes]:
    """What the fragments of one packet have in common."""
    return int.from_bytes(data[18:20]), data[26:34], data[23:24]


def layer(data: bytes) -> int:
    """Where the transport's header is."""
    return _ETHERNET + _ip_header(data)


def payload(data: bytes) -> int:
    """Where the payload begins."""
    if not is_ip(data):
        return _ETHERNET
    at = layer(data)
    if fragment_offset(data):
        return at
    if protocol(data) == TCP:
        return at + (data[at + 12] >> 4) * 4
    return at + 8


def is_dce(data: bytes) -> bool:
    """Whether a frame begins a PDU of DCE RPC: by its ports, and by what they all have."""
    if not is_ip(data) or fragment_offset(data) or protocol(data) != UDP or len(data) < payload(data) + DCE_HEADER:
        return False
    at, begin = layer(data), payload(data)
    ports = {int.from_bytes(data[at : at + 2]), int.from_bytes(data[at + 2 : at + 4])}
    known = data[begin] == 4 and data[begin + 1] < len(_DCE_TYPES) and data[begin + 5 : begin + 7] == bytes(2)
    return known and not ports.isdisjoint(_DCE_PORTS)


def dce_type(data: bytes) -> str:
    """The word for its type."""
    return _DCE_TYPES[data[payload(data) + 1]]


def kind(data: bytes) -> str:
    """What a frame is, for choosing one of each."""
    if ethertype(data) == ARP:
        return {1: "ARP request", 2: "ARP reply"}.get(int.from_bytes(data[20:22]), "ARP")
    if not is_ip(data):
        # Of MBCF the operation and its flags.
        return f"{ethertype(data):04x}/{data[14]:02x}.{data[15]:02x}" if ethertype(data) > 1535 else "802.3"
    if fragment_offset(data):
        return "later fragment"
    at = layer(data)
    if protocol(data) == TCP:
        flags = data[at + 13]
        size = int.from_bytes(data[16:18]) + _ETHERNET - payload(data)
        for bit, name in ((4, "RST"), (2, "SYN"), (1, "FIN")):
            if flags & bit:
                return f"TCP {name}"
        return "TCP data" if size else "TCP ACK"
    if is_dce(data):
        return f"DCE {dce_type(data)}{' in fragments' if is_fragment(data) else ''}"
    if protocol(data) == UDP:
        return "first fragment" if is_fragment(data) else "UDP"
    return "ICMP" if protocol(data) == ICMP else f"IP {protocol(data)}"


def fields(data: bytes) -> Iterator[Field]:
    """Every field of a frame, the payload's first words and three of its later bytes."""
    yield Field("eth.target", 0, 6)
    yield Field("eth.source", 6, 6)
    yield Field("eth.type", 12, 2)
    if ethertype(data) == ARP:
        yield from (Field(f"arp.{name}", _ETHERNET + at, length) for name, at, length in _ARP)
        return
    if not is_ip(data):
        yield from (
            Field(f"{ethertype(data):04x}[{at - _ETHERNET}]", at, 1) for at in range(_ETHERNET, min(len(data), 64))
        )
        yield from _content(data, 64)
        return
    yield from (Field(f"ip.{name}", _ETHERNET + at, *rest) for name, at, *rest in _IP)
    at = layer(data)
    if fragment_offset(data):
        yield from _content(data, at)
        return
    own = {TCP: ("tcp", _TCP), UDP: ("udp", _UDP), ICMP: ("icmp", _ICMP)}.get(protocol(data))
    if own is not None:
        name, table = own
        yield from (Field(f"{name}.{item}", at + place, *rest) for item, place, *rest in table)
    if protocol(data) == TCP:
        yield from _tcp_options(data, at)
    begin = payload(data)
    end = _ETHERNET + int.from_bytes(data[16:18])
    if is_dce(data):
        yield from (Field(f"dce.{name}", begin + place, length) for name, place, length in _DCE)
        begin += DCE_HEADER
        if dce_type(data) in ("fack", "nocall") and begin < end:
            yield from (Field(f"dce.fack.{name}", begin + place, length) for name, place, length in _DCE_FACK)
            begin += 16
    words = min(_WORDS, (end - begin) // 4)
    yield from (Field(f"payload.word[{place}]", begin + 4 * place, 4) for place in range(words))
    yield from _content(data[:end], begin + 4 * words)


def _content(data: bytes, begin: int) -> Iterator[Field]:
    if len(data) - begin > 2:
        yield Field("payload.first", begin, 1)
        yield Field("payload.middle", (begin + len(data)) // 2, 1)
        yield Field("payload.last", len(data) - 1, 1)


def _tcp_options(data: bytes, at: int) -> Iterator[Field]:
    place, end = at + 20, payload(data)
    while place < end and data[place]:
        code = data[place]
        length = 1 if code == 1 else data[place + 1]
        name = _TCP_OPTIONS.get(code, str(code))
        yield Field(f"tcp.option.{name}.kind", place, 1)
        if length > 1:
            yield Field(f"tcp.option.{name}.length", place + 1, 1)
        if code == 8:
            yield Field("tcp.option.timestamps.value", place + 2, 4)
            yield Field("tcp.option.timestamps.echo", place + 6, 4)
        elif length > 2:
            yield Field(f"tcp.option.{name}.value", place + 2, length - 2)
        place += max(length, 1)


CHECKSUMS = ("ip.checksum", "udp.checksum", "tcp.checksum", "icmp.checksum")


def checksum(data: bytes) -> int:
    """RFC 1071."""
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data[: len(data) // 2 * 2]))
    if len(data) % 2:
        total += data[-1] << 8
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def with_ip_checksum(data: bytes) -> bytes:
    """The frame with the right checksum of its IP header."""
    header = data[_ETHERNET : layer(data)]
    if not is_ip(data) or len(header) < 20:
        return data
    right = checksum(header[:10] + bytes(2) + header[12:])
    return data[:24] + right.to_bytes(2) + data[26:]


def checksum_place(data: bytes) -> int | None:
    """Where the transport's checksum is; None in later fragments."""
    if not is_ip(data) or fragment_offset(data):
        return None
    place = {TCP: 16, UDP: 6, ICMP: 2}.get(protocol(data))
    at = layer(data)
    return None if place is None or at + place + 2 > len(data) else at + place


def _sum(data: bytes) -> int:
    """Of what the transport's checksum covers in this fragment: its part and the pseudo header but for the checksum."""
    at = layer(data)
    end = _ETHERNET + int.from_bytes(data[16:18])
    part = data[at:end]
    place = checksum_place(data)
    if place is not None:
        part = part[: place - at] + bytes(2) + part[place - at + 2 :]
    pseudo = b"" if fragment_offset(data) or protocol(data) == ICMP else data[26:34] + bytes((0, data[23]))
    if place is not None and protocol(data) == UDP:
        pseudo += data[at + 4 : at + 6]
    elif place is not None and protocol(data) == TCP:
        pseudo += (end - at).to_bytes(2)
    return ~checksum(pseudo + part) & 0xFFFF


def with_checksums(old: bytes, new: bytes, first: Callable[[int], None] | None = None) -> bytes:
    """`new` with checksums that are as right as those of `old` were.

    `first` is given what has to be added to the checksum in the first fragment, where this is a later one.
    """
    if not (is_ip(old) and is_ip(new)):
        return new
    new = with_ip_checksum(new)
    place = checksum_place(new)
    if place != checksum_place(old):
        return new
    change = (_sum(old) - _sum(new)) % 0xFFFF
    if place is not None:
        return add_to_checksum(new, change)
    if first is not None:
        first(change)
    return new


def add_to_checksum(data: bytes, change: int) -> bytes:
    """The frame with a change of its transport's checksum in one's complement (RFC 1624); UDP's 0 means none."""
    place = checksum_place(data)
    if place is None or not change:
        return data
    was = int.from_bytes(data[place : place + 2])
    if protocol(data) == UDP and not was:
        return data
    right = (was + change) % 0xFFFF
    if protocol(data) == UDP:
        right = right or 0xFFFF
    return data[:place] + right.to_bytes(2) + data[place + 2 :]
