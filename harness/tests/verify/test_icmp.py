# SPDX-License-Identifier: Apache-2.0
"""What reports of routers and receivers quote: a next hop that does not answer, fragments that did not come."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest

from sundial.observe import Octets
from sundial.verify.frames import INBOUND, OUTBOUND
from sundial.verify.headers.icmp import HOST, PORT, REASSEMBLY, TIME_EXCEEDED, UNREACHABLE, check_icmp
from tests.verify.bed import address, checksum

SECOND = 1_000_000_000
CLIENT, ROUTER, FAR = "10.0.0.1", "10.0.0.254", "10.1.0.2"
UNRESOLVED = {"r": [(SECOND, 4 * SECOND)]}


def packet(
    source: str, target: str, protocol: int, payload: bytes, *, ttl: int = 64, fragment: int = 0, number: int = 7
) -> bytes:
    fields = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(payload), number, fragment, ttl, protocol, 0)
    header = fields + address(source) + address(target)
    return header[:10] + struct.pack(">H", checksum(header)) + header[12:] + payload


def report(code: int, quote: bytes, kind: int = UNREACHABLE) -> bytes:
    bare = struct.pack(">BBHI", kind, code, 0, 0) + quote
    message = bare[:2] + struct.pack(">H", checksum(bare)) + bare[4:]
    return packet(ROUTER, CLIENT, 1, message)


def fields(
    packets: Sequence[tuple[int, int, bytes]], unresolved: dict[str, list[tuple[int, int]]], platform: str = "linux"
) -> list[str]:
    """Fields of the findings. `packets`: time, direction at the router's port, octets from the IP header on."""
    rows = []
    for row, (at_ns, direction, data) in enumerate(packets):
        total = sum(struct.unpack(f">{len(data) // 2 - 10}H", data[20:]))
        fragment = int.from_bytes(data[6:8])
        source, target = (".".join(map(str, data[place : place + 4])) for place in (12, 16))
        rows.append(
            {"row": row, "end": "lan|r:eth0", "machine": "r", "platform": platform, "fate": None,
             "direction": direction, "time_ns": at_ns,
             "source": source, "target": target, "protocol": data[9], "ip_id": int.from_bytes(data[4:6]),
             "ip_flags": fragment >> 13, "more": bool(fragment & 0x2000), "fragment_offset": (fragment & 0x1FFF) * 8,
             "ip_length": len(data), "ip_header": 20, "ip_payload_sum": total}
        )  # fmt: skip
    table = pl.DataFrame(rows, schema_overrides={"fate": pl.String})
    frames = [bytes(14) + data for _, _, data in packets]

    def read(some: pl.DataFrame) -> Octets:
        chosen = [frames[row] for row in some["row"].to_list()]
        size = np.array([len(each) for each in chosen], np.int64)
        return Octets(np.frombuffer(b"".join(chosen) or b"\0", np.uint8), np.cumsum(size) - size, size)

    sent = table.filter(pl.col("direction") == OUTBOUND)
    return check_icmp(table, sent, read, unresolved)["field"].to_list()


ASKED = packet(CLIENT, FAR, 17, bytes(8))
PASSED_ON = packet(CLIENT, FAR, 17, bytes(8), ttl=63)
OTHER = packet(CLIENT, FAR, 17, bytes(7) + b"\1", ttl=63)


@pytest.mark.parametrize(
    ("code", "quote", "unresolved", "found"),
    [
        (HOST, PASSED_ON, UNRESOLVED, []),
        (HOST, PASSED_ON, {}, ["icmp.type"]),
        (HOST, PASSED_ON, {"r": [(0, SECOND)]}, ["icmp.type"]),
        (HOST, ASKED, UNRESOLVED, ["icmp.quote"]),
        (HOST, OTHER, UNRESOLVED, ["icmp.quote"]),
        (PORT, PASSED_ON, UNRESOLVED, ["icmp.quote"]),
        (0, PASSED_ON, UNRESOLVED, ["icmp.type"]),
    ],
)
def test_a_next_hop_that_does_not_answer(
    code: int, quote: bytes, unresolved: dict[str, list[tuple[int, int]]], found: list[str]
) -> None:
    traffic = [(SECOND, INBOUND, ASKED), (3 * SECOND, OUTBOUND, report(code, quote))]
    assert fields(traffic, unresolved) == found


FIRST = packet(CLIENT, ROUTER, 17, bytes(16), fragment=0x2000)
LAST = packet(CLIENT, ROUTER, 17, bytes(8), fragment=2)


@pytest.mark.parametrize(
    ("came", "after_s", "found"),
    [
        ([FIRST], 30, []),
        ([FIRST], 3, ["icmp.quote"]),
        ([LAST], 30, ["icmp.quote"]),
        ([LAST, FIRST], 30, ["icmp.quote"]),
        ([FIRST, LAST, FIRST], 30, []),
        ([], 30, ["icmp.quote"]),
    ],
)
def test_a_reassembly_that_takes_too_long_lacks_a_fragment(came: list[bytes], after_s: int, found: list[str]) -> None:
    traffic = [(SECOND, INBOUND, each) for each in came]
    expired = report(REASSEMBLY, FIRST[:28], TIME_EXCEEDED)
    assert fields([*traffic, (SECOND + after_s * SECOND, OUTBOUND, expired)], {}) == found


@pytest.mark.parametrize(("short_of", "found"), [(0, []), (3, ["icmp.quote"])])
def test_a_reassembly_without_memory_takes_too_long(short_of: int, found: list[str]) -> None:
    """A fragment of up to 1536 bytes takes a page of ipfrag_high_thresh, and the datagram's own are two of them."""
    others = [packet(CLIENT, ROUTER, 17, bytes(16), fragment=0x2000, number=100 + place) for place in range(1024)]
    came = [*others[short_of:], FIRST, LAST]
    traffic = [(SECOND + place, INBOUND, each) for place, each in enumerate(came)]
    expired = report(REASSEMBLY, FIRST[:28], TIME_EXCEEDED)
    assert fields([*traffic, (32 * SECOND, OUTBOUND, expired)], {}) == found


@pytest.mark.parametrize(
    ("platform", "others", "pieces", "found"),
    [
        ("sss-core", 32, 1, []),
        ("sss-core", 31, 1, ["icmp.quote"]),
        ("sss-core", 26, 11, []),
        ("sss-core", 25, 11, ["icmp.quote"]),
        ("linux", 32, 1, ["icmp.quote"]),
    ],
)
def test_lwip_gives_the_oldest_of_too_many_datagrams_up(
    platform: str, others: int, pieces: int, found: list[str]
) -> None:
    """More than 32, or 276 fragments (lwipopts.h); those that are whole take no place."""
    unfinished = [
        packet(CLIENT, ROUTER, 17, bytes(16), fragment=0x2000 | 2 * piece, number=100 + place)
        for place in range(others)
        for piece in range(pieces)
    ]
    whole = [
        packet(CLIENT, ROUTER, 17, bytes(16), fragment=fragment, number=900 + place)
        for place in range(9)
        for fragment in (0x2000, 2)
    ]
    traffic = [(SECOND + place, INBOUND, each) for place, each in enumerate([FIRST, *whole, *unfinished])]
    given_up = report(REASSEMBLY, FIRST[:28], TIME_EXCEEDED)
    assert fields([*traffic, (2 * SECOND, OUTBOUND, given_up)], {}, platform) == found
