# SPDX-License-Identifier: Apache-2.0
"""IPv4 packets of one message: fragmentation (RFC 791 section 3.2) under UDP (RFC 768), and Ethernet frame sizes.

Lengths are bytes. `R = MTU - 20` is the room above an IP header without options, `U = 8 * floor(R / 8)` the room in a
fragment that others follow, since offsets count in units of eight bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

PerPacket = Callable[[int], int]
"""What an IP packet of so many bytes counts for."""

IP_HEADER = 20
UDP_HEADER = 8
TCP_HEADER = 20
TCP_TIMESTAMPS = 12
"""Timestamps option (RFC 7323 section 3.2: 10 bytes) with the two NOPs that align it (RFC 7323 appendix A)."""

MIN_MTU = 68
"""Every link must carry 68 bytes without fragmenting (RFC 791 section 3.2)."""
MAX_MTU = 65535
MAX_IP = 65535
MAX_UDP_PAYLOAD = MAX_IP - IP_HEADER - UDP_HEADER

ETHERNET_HEADER = 14
ETHERNET_MIN = 60
"""Smallest frame without FCS (IEEE 802.3 clause 4A: minFrameSize 64 with it)."""
ETHERNET_FCS = 4
ETHERNET_PREAMBLE = 8
"""Preamble and start of frame delimiter."""
ETHERNET_GAP = 12
"""Inter-frame gap, 96 bit times."""


@dataclass(frozen=True, slots=True)
class Packet:
    """One IP packet of a message.

    `data` counts bytes above the IP header for UDP (the first fragment's include the UDP header) and the segment's
    payload for TCP; `offset` is the fragment offset in bytes.
    """

    ip_length: int
    data: int
    offset: int = 0
    more: bool = False

    @property
    def frame(self) -> int:
        """Ethernet frame from destination MAC to the end of the payload, as a capture shows it."""
        return ETHERNET_HEADER + self.ip_length

    @property
    def padded_frame(self) -> int:
        """The same, padded to the minimum of 60."""
        return max(ETHERNET_MIN, self.frame)

    @property
    def frame_with_fcs(self) -> int:
        """Padded frame and its checksum."""
        return self.padded_frame + ETHERNET_FCS

    @property
    def wire(self) -> int:
        """Byte times that the frame takes on the wire: preamble, padded frame, FCS, gap."""
        return ETHERNET_PREAMBLE + self.frame_with_fcs + ETHERNET_GAP


def check_mtu(mtu: int) -> None:
    """Raise ValueError unless IPv4 can use `mtu`."""
    if not MIN_MTU <= mtu <= MAX_MTU:
        raise ValueError(f"MTU {mtu}: IPv4 needs {MIN_MTU}..{MAX_MTU}")


def fragment_room(mtu: int) -> int:
    """Bytes above IP in a fragment that others follow (U)."""
    return (mtu - IP_HEADER) // 8 * 8


def udp_packets(payload: int, mtu: int) -> tuple[Packet, ...]:
    """The packets of one UDP datagram with `payload` bytes behind the UDP header.

    Only the last fragment may carry R bytes where R is not a multiple of eight.
    """
    check_mtu(mtu)
    if not 0 <= payload <= MAX_UDP_PAYLOAD:
        raise ValueError(f"UDP payload {payload}: at most {MAX_UDP_PAYLOAD}")
    room, unit = mtu - IP_HEADER, fragment_room(mtu)
    packets = []
    offset, left = 0, UDP_HEADER + payload
    while left > room:
        packets.append(Packet(IP_HEADER + unit, unit, offset, True))
        offset += unit
        left -= unit
    packets.append(Packet(IP_HEADER + left, left, offset, False))
    return tuple(packets)


def one(ip_length: int) -> int:
    """A packet counts as one."""
    return 1


def udp_packet_count(payload: int, mtu: int, each: PerPacket = one) -> int:
    """What `udp_packets(payload, mtu)` count for, in closed form."""
    room, unit = mtu - IP_HEADER, fragment_room(mtu)
    full = max(0, -(-(UDP_HEADER + payload - room) // unit))
    return full * each(IP_HEADER + unit) + each(IP_HEADER + UDP_HEADER + payload - full * unit)
