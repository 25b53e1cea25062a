# SPDX-License-Identifier: Apache-2.0
"""ATM arithmetic: vectors of I.363.5, of Wireshark's dissection and of tables by hand (RFC 2684, af-lane-0021)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import pytest

from sundial.expect import Call, Connection, Shape
from sundial.expect.atm import (
    BRIDGED,
    BRIDGED_FCS,
    LANE,
    ROUTED,
    UNITS_PER_PS,
    cell_time_units,
    cells,
    cpcs,
    crc32,
    leg_cells,
    packet_cells,
    pdu,
    sdu,
    sdu_octets,
)
from sundial.expect.ip import Packet
from sundial.workloads.raw import expect as raw_expect
from sundial.workloads.sunrpc import expect as sunrpc_expect

CALL = bytes.fromhex(
    "025344000002 025344000001 0800 45000058 00010000 40116692 0a000001 0a000002 04000801 00440000"
    "11223344 00000000 00000002 20000001 00000001 00000001" + "00" * 16 + "00000010" + "41" * 16
)
"""A call of Sun RPC over UDP from port 1024 to 2049: program 0x20000001, echo of 16 bytes."""
CALL_PDU = bytes.fromhex("0001") + CALL + bytes(32) + bytes.fromhex("0000 0068 7d9f8139")
LE_ARP = bytes.fromhex(
    "ff00 01 01 0006 0000 00000003 0001 0000 0001 025344000001 0001 025344000002"
    "47000580ffe1 00000000000000 025344000001 00" + "00" * 4 + "00" * 20 + "00" * 32
)


def call(transport: str, size: int, timestamps: bool = False, mtu: int = 1500) -> Call:
    return sunrpc_expect.expect_call(Shape(transport, "echo", size, mtu, Connection(timestamps=timestamps)))


def both(encapsulation: str, call: Call) -> tuple[int, int]:
    return leg_cells(encapsulation, call.request), leg_cells(encapsulation, call.reply)


@pytest.mark.parametrize(
    ("octets", "crc"),
    [
        # I.363.5 and the fields that its trailer adds: length in the last two octets before the CRC.
        (bytes(40) + bytes.fromhex("00000028"), 0x864D7F99),
        (b"\xff" * 40 + bytes.fromhex("00000028"), 0xC55E457A),
        (bytes(range(1, 41)) + bytes.fromhex("00000028"), 0xBF671ED0),
        (b"123456789", 0xFC891918),  # the check value of CRC-32/BZIP2
    ],
)
def test_crc_of_aal5(octets: bytes, crc: int) -> None:
    assert crc32(octets) == crc


def test_pdu_of_nine_octets() -> None:
    whole = cpcs(b"123456789")
    assert len(whole) == 48
    assert whole[9:40] == bytes(31)
    assert whole[40:] == bytes.fromhex("0000 0009 fbb97124")


def test_pdus_that_wireshark_finds_correct() -> None:
    assert pdu(LANE, CALL, lec_id=1) == CALL_PDU
    assert cpcs(LE_ARP)[108:] == bytes(28) + bytes.fromhex("0000 006c 6ef7a0ca")


def test_encapsulations() -> None:
    assert sdu(BRIDGED, CALL) == bytes.fromhex("aaaa03 0080c2 0007 0000") + CALL
    assert sdu(ROUTED, CALL) == bytes.fromhex("aaaa03 000000 0800") + CALL[14:]
    short = bytes.fromhex("ffffffffffff 025344000001 0806") + bytes(28)
    with_fcs = sdu(BRIDGED_FCS, short)
    assert with_fcs[:10] == bytes.fromhex("aaaa03 0080c2 0001 0000")
    assert with_fcs[10:70] == short + bytes(18)
    # IEEE 802.3, 3.2.9: the checksum over a frame and its own FCS leaves this residue, least significant bit first.
    assert f"{crc32(bytes(int(f'{octet:08b}'[::-1], 2) for octet in with_fcs[10:])):08x}" == "38fb2284"
    assert len(sdu(LANE, short)) == 62


@pytest.mark.parametrize("encapsulation", [LANE, BRIDGED, BRIDGED_FCS, ROUTED])
@pytest.mark.parametrize("length", [0, 28, 45, 46, 47, 88, 1480, 1500])
def test_octets_are_those_of_the_sdu(encapsulation: str, length: int) -> None:
    assert sdu_octets(encapsulation, length) == len(sdu(encapsulation, bytes(14 + length)))


@pytest.mark.parametrize(
    ("encapsulation", "octets", "count"),
    [(LANE, 1516, 32), (BRIDGED, 1524, 32), (BRIDGED_FCS, 1528, 32), (ROUTED, 1508, 32)],
)
def test_full_packet_of_1500(encapsulation: str, octets: int, count: int) -> None:
    assert sdu_octets(encapsulation, 1500) == octets
    assert packet_cells(encapsulation, 1500) == cells(octets) == count


def test_largest_frames() -> None:
    assert [packet_cells(LANE, mtu) for mtu in (1500, 4528, 9218, 18174)] == [32, 95, 193, 380]
    assert packet_cells(ROUTED, 9180) == 192
    assert cells(0) == 1
    assert cells(65535) == 1366
    with pytest.raises(ValueError, match="at most 65535"):
        cpcs(bytes(65536))


@pytest.mark.parametrize("encapsulation", [LANE, BRIDGED, BRIDGED_FCS, ROUTED])
def test_segment_without_data_takes_two_cells(encapsulation: str) -> None:
    assert packet_cells(encapsulation, 40) == packet_cells(encapsulation, 52) == 2


TABLE = """
   0  2/2    3/2    3/2    3/3    2/2    3/2
  16  3/2    3/3    3/3    3/3    3/2    3/3
  64  4/3    4/4    4/4    4/4    4/3    4/4
 256  8/7    8/8    8/8    8/8    8/7    8/8
