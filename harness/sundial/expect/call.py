# SPDX-License-Identifier: Apache-2.0
"""A call as packets, whatever protocol it belongs to: request and reply, each in UDP or TCP packets.

Pure arithmetic; the sources are named in `ip` and `tcp`. What a protocol's messages are, its kind knows
(`sundial.workloads.NAME.expect`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sundial.expect.ip import Packet, PerPacket, udp_packets
from sundial.expect.tcp import segment_size, tcp_segments

Transport = Literal["udp", "tcp"]


@dataclass(frozen=True, slots=True)
class Connection:
    """What the two SYNs of a TCP connection settle, as far as it changes lengths."""

    timestamps: bool = True
    """Both ends use TCP timestamps (RFC 7323)."""
    request_mss: int | None = None
    """MSS option in the server's SYN, which limits requests; None: the MTU alone does."""
    reply_mss: int | None = None
    """MSS option in the client's SYN."""


@dataclass(frozen=True, slots=True)
class Leg:
    """One direction of a call.

    `packets` is what is sent where nothing interferes; where `exact` is false only their sum, `fewest`, `most` and
    `largest` bind (see `tcp`). A leg without packets is not sent.
    """

    transport: str
    message: int
    """Bytes of the message, as its protocol makes it."""
    payload: int
    """Bytes handed to the transport: the message and, over TCP, its record marks."""
    records: tuple[int, ...]
    packets: tuple[Packet, ...]
    exact: bool = True
    fewest: int = 0
    most: int = 0
    largest: int = 0

    @property
    def lengths(self) -> tuple[int, ...]:
        """What verification compares: IP payload of each fragment (UDP), payload of each segment (TCP)."""
        return tuple(packet.data for packet in self.packets)

    def count(self, each: PerPacket) -> int:
        """What the packets count for together, such as their cells."""
        return sum(each(packet.ip_length) for packet in self.packets)

    @property
    def frame_bytes(self) -> int:
        """Ethernet frames as captured, without padding and FCS."""
        return sum(packet.frame for packet in self.packets)

    @property
    def padded_frame_bytes(self) -> int:
        """Ethernet frames padded to 60 bytes, without FCS."""
        return sum(packet.padded_frame for packet in self.packets)

    @property
    def wire_bytes(self) -> int:
        """Byte times on the wire, with preamble, FCS and gap of every frame."""
        return sum(packet.wire for packet in self.packets)


@dataclass(frozen=True, slots=True)
class Call:
    """Both directions. `fails` says which of them cannot be made at this size, if any."""

    request: Leg
    reply: Leg
    fails: Literal["request", "reply"] | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """What determines the packets of a call, beside the options of its protocol."""

    transport: str
    procedure: str
    size: int
    mtu: int
    connection: Connection = Connection()

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError(f"size {self.size}: must not be negative")
        if self.transport not in ("udp", "tcp"):
            raise ValueError(f"transport {self.transport!r}: known are udp, tcp")


def udp_leg(message: int, mtu: int) -> Leg:
    """One message in one UDP datagram."""
    packets = udp_packets(message, mtu)
    count = len(packets)
    return Leg("udp", message, message, (), packets, True, count, count, max(packet.data for packet in packets))


def tcp_leg(
    message: int,
    writes: tuple[int, ...],
    mtu: int,
    timestamps: bool,
    peer_mss: int | None = None,
    records: tuple[int, ...] = (),
) -> Leg:
    """One message over TCP, in so many writes; `records`: fragments of its record, where the protocol marks them."""
    segments = tcp_segments(writes, segment_size(mtu, timestamps, peer_mss), timestamps)
    return Leg(
        "tcp", message, sum(writes), records, segments.packets, segments.exact, segments.fewest, segments.most,
        segments.largest,
    )  # fmt: skip


def unsent_leg(transport: str, message: int) -> Leg:
    """A leg that never reaches the wire."""
    return Leg(transport, message, 0, (), ())
