# SPDX-License-Identifier: Apache-2.0
"""ATM: what stands in front of a frame or packet, AAL5 around it, and how many cells that makes. Standard library only.

Cells: ITU-T I.361; AAL5: I.363.5; LAN emulation: af-lane-0021; bridged and routed: RFC 2684, section 5 (LLC); classical
IP: RFC 2225. Times are in units of 1/117 ps, in which the cells of all three named lines take whole numbers.
"""

from __future__ import annotations

import zlib
from functools import partial

from sundial.expect.call import Leg
from sundial.expect.ip import ETHERNET_FCS, ETHERNET_HEADER, ETHERNET_MIN

LANE = "lane"
BRIDGED = "bridged"
BRIDGED_FCS = "bridged-fcs"
ROUTED = "routed"
ENCAPSULATIONS = (LANE, BRIDGED, BRIDGED_FCS, ROUTED)

CELL_OCTETS = 53
CELL_PAYLOAD = 48
TRAILER = 8
"""Of an AAL5 PDU: UU, CPI, length of two octets, CRC-32."""
SDU_MOST = 65535

UNITS_PER_PS = 117
UNITS_PER_S = UNITS_PER_PS * 10**12

LEC_ID = 2
"""LE header of a data frame: the sender's LEC ID (af-lane-0021, 4.1.1)."""
_LLC = bytes.fromhex("aaaa03")
_BRIDGED = _LLC + bytes.fromhex("0080c2 0007 0000")
_BRIDGED_FCS = _LLC + bytes.fromhex("0080c2 0001 0000")
_ROUTED = _LLC + bytes.fromhex("000000")
"""The ethertype follows."""

_REVERSED = bytes(int(f"{octet:08b}"[::-1], 2) for octet in range(256))


def sdu_octets(encapsulation: str, ip_length: int) -> int:
    """Octets that AAL5 carries for an IP packet (or what else is behind the header of an Ethernet frame)."""
    if encapsulation == ROUTED:
        return len(_ROUTED) + 2 + ip_length
    frame = max(ETHERNET_MIN, ETHERNET_HEADER + ip_length)
    return frame + {LANE: LEC_ID, BRIDGED: len(_BRIDGED), BRIDGED_FCS: len(_BRIDGED_FCS) + ETHERNET_FCS}[encapsulation]


def cells(sdu_octets: int) -> int:
    """Cells of an AAL5 PDU that carries so many octets."""
    return -(-(sdu_octets + TRAILER) // CELL_PAYLOAD)


def packet_cells(encapsulation: str, ip_length: int) -> int:
    """Cells of one IP packet."""
    return cells(sdu_octets(encapsulation, ip_length))


def leg_cells(encapsulation: str, leg: Leg) -> int:
    """Cells of one direction of a call, where nothing interferes."""
    return leg.count(partial(packet_cells, encapsulation))


def crc32(octets: bytes) -> int:
    """The CRC-32 of AAL5: most significant bit first, all ones before, inverted after (I.363.5, 9.2.1.2).

    zlib's is the same one with the bits of each octet, and of the result, the other way round.
    """
    return int(f"{zlib.crc32(octets.translate(_REVERSED)):032b}"[::-1], 2)


def sdu(encapsulation: str, frame: bytes, lec_id: int = 0) -> bytes:
    """What AAL5 carries for an Ethernet frame without FCS, by a LAN emulation client with `lec_id`."""
    if encapsulation == ROUTED:
        return _ROUTED + frame[ETHERNET_HEADER - 2 :]
    padded = frame.ljust(ETHERNET_MIN, b"\0")
    if encapsulation == LANE:
        return lec_id.to_bytes(LEC_ID, "big") + padded
    if encapsulation == BRIDGED:
        return _BRIDGED + padded
    return _BRIDGED_FCS + padded + zlib.crc32(padded).to_bytes(ETHERNET_FCS, "little")


def cpcs(sdu: bytes) -> bytes:
    """A whole AAL5 PDU: SDU, pad of zeros, trailer with UU and CPI 0."""
    if not len(sdu) <= SDU_MOST:
        raise ValueError(f"SDU of {len(sdu)} octets: at most {SDU_MOST}")
    padded = sdu.ljust(cells(len(sdu)) * CELL_PAYLOAD - TRAILER, b"\0")
    checked = padded + bytes(2) + len(sdu).to_bytes(2, "big")
    return checked + crc32(checked).to_bytes(4, "big")


def pdu(encapsulation: str, frame: bytes, lec_id: int = 0) -> bytes:
    """The AAL5 PDU of an Ethernet frame without FCS."""
    return cpcs(sdu(encapsulation, frame, lec_id))


def cell_time_units(rate_bps: int, cell_octets: int = CELL_OCTETS) -> int:
    """Time of one cell in units of 1/117 ps, rounded up; whole at 149.76, 25.6 and 100 Mbit/s."""
    return -(-cell_octets * 8 * UNITS_PER_S // rate_bps)
