# SPDX-License-Identifier: Apache-2.0
"""Frames of calls: the lengths that were measured, and the octets of a call without an argument."""

from __future__ import annotations

import pytest

from sundial.expect import http2
from sundial.expect.http2 import Frame, Type
from sundial.workloads.functions import NAMES
from sundial.workloads.grpc import expect
from sundial.workloads.grpc.expect import LIBRARIES, Client, Server

OLD, NEW = LIBRARIES["1.51.1"], LIBRARIES["1.85.1"]
AUTHORITY = "127.0.0.1:50051"


def octets(frames: list[Frame]) -> bytes:
    return b"".join(frame.octets for frame in frames)


def test_what_opens_a_connection() -> None:
    assert len(http2.PREFACE) == 24
    assert [len(frame.octets) for frame in Client(OLD, AUTHORITY).opening()] == [9 + 30]
    assert [len(frame.octets) for frame in Server(OLD).opening()] == [9 + 18]
    client, server = Client(OLD, AUTHORITY, bdp_probe=True).opening(), Server(OLD, bdp_probe=True).opening()
    assert [len(frame.octets) for frame in client] == [9 + 36, 9 + 4]
    assert [len(frame.octets) for frame in server] == [9 + 24, 9 + 4]
    assert [http2.read_increment(frames[1]) for frames in (client, server)] == [4_128_768] * 2


def test_a_void_call_octet_by_octet() -> None:
    """Of a later use of its path."""
    client, server = Client(OLD, AUTHORITY), Server(OLD)
    client.call(1, "void")
    server.call(1, "void")
    assert octets(client.call(3, "void")) == bytes.fromhex(
        "000008 01 04 00000003 c3c28386c1c0bfbe 000004 08 00 00000003 00000005 000005 00 01 00000003 0000000000"
    )
    assert octets(server.call(3, "void")) == bytes.fromhex(
        "000003 01 04 00000003 88c0bf 000005 00 00 00000003 0000000000 000001 01 05 00000003 be"
    )


def _blocks(frames: list[Frame]) -> list[int]:
    return [len(frame.payload) for frame in frames if frame.type == Type.HEADERS]


def test_lengths_of_headers() -> None:
    """The first request was measured with a path of 28 octets."""
    client, server = Client(OLD, AUTHORITY), Server(OLD)
    path = len(expect.path_of("void"))
    assert _blocks(client.call(1, "void")) == [217 - 28 + path]
    assert _blocks(server.call(1, "void")) == [78, 15]
    assert _blocks(client.call(3, "void")) == [8]
    assert _blocks(server.call(3, "void")) == [3, 1]
    # First uses of a path: 43 with one of 28 octets.
    for stream, name in enumerate(NAMES[1:], 2):
        assert _blocks(client.call(2 * stream + 1, name)) == [15 + len(expect.path_of(name))]
    assert 15 + 28 == 43
    newer = Server(NEW)
    assert [_blocks(newer.call(stream, "void")) for stream in (1, 3)] == [[78, 30], [3, 16]]


MEASURED = {
    "void": (5, 5, 57, 49), "boolean": (7, 7, 59, 51), "int": (10, 10, 62, 54), "long": (15, 15, 67, 59),
    "string_32": (39, 39, 91, 83), "string_512": (520, 520, 572, 564), "string_1024": (1032, 1032, 1084, 1076),
    "int_array": (280, 280, 332, 324), "float_array": (808, 808, 860, 852), "string_array": (1605, 1605, 1657, 1649),
    "person": (23, 23, 75, 67), "distance": (33, 10, 85, 54),
}  # fmt: skip
"""Messages and octets of a later call, client and server, of 1.51.1."""


@pytest.mark.parametrize("name", MEASURED)
def test_octets_of_a_call(name: str) -> None:
    request, reply = expect.call_messages(name)
    assert (len(request), len(reply), *expect.call_octets(OLD, name, [name], AUTHORITY)) == MEASURED[name]
    assert expect.call_octets(NEW, name, [name], AUTHORITY)[1] == MEASURED[name][3] + 15


def test_octets_of_a_whole_run() -> None:
    """12 x 512 calls on one connection: what all cost, and what first uses cost more.

    Beyond later uses 125 octets of the server were measured, with what opens a connection.
    """
    client, server = Client(OLD, AUTHORITY), Server(OLD)
    sums = [0, 0]
    later = [0, 0]
    for number, name in enumerate(name for name in NAMES for _ in range(512)):
        for side, end in enumerate((client, server)):
            sums[side] += len(octets(end.call(2 * number + 1, name))) + expect.CALL_UPDATE
            later[side] += MEASURED[name][2 + side]
    assert later == [2_560_512, 2_499_584]
    opening = len(octets(server.opening())) + 9
    first = 217 - 28 + len(expect.path_of("void")) - 8
    assert sums[0] - later[0] == first + sum(7 + len(expect.path_of(name)) for name in NAMES[1:])
    assert sums[1] - later[1] + opening == 125
