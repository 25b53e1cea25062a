# SPDX-License-Identifier: Apache-2.0
"""Frames that the wire corrupted: no receiver takes them, and nothing is read from their headers."""

from __future__ import annotations

import json
from functools import reduce
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sundial.observe import Octets
from sundial.verify import Verification, verify_run
from sundial.verify.corruption import flipped as of_guests
from sundial.verify.corruption import intact, through_ip
from tests import fates
from tests.verify.bed import (
    ACK,
    CLIENT,
    IN,
    OUT,
    PUSH,
    RAW_PORT,
    RPC_PORT,
    SERVER,
    Bed,
    Record,
    Stream,
    raw_payload,
    rpc_call,
    rpc_reply,
)

ETHERNET, IP, UDP, TCP = 14, 20, 8, 32
SOURCE_MAC = range(6, 12)


def flipped(frame: bytes, bit: int) -> bytes:
    changed = bytearray(frame)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def corrupt(bed: Bed, frame: bytes, bit: int, *, source: str = CLIENT, reported: bool = True) -> None:
    """A frame leaves a machine, and arrives with a bit flipped."""
    damaged = flipped(frame, bit)
    here, there = (0, 1) if source == CLIENT else (1, 0)
    ends = ("client:eth0", "server:eth0")
    bed.records.append(Record(bed.now, here, OUT, frame))
    if reported:
        comment = fates.corrupted(bit % 8, bit // 8, ends[here], ends[there])
        bed.records.append(Record(bed.now + 500, 2, 0, damaged, comment))
    bed.records.append(Record(bed.now + 2_000, there, IN, damaged))
    bed.now += 10_000


def explained(bed: Bed) -> Verification:
    path = bed.write() / "run.json"
    scenario = {"name": "test", "expect": {"retransmissions": "explained", "failures": "none"}}
    path.write_text(json.dumps({**json.loads(path.read_text()), "scenario": scenario}))
    return verify_run(path.parent)


def over_tcp(directory: Path, bits: range) -> Bed:
    """Calls whose requests each arrive once with another bit flipped, and then as they are."""
    bed = Bed(directory / "run")
    bed.batch("echo-client", "tcp", 16, RPC_PORT, 700)
    stream = Stream(bed, 700, RPC_PORT, {CLIENT: 1_000, SERVER: 2**32 - 500})
    stream.open()
    for number, bit in enumerate(bits):
        start = bed.now - 1
        request, reply = (
            (0x80000000 | len(message)).to_bytes(4) + message
            for message in (rpc_call(number, 16, number=number), rpc_reply(number, 16, number))
        )
        corrupt(bed, stream.frame(CLIENT, ACK | PUSH, stream.sent[CLIENT], request), bit)
        stream.write(CLIENT, request, [len(request)])
        stream.write(SERVER, reply, [len(reply)])
        bed.sample(start, number)
    return bed


def over_udp(directory: Path, bits: range, size: int) -> Bed:
    """The same of datagrams. A request that the server takes for all that is answered at once."""
    bed = Bed(directory / "run")
    bed.batch("echo-client", "udp", size, RPC_PORT, 700)
    for number, bit in enumerate(bits):
        start = bed.now - 1
        message, reply = rpc_call(number, size, number=number), rpc_reply(number, size, number)
        first, *others = bed.datagram(CLIENT, (700, RPC_PORT), message)
        corrupt(bed, first, bit)
        bed.send(CLIENT, others)
        again = bit // 8 not in SOURCE_MAC
        if again:
            bed.now += 1_000_000
            bed.send(CLIENT, bed.datagram(CLIENT, (700, RPC_PORT), message))
        bed.send(SERVER, bed.datagram(SERVER, (RPC_PORT, 700), reply))
        bed.sample(start, number, retransmits=int(again))
    return bed


@pytest.mark.parametrize(
    ("corrupts", "bits", "later", "found"),
    [
        (True, (77,), False, [(1, 9)]),
        (False, (77,), False, []),
        (True, (77, 78), False, []),  # two bits are more than it flips
        (True, (), False, []),
        (True, (77,), True, []),  # what came later is not what it passed on
    ],
)
def test_a_guest_that_joins_segments_may_flip_a_bit(
    corrupts: bool, bits: tuple[int, ...], later: bool, found: list[tuple[int, int]]
) -> None:
    came, other = bytes(range(60)), bytes(60)
    left = reduce(flipped, bits, came)
    rows = [("far|b", IN, 5 if later else 1, came), ("near|a", OUT, 2, left), ("far|b", IN, 0, other)]
    table = pl.DataFrame(
        [(row, None, end, way, at, len(octets), hash(octets), None) for row, (end, way, at, octets) in enumerate(rows)],
        {"row": pl.UInt32, "fate": pl.String, "end": pl.String, "direction": pl.UInt8, "time_ns": pl.Int64,
         "frame_length": pl.Int64, "octets_hash": pl.Int64, "fate_byte": pl.Int64},
        orient="row",
    )  # fmt: skip
    ports = pl.DataFrame({"end": ["near|a", "far|b"], "machine": "joint", "corrupts": [corrupts, False], "joins": True})

    def read(some: pl.DataFrame) -> Octets:
        data = np.frombuffer(b"".join(rows[row][3] for row in some["row"]), np.uint8)
        return Octets(data, np.arange(some.height) * 60, np.full(some.height, 60))

    seen = of_guests(table, read, ports)
    assert (seen.select("row", "fate_byte").rows(), seen.schema) == (found, table.schema)


# In the gate one bit of each octet.
EACH_OCTET = [3, *(pytest.param(step, marks=pytest.mark.night) for step in (0, 5, 7))]


@pytest.mark.parametrize("bit", EACH_OCTET)
def test_a_bit_of_any_octet_of_a_segment_may_be_hit(tmp_path: Path, bit: int) -> None:
    result = verify_run(over_tcp(tmp_path, range(bit, 8 * (ETHERNET + IP + TCP + 8), 8)).write())
    assert result.problems == []
    assert result.classified["corrupted"] == ETHERNET + IP + TCP + 8 - len(SOURCE_MAC)


@pytest.mark.parametrize("bit", EACH_OCTET)
@pytest.mark.parametrize("size", [16, pytest.param(3000, marks=pytest.mark.night)])
def test_a_bit_of_any_octet_of_a_datagram_may_be_hit(tmp_path: Path, bit: int, size: int) -> None:
    bed = over_udp(tmp_path, range(bit, 8 * (ETHERNET + IP + UDP + 8), 8), size)
    result = explained(bed)
    assert result.problems == []
    assert result.classified["corrupted"] == ETHERNET + IP + UDP + 8 - len(SOURCE_MAC)


@pytest.mark.parametrize(
    "octet", [36, 41, pytest.param(16, marks=pytest.mark.night), pytest.param(47, marks=pytest.mark.night)]
)
def test_a_change_that_the_wire_does_not_report_is_found(tmp_path: Path, octet: int) -> None:
    bed = over_tcp(tmp_path, range(0))
    stream = Stream(bed, 701, RAW_PORT, {CLIENT: 1, SERVER: 2})
    corrupt(bed, stream.frame(CLIENT, ACK, 0), 8 * octet, reported=False)
    assert "frames received by server:eth0" in {each["field"] for each in verify_run(bed.write()).problems}


def test_a_repetition_needs_a_cause_beside_a_frame_whose_damage_no_receiver_sees(tmp_path: Path) -> None:
    bed = Bed(tmp_path / "run")
    bed.batch("echo-client", "udp", 16, RPC_PORT, 700)
    start = bed.now - 1
    corrupt(bed, bed.datagram(CLIENT, (700, RPC_PORT), rpc_call(1, 16))[0], 8 * SOURCE_MAC[0])
    bed.now += 1_000_000
    bed.send(CLIENT, bed.datagram(CLIENT, (700, RPC_PORT), rpc_call(1, 16)))
    bed.send(SERVER, bed.datagram(SERVER, (RPC_PORT, 700), rpc_reply(1, 16)))
    bed.sample(start, 1, retransmits=1)
    assert [each["field"] for each in explained(bed).problems] == ["request.retransmissions"]


@pytest.mark.parametrize(
    ("app", "port", "octet", "found"),
    [
        ("echo-client", RPC_PORT, 34, []),
        ("echo-client", RPC_PORT, 35, []),
        ("echo-client", RPC_PORT, 37, ["reply.received"]),
        ("raw-client", RAW_PORT, 34, ["reply.received"]),
    ],
)
def test_a_client_that_reads_refused_replies_reads_those_of_other_ports(
    tmp_path: Path, app: str, port: int, octet: int, found: list[str]
) -> None:
    """A bit of the source port (octets 34, 35) or of the target port of the only reply."""
    bed = Bed(tmp_path / "run")
    bed.batch(app, "udp", 16, port, 700)
    start = bed.now - 1
    rpc = app == "echo-client"
    request, reply = (rpc_call(1, 16), rpc_reply(1, 16)) if rpc else (raw_payload(1, 16), raw_payload(1, 16))
    bed.send(CLIENT, bed.datagram(CLIENT, (700, port), request))
    corrupt(bed, bed.datagram(SERVER, (port, 700), reply)[0], 8 * octet, source=SERVER)
    bed.sample(start, 1)
    assert [each["field"] for each in explained(bed).problems if each["field"].endswith("received")] == found


def test_what_is_discarded_behind_ip_has_come_through_it() -> None:
    frames = pl.DataFrame({"row": [0, 1, 2], "damaged": [False, True, True], "passes_ip": [False, True, False]})
    assert intact(frames)["row"].to_list() == [0]
    assert through_ip(frames)["row"].to_list() == [0, 1]
