# SPDX-License-Identifier: Apache-2.0
"""PDUs written by hand from C706 section 12.5, in both byte orders."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sundial.workloads.dce.expect_pdu import BadPdu, Fack, Flags, Pdu, Type, parse, parse_fack, parse_status

INTERFACE = UUID("6d2c1a0e-4b5f-4c3d-9e8a-0123456789ab")
ACTIVITY = UUID("00112233-4455-6677-8899-aabbccddeeff")

# Field by field: version 4, type, flags1, flags2; drep, serial high; three UUIDs; boot, version, sequence; opnum,
# hints, length, fragment; auth, serial low.
BIG = bytes.fromhex(
    "04 00 04 00  00 00 00 01"
    "00000000 0000 0000 0000000000000000"
    "6d2c1a0e 4b5f 4c3d 9e8a0123456789ab"
    "00112233 4455 6677 8899aabbccddeeff"
    "5a000001 00000001 00000007  0002 ffff ffff 0008 0003  00 02"
    "a1a2a3a4a5a6a7a8"
)
LITTLE = bytes.fromhex(
    "04 00 04 00  10 00 00 01"
    "00000000 0000 0000 0000000000000000"
    "0e1a2c6d 5f4b 3d4c 9e8a0123456789ab"
    "33221100 5544 7766 8899aabbccddeeff"
    "0100005a 01000000 07000000  0200 ffff ffff 0800 0300  00 02"
    "a1a2a3a4a5a6a7a8"
)


@pytest.mark.parametrize(("written", "little"), [(BIG, False), (LITTLE, True)])
def test_both_byte_orders(written: bytes, little: bool) -> None:
    assert parse(written) == Pdu(
        type=Type.REQUEST,
        flags=Flags.FRAGMENT,
        flags2=0,
        little_endian=little,
        serial=0x0102,
        object=UUID(int=0),
        interface=INTERFACE,
        activity=ACTIVITY,
        boot_time=0x5A000001,
        interface_version=1,
        sequence=7,
        opnum=2,
        interface_hint=0xFFFF,
        activity_hint=0xFFFF,
        fragment=3,
        auth=0,
        body=bytes.fromhex("a1a2a3a4a5a6a7a8"),
    )


@pytest.mark.parametrize(
    ("flags", "asks", "last"),
    [(0x00, False, True), (0x04, True, False), (0x0C, False, False), (0x0E, False, True), (0x20, False, True)],
)
def test_what_flags_ask_for(flags: int, asks: bool, last: bool) -> None:
    pdu = parse(BIG[:2] + bytes([flags]) + BIG[3:])
    assert (pdu.asks, pdu.last) == (asks, last)


@pytest.mark.parametrize(
    ("place", "value", "why"),
    [
        (0, 5, "version 5"),
        (1, 11, "packet type 11"),
        (4, 0x20, "data representation 200000"),
        (4, 0x01, "data representation 010000"),
        (5, 1, "data representation 000100"),
        (75, 9, "body of 9 bytes in 8"),
    ],
)
def test_what_is_no_pdu(place: int, value: int, why: str) -> None:
    with pytest.raises(BadPdu, match=why):
        parse(BIG[:place] + bytes([value]) + BIG[place + 1 :])


def test_a_short_datagram_is_no_pdu() -> None:
    with pytest.raises(BadPdu, match="79 bytes"):
        parse(BIG[:79])


def _fack(body: str, little: bool = False) -> Pdu:
    data = bytes.fromhex(body)
    length = len(data).to_bytes(2, "little" if little else "big")
    header = LITTLE[:80] if little else BIG[:80]
    return parse(bytes([4, 9]) + header[2:74] + length + header[76:] + data)


def test_facks() -> None:
    big = "00 00 0020 00001080 00001000 0102 0001 80000005"
    assert parse_fack(_fack(big)) == Fack(0, 32, 0x1080, 0x1000, 0x0102, (0x80000005,))
    little = "00 00 2000 80100000 00100000 0201 0100 05000080"
    assert parse_fack(_fack(little, little=True)) == parse_fack(_fack(big))
    old = parse_fack(_fack("00 00 0020 00001080 00001000"))
    assert old is not None
    assert old.serial is None
    assert parse_fack(_fack("")) is None


def test_a_selective_acknowledgement_counts_from_the_next_fragment() -> None:
    fack = Fack(0, 32, 0, 0, 1, (0b101, 1))
    assert fack.beyond(6) == {7, 9, 39}
    assert fack.beyond(0xFFFF) == {0, 2, 32}


@pytest.mark.parametrize("body", ["00", "00000020 00001080 000010", "00000020 00001080 00001000 0102 0002 00000001"])
def test_facks_that_end_too_soon(body: str) -> None:
    with pytest.raises(BadPdu, match="fack of"):
        parse_fack(_fack(body))


def test_status() -> None:
    assert parse_status(_fack("1c010003")) == 0x1C010003
    with pytest.raises(BadPdu, match="fack of 2 bytes"):
        parse_status(_fack("1c01"))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_pdu_or_are_refused(data: bytes) -> None:
    for payload in (data, BIG[:40] + data, LITTLE + data):
        try:
            pdu = parse(payload)
            parse_fack(pdu)
            parse_status(pdu)
        except BadPdu:
            continue
