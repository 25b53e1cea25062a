# SPDX-License-Identifier: Apache-2.0
"""Classical IP: what adapters answer to ARP, octet by octet and to the ns."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import polars as pl
import pytest

from sundial.observe.octets import Octets
from sundial.segments.atm.verify_clip import check_clip
from sundial.verify.wire import Wire
from tests.fates import by_adapter, for_address
from tests.segments.test_line_laws import segment

OUT, IN = 2, 1
PORTS = ["a:eth0", "b:eth0"]
IPS = [bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])]
MACS = [bytes.fromhex("025344000001"), bytes.fromhex("025344000002")]
AT_NS = 1_000
CELL_PS = 331_250_000 / 117
WAY_NS = -(-int(4 * CELL_PS) // 1000) + 4 * 25 + 2 * 10_000
"""A cell of OC-3c each way on two lines of 25 ns, and 10 us in the switch."""


def arp(operation: int, asker: int, wanted: bytes, *, reply: bool = False) -> bytes:
    fixed = struct.pack(">HHBBH", 1, 0x0800, 6, 4, operation)
    if reply:
        return MACS[asker] + MACS[1 - asker] + b"\x08\x06" + fixed + MACS[1 - asker] + wanted + MACS[asker] + IPS[asker]
    return b"\xff" * 6 + MACS[asker] + b"\x08\x06" + fixed + MACS[asker] + IPS[asker] + bytes(6) + wanted


Row = tuple[int, str, int, bytes, str | None]
ASKED: Row = (AT_NS, "a:eth0", OUT, arp(1, 0, IPS[1]), None)
ANSWERED: Row = (AT_NS + WAY_NS, "a:eth0", IN, arp(2, 0, IPS[1], reply=True), None)


def check(*rows: Row, end_ns: int | None = None) -> list[dict[str, Any]]:
    table = pl.DataFrame(
        [
            {"time_ns": at, "interface": name, "direction": direction, "frame_length": len(frame),
             "octets_hash": hash(frame), "eth_source": 0, "eth_target": 0, "eth_type": int.from_bytes(frame[12:14]),
             "comment": comment, "fate": None if comment is None else "dropped"}
            for at, name, direction, frame, comment in rows
        ],
        schema_overrides={"comment": pl.String, "fate": pl.String},
    ).with_row_index("row")  # fmt: skip
    frames = [row[3] for row in rows]

    def octets(some: pl.DataFrame) -> Octets:
        chosen = [frames[row] for row in some["row"].to_list()]
        size = np.array([len(each) for each in chosen], np.int64)
        return Octets(np.frombuffer(b"".join(chosen), np.uint8), np.cumsum(size) - size, size)

    macs = {port: int.from_bytes(mac) for port, mac in zip(PORTS, MACS, strict=True)}
    addresses = {port: [ip] for port, ip in zip(PORTS, IPS, strict=True)}
    wire = Wire("elan", PORTS, table, end_ns, octets, macs=macs, addresses=addresses)
    return pl.concat(check_clip(segment("atm", PORTS, encapsulation="routed"), wire)).to_dicts()


def test_a_question_is_answered_by_the_adapter() -> None:
    assert check(ASKED, ANSWERED) == []


@pytest.mark.parametrize("by_ns", [-2, 2, 1000])
def test_the_answer_comes_when_the_owner_could_have_given_it(by_ns: int) -> None:
    assert check(ASKED, (ANSWERED[0] + by_ns, *ANSWERED[1:]))


@pytest.mark.parametrize("octet", range(42))
def test_each_octet_of_an_answer_is_looked_at(octet: int) -> None:
    frame = bytearray(ANSWERED[3])
    frame[octet] ^= 1
    assert check(ASKED, (*ANSWERED[:3], bytes(frame), None))


def test_an_answer_that_is_missing_or_one_too_many_is_found() -> None:
    assert len(check(ASKED)) == 1
    assert check(ASKED, end_ns=AT_NS + WAY_NS) == []
    assert len(check(ASKED, ANSWERED, ANSWERED)) == 1
    assert len(check(ANSWERED)) == 1


def test_a_question_about_nobody_is_dropped_and_says_so() -> None:
    unknown = arp(1, 0, bytes([10, 0, 0, 9]))
    assert len(check((AT_NS, "a:eth0", OUT, unknown, None))) == 1
    words = for_address("a:eth0", "no VC", "10.0.0.9")
    assert check((AT_NS, "elan:fate", 0, unknown, words)) == []
    assert check((AT_NS, "elan:fate", 0, unknown, words.replace(".9", ".8")))
    assert check((AT_NS, "elan:fate", 0, arp(1, 0, IPS[1]), for_address("a:eth0", "no VC", "10.0.0.2")))


@pytest.mark.parametrize(("next_hop", "right"), [(MACS[0], True), (bytes(6), True), (MACS[1], False)])
def test_a_packet_is_dropped_where_its_next_hop_is_at_no_other_port(next_hop: bytes, right: bool) -> None:
    packet = next_hop + MACS[0] + b"\x08\0\x45" + bytes(15) + bytes([10, 9, 0, 1]) + bytes(20)
    found = check((AT_NS, "elan:fate", 0, packet, for_address("a:eth0", "no VC", "10.9.0.1")))
    assert (found == []) is right


def test_only_what_is_not_ip_is_dropped_for_that() -> None:
    header = MACS[1] + MACS[0]
    other, packet = header + b"\x88\xb6" + bytes(46), header + b"\x08\0\x45" + bytes(45)
    assert check((AT_NS, "elan:fate", 0, other, by_adapter("a:eth0", "not IP"))) == []
    assert check((AT_NS, "elan:fate", 0, packet, by_adapter("a:eth0", "not IP")))