1024  24/23  24/24  24/24  24/24  24/23  24/24
1428  32/32  34/32  32/32  34/32  32/32  32/32
1429  34/32  34/34  34/32  34/34  32/32  32/32
2048  46/46  47/47  46/46  47/47  45/45  45/45
4096  90/90  91/91  90/90  91/91  88/87  88/88
8192  179/179 181/181 179/179 182/181 173/173 173/173
"""
"""Cells of an echo, request/reply: LANE, bridged and classical IP (MTU 9180), each over UDP and TCP."""


@pytest.mark.parametrize("line", TABLE.strip().splitlines())
def test_cells_of_an_echo(line: str) -> None:
    size, *given = line.split()
    columns = [(LANE, 1500), (BRIDGED, 1500), (ROUTED, 9180)]
    found = [
        "/".join(map(str, both(encapsulation, call(transport, int(size), mtu=mtu))))
        for encapsulation, mtu in columns
        for transport in ("udp", "tcp")
    ]
    assert found == given


def gained(count: Callable[[int], int], sizes: range) -> list[int]:
    return [size % 48 for size in sizes if count(size) > count(size - 1)]


RESIDUES = [
    (LANE, "udp", False, 1, 17),
    (LANE, "tcp", False, 33, 1),
    (LANE, "tcp", True, 21, 37),
    (BRIDGED, "udp", False, 41, 9),
    (BRIDGED, "tcp", False, 25, 41),
    (BRIDGED, "tcp", True, 13, 29),
    (ROUTED, "udp", False, 9, 25),
    (ROUTED, "tcp", False, 41, 9),
    (ROUTED, "tcp", True, 29, 45),
]


@pytest.mark.parametrize(("encapsulation", "transport", "timestamps", "request_mod", "reply_mod"), RESIDUES)
def test_sizes_at_which_a_cell_is_added(
    encapsulation: str, transport: str, timestamps: bool, request_mod: int, reply_mod: int
) -> None:
    """In the first packet, as computed by hand for each encapsulation."""

    def legs(size: int) -> tuple[int, int]:
        return both(encapsulation, call(transport, size, timestamps))

    sizes = range(100, 1300)
    assert set(gained(lambda size: legs(size)[0], sizes)) == {request_mod}
    assert set(gained(lambda size: legs(size)[1], sizes)) == {reply_mod}


@pytest.mark.parametrize(
    ("encapsulation", "udp_mod", "tcp_mods"),
    [(LANE, 45, (33, 21)), (BRIDGED, 37, (25, 13)), (ROUTED, 5, (41, 29))],
)
def test_sizes_at_which_a_raw_echo_gains_a_cell(encapsulation: str, udp_mod: int, tcp_mods: tuple[int, int]) -> None:
    def leg(transport: str, timestamps: bool) -> Callable[[int], int]:
        shape = Connection(timestamps=timestamps)
        return lambda size: leg_cells(
            encapsulation, raw_expect.expect_call(Shape(transport, "echo", size, 1500, shape)).request
        )

    sizes = range(100, 1300)
    assert set(gained(leg("udp", False), sizes)) == {udp_mod}
    assert {mod for stamps in (False, True) for mod in gained(leg("tcp", stamps), sizes)} == set(tcp_mods)


def test_steps_of_sixteen_bytes_over_lane() -> None:
    """How often the round trip gains 0, 1, 2 or 3 cells from one size of the grid to the next, up to 8192."""

    def steps(transport: str, timestamps: bool) -> dict[int, int]:
        total = [sum(both(LANE, call(transport, size, timestamps))) for size in range(16, 8193, 16)]
        gains = [after - before for before, after in pairwise(total)]
        return {gain: gains.count(gain) for gain in sorted(set(gains))}

    assert steps("udp", False) == {0: 168, 1: 333, 2: 10}
    assert steps("tcp", False) == {0: 165, 1: 336, 2: 10}
    assert steps("tcp", True) == {0: 166, 1: 335, 2: 5, 3: 5}


@pytest.mark.parametrize(
    ("rate_bps", "octets", "picoseconds"),
    [
        (149_760_000, 53, Fraction(331_250_000, 117)),
        (25_600_000, 54, Fraction(16_875_000)),
        (100_000_000, 54, Fraction(4_320_000)),
    ],
)
def test_cell_times_of_the_named_lines_are_whole(rate_bps: int, octets: int, picoseconds: Fraction) -> None:
    assert Fraction(cell_time_units(rate_bps, octets), UNITS_PER_PS) == picoseconds


def test_cell_time_of_another_rate_is_rounded_up() -> None:
    exact = Fraction(424 * 117 * 10**12, 155_000_000)
    assert cell_time_units(155_000_000) == exact.__ceil__() > exact


def test_fragment_of_four_octets_is_a_frame_of_sixty() -> None:
    assert packet_cells(LANE, Packet(24, 4).ip_length) == 2
